"""The forms of the pages. They check shapes; what a text, a clip or a name may be is the services' affair."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from portal.lib.display import count_text
from tts.audio.formats import DEFAULT_FORMAT, FORMAT_CHOICES
from tts.languages import LANGUAGES
from tts.services.instructions import INSTRUCT, PLAIN
from tts.services.quoting import SCRIPT
from tts.states import JobClass, JobState
from tts.text.instructions import INSTRUCTIONS, MAX_FREE_CHARACTERS

MIN_SPEED: Final = 0.5
MAX_SPEED: Final = 2.0
MAX_SEED: Final = 2**31 - 1
# The framework's own words leave the thousands together.
_SEED_BOUNDS: Final = format_lazy(
    _("A seed is a whole number from 0 to {limit}."), limit=count_text(MAX_SEED)
)
SEED_ERRORS: Final[dict[str, Any]] = dict.fromkeys(("min_value", "max_value"), _SEED_BOUNDS)
MAX_SEARCH_CHARACTERS: Final = 200


def language_choices(empty_label: Any) -> list[tuple[str, Any]]:
    return [("", empty_label), *((language.code, language.name) for language in LANGUAGES)]


class RequestForm(forms.Form):
    """What is to be spoken: enough for a quote."""

    text = forms.CharField(
        label=_("Text"),
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 7, "data-send-shortcut": "", "placeholder": _("What shall be said?")}
        ),
        error_messages={"required": _("Write the text that is to be spoken.")},
    )
    voice = forms.UUIDField(label=_("Voice"), error_messages={"required": _("Choose a voice.")})
    mode = forms.ChoiceField(
        label=_("Reading"),
        choices=[(PLAIN, _("Plain")), (INSTRUCT, _("Instruction")), (SCRIPT, _("Script"))],
        required=False,
        initial=PLAIN,
    )
    instruction = forms.ChoiceField(
        label=_("Instruction"),
        choices=[("", _("None")), *((key, one.english_name) for key, one in INSTRUCTIONS.items())],
        required=False,
    )
    instruction_text = forms.CharField(
        label=_("In your own words"),
        max_length=MAX_FREE_CHARACTERS,
        required=False,
        help_text=_(
            "One short sentence, for example: speak like somebody who has just come in from the cold."
        ),
    )
    job_class = forms.ChoiceField(
        label=_("Urgency"), choices=JobClass.choices, required=False, initial=JobClass.INTERACTIVE
    )
    language = forms.ChoiceField(
        label=_("Language of the text"), choices=language_choices(_("As the text is written")), required=False
    )
    speed = forms.FloatField(
        label=_("Speed"),
        min_value=MIN_SPEED,
        max_value=MAX_SPEED,
        step_size=0.05,
        required=False,
        initial=1.0,
        help_text=_("0.5 is half as fast, 2 is twice as fast."),
    )
    response_format = forms.ChoiceField(
        label=_("Format"),
        choices=FORMAT_CHOICES,
        required=False,
        initial=DEFAULT_FORMAT,
        help_text=_("Of the download. The job's page has every other format too, free of charge."),
    )
    seed = forms.IntegerField(
        label=_("Seed"),
        min_value=0,
        max_value=MAX_SEED,
        error_messages=SEED_ERRORS,
        required=False,
        help_text=_("The same seed speaks the same text in the same way. Empty: a new one each time."),
    )

    def clean_mode(self) -> str:
        return self.cleaned_data["mode"] or PLAIN

    def clean_job_class(self) -> str:
        return self.cleaned_data["job_class"] or JobClass.INTERACTIVE

    def clean_response_format(self) -> str:
        return self.cleaned_data["response_format"] or DEFAULT_FORMAT

    def clean_speed(self) -> float:
        return self.cleaned_data["speed"] or 1.0


class StudioForm(RequestForm):
    """A request that is to be spoken now. `token` was made with the page: sent twice, it makes one job."""

    token = forms.UUIDField(widget=forms.HiddenInput)


class RepeatForm(forms.Form):
    token = forms.UUIDField(widget=forms.HiddenInput)


class RecordingForm(forms.Form):
    """A recording for a voice that there is: what belongs to it, and the consent to it."""

    clip = forms.FileField(
        label=_("Recording"),
        allow_empty_file=True,  # the clip's own rules say it better, with a code
        error_messages={"required": _("Record yourself or choose a file first.")},
    )
    language = forms.ChoiceField(
        label=_("Language of the recording"),
        choices=language_choices(_("Another, or not sure")),
        required=False,
    )
    transcript = forms.CharField(
        label=_("What is said"),
        max_length=500,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Word for word, if you know it: the voice gets closer to the original."),
    )
    consent = forms.BooleanField(
        label=_("Consent"),
        error_messages={"required": _("A voice is cloned only with the consent of the person who speaks.")},
    )
    # Whether it has to be there is the operator's word: tts.services.voices says so.
    consent_clip = forms.FileField(
        label=_("Recording of the spoken consent"), allow_empty_file=True, required=False
    )
    # Of the statement as it was shown, so that exactly this wording is recorded.
    statement_locale = forms.CharField(max_length=10, widget=forms.HiddenInput)


class VoiceForm(RecordingForm):
    """A new voice."""

    name = forms.CharField(
        label=_("Name"), max_length=60, error_messages={"required": _("Give the voice a name.")}
    )
    shared = forms.ChoiceField(
        label=_("Who may use it"),
        choices=[("true", _("Everybody in the workspace")), ("false", _("Only you"))],
        required=False,
        initial="true",
    )
    field_order = ("clip", "name", "language", "transcript", "consent", "consent_clip", "shared")


class DraftTestForm(forms.Form):
    """What a voice says before it is saved. `token` was made with the page: sent twice, it makes one job."""

    text = forms.CharField(
        label=_("Test sentence"), strip=False, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    token = forms.UUIDField(widget=forms.HiddenInput)


class RenameForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=60)


class SharingForm(forms.Form):
    shared = forms.ChoiceField(choices=[("true", ""), ("false", "")])


class HistoryForm(forms.Form):
    """Search and filters. A value that is not known filters nothing: an old link still opens the page."""

    q = forms.CharField(label=_("Search"), max_length=MAX_SEARCH_CHARACTERS, required=False)
    state = forms.ChoiceField(
        label=_("State"), choices=[("", _("All states")), *JobState.choices], required=False
    )
    voice = forms.UUIDField(label=_("Voice"), required=False)

    def filters(self) -> dict[str, Any]:
        """The valid ones among the given values, as `jobs_of` takes them."""
        self.is_valid()
        voice_id: uuid.UUID | None = self.cleaned_data.get("voice")
        return {
            "search": self.cleaned_data.get("q", "").strip(),
            "state": self.cleaned_data.get("state", ""),
            "voice_id": voice_id,
        }
