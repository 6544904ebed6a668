"""What callers send: jobs, quotes, voices, and the filters of lists."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from accounts.consent_statements import current_statement
from portal.lib.strict_fields import (
    RawTextField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
    StrictUUIDField,
)
from tts.audio.formats import (
    DEFAULT_FORMAT,
    FORMAT_CHOICES,
    FORMATS,
    MAX_LOUDNESS_LUFS,
    MIN_LOUDNESS_LUFS,
    SAMPLE_RATES_HZ,
)
from tts.audio.limits import BEST_CLIP_SECONDS, MAX_CLIP_SECONDS, MAX_UPLOAD_BYTES, MIN_CLIP_SECONDS
from tts.forms import MAX_SEARCH_CHARACTERS, MAX_SEED, MAX_SPEED, MIN_SPEED, SEED_ERRORS
from tts.languages import LANGUAGES
from tts.models import VoiceKind
from tts.services.instructions import INSTRUCT, PLAIN
from tts.services.quoting import SCRIPT
from tts.services.voices import MAX_NAME_CHARACTERS
from tts.states import JobClass, JobState
from tts.text.instructions import INSTRUCTIONS, MAX_FREE_CHARACTERS
from tts.text.limits import MAX_JOB_CHARACTERS, MAX_LONG_JOB_CHARACTERS, MAX_SPEAKERS

MAX_TRANSCRIPT_CHARACTERS: Final = 500
# Of segments in one revision.
MAX_EDITS: Final = 1000
LANGUAGE_CODES: Final = [language.code for language in LANGUAGES]


class NewQuoteSerializer(StrictSerializer):
    voice_id = StrictUUIDField(help_text="Of a voice of yours or a preset one.")
    text = RawTextField(
        help_text="What is to be spoken, cut into segments at the ends of sentences. At most "
        f"{MAX_JOB_CHARACTERS:,} characters in the class interactive, {MAX_LONG_JOB_CHARACTERS:,} in the others. Lines "
        "such as `# Title` or `第一章 开始` begin chapters."
    )
    language = StrictCharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=10,
        help_text="ISO 639-1 code of the text's language; empty: as the text is written, mixed ones too.",
    )
    job_class = StrictChoiceField(
        choices=JobClass.choices,
        required=False,
        default=JobClass.INTERACTIVE.value,
        help_text="How urgent; each class has its price and its share of the pool.",
    )
    speed = StrictFloatField(
        required=False,
        default=1.0,
        min_value=MIN_SPEED,
        max_value=MAX_SPEED,
        help_text="1 is as the voice speaks.",
    )

    mode = StrictChoiceField(
        choices=[
            (PLAIN, _("Plain text")),
            (INSTRUCT, _("With an instruction")),
            (SCRIPT, _("Script of several speakers")),
        ],
        required=False,
        default=PLAIN,
        help_text="How the text is read. With an instruction it is instruct, unless it is a script. In a script a line "
        "that begins with a name and a colon begins what that speaker says.",
    )
    pronunciation_version = StrictIntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=2**31 - 1,
        help_text="Of the workspace's pronunciations, so that a text is spoken once more as it was; 0 for none. "
        "Without one the newest.",
    )
    cast = serializers.DictField(
        child=StrictUUIDField(),
        required=False,
        help_text="For a script: the voice of each speaker, by the name in the text. The narrator and titles are "
        "spoken by `voice_id`, and so is who is called 旁白 or Narrator and has no voice here.",
    )

    def validate_cast(self, cast: dict[str, uuid.UUID]) -> dict[str, uuid.UUID]:
        if len(cast) > MAX_SPEAKERS:
            raise serializers.ValidationError(_("At most %(limit)d speakers.") % {"limit": MAX_SPEAKERS})
        return cast

    instruction = StrictChoiceField(
        choices=[("", ""), *((key, one.english_name) for key, one in INSTRUCTIONS.items())],
        required=False,
        default="",
        help_text="A dialect, an emotion, a speed, a volume or a role, where an engine takes them.",
    )
    instruction_text = StrictCharField(
        required=False,
        allow_blank=True,
        default="",
        help_text=f"The same in own words, at most {MAX_FREE_CHARACTERS} characters, where an engine takes any, in "
        "place of `instruction`. It goes when the job is deleted.",
    )
    seed = StrictIntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=MAX_SEED,
        error_messages=SEED_ERRORS,
        help_text="The same text, voice, settings and seed sound the same; what your workspace has had spoken so "
        "before is used again and costs nothing. Without one, one is drawn.",
    )


class NewJobSerializer(NewQuoteSerializer):
    response_format = StrictChoiceField(
        choices=FORMAT_CHOICES,
        required=False,
        default=DEFAULT_FORMAT,
        help_text="How `audio_url` answers unless it is asked for another format. AAC comes in MP4 (.m4a), µ-law in "
        "a WAV file, PCM as bare 16-bit little-endian samples. All mono.",
    )
    sample_rate_hz = StrictIntegerField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Of the file. Without one 24000, for µ-law 8000. One of "
        f"{', '.join(str(rate) for rate in SAMPLE_RATES_HZ)}; Opus takes "
        f"{', '.join(str(rate) for rate in FORMATS['opus'].sample_rates_hz)}.",
    )
    loudness_lufs = StrictFloatField(
        required=False,
        allow_null=True,
        default=None,
        min_value=MIN_LOUDNESS_LUFS,
        max_value=MAX_LOUDNESS_LUFS,
        help_text="Integrated loudness (EBU R 128) of the file; its true peak stays below -1 dBTP. Without one the "
        "workspace's, or as the engine left it, about -20.",
    )


class SegmentEditSerializer(StrictSerializer):
    index = StrictIntegerField(min_value=0, help_text="Of the segment, as the job lists them.")
    text = RawTextField(
        required=False,
        allow_null=True,
        default=None,
        help_text="What it says from now on; it may become several segments. Empty: it is left out. Null or left out: "
        "it says the same.",
    )
    seed = StrictIntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=MAX_SEED,
        error_messages=SEED_ERRORS,
        help_text="Null or left out: a changed text is said with the seed it had, the same text with another one.",
    )


class NewRevisionSerializer(StrictSerializer):
    segments = serializers.ListField(
        child=SegmentEditSerializer(),
        allow_empty=False,
        max_length=MAX_EDITS,
        help_text="What changes. Every other segment keeps its sound and costs nothing.",
    )


class RecordingSerializer(StrictSerializer):
    """A form (multipart/form-data)."""

    file = serializers.FileField(
        allow_empty_file=True,  # the clip's own rules say it better, with a code
        help_text=f"A recording of one person: {MIN_CLIP_SECONDS:g} to {MAX_CLIP_SECONDS:g} s, best "
        f"{BEST_CLIP_SECONDS[0]} to {BEST_CLIP_SECONDS[1]} s, at most {MAX_UPLOAD_BYTES // 1024**2} MiB. "
        "WAV, FLAC, MP3, M4A, AAC, OGG, Opus or WebM; the kind is told by the content.",
    )


class NewVersionSerializer(RecordingSerializer):
    """A form (multipart/form-data): its values are texts."""

    language = StrictChoiceField(
        choices=LANGUAGE_CODES,
        required=False,
        allow_blank=True,
        default="",
        help_text="Spoken in the recording.",
    )
    transcript = serializers.CharField(
        max_length=MAX_TRANSCRIPT_CHARACTERS,
        required=False,
        allow_blank=True,
        default="",
        help_text="What is said in the recording, word for word; makes the clone better where it is given.",
    )
    consent = serializers.BooleanField(
        help_text=f"“true”: you agree to this statement, which is kept: {current_statement('en').text}"
    )
    consent_file = serializers.FileField(
        required=False,
        allow_empty_file=True,
        help_text="A recording in which the person who speaks agrees, in the formats and lengths of `file`; required "
        "where the operator asks for it. It is kept beside the clip and goes with it. The sentence to say: "
        f"{current_statement('en').spoken}",
    )


class NewVoiceSerializer(NewVersionSerializer):
    name = serializers.CharField(max_length=MAX_NAME_CHARACTERS, allow_blank=True)
    shared = serializers.BooleanField(
        required=False, default=True, help_text="“false”: nobody else in the workspace may use it."
    )


class ChangedVoiceSerializer(StrictSerializer):
    """What stays is left out."""

    name = StrictCharField(max_length=MAX_NAME_CHARACTERS, allow_blank=True, required=False)
    shared = StrictBooleanField(
        required=False, help_text="True: every member of the workspace may use it; false: only who made it."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError({"name": self.fields["name"].error_messages["required"]})
        return attrs


class VoiceFilterSerializer(StrictSerializer):
    kind = StrictChoiceField(choices=VoiceKind.choices, required=False, help_text="Only of this kind.")


class JobFilterSerializer(StrictSerializer):
    state = StrictChoiceField(choices=JobState.choices, required=False, help_text="Only in this state.")
    voice_id = StrictUUIDField(required=False, help_text="Only spoken by this voice.")
    search = StrictCharField(
        required=False, allow_blank=True, max_length=MAX_SEARCH_CHARACTERS, help_text="Words of the text."
    )


def validated(serializer_class: type[StrictSerializer], data: Any) -> dict[str, Any]:
    """The checked input. Raises ValidationError."""
    form = serializer_class(data=data)
    form.is_valid(raise_exception=True)
    checked: dict[str, Any] = form.validated_data
    return checked
