"""What the pool refuses, and why. Refusals of texts and clips stand in tts.text.errors and tts.audio.errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError, NotFound

# Of speakers, in one sentence.
MOST_NAMES: Final = 8


class VoiceNotFound(NotFound):
    code = "voice_not_found"
    message = _(
        "There is no such voice that you may use: it does not exist, or who made it keeps it private. "
        "Pick one from the list of voices."
    )


class VoiceNotYours(DomainError):
    code = "voice_not_yours"
    status = 403
    field = "shared"
    message = _(
        "Only who made this voice, and the workspace’s owners and administrators, say who may use it. "
        "Nothing was changed."
    )


class JobNotFound(NotFound):
    code = "job_not_found"
    message = _("There is no such job, or it is not yours.")


class AudioNotReady(DomainError):
    code = "audio_not_ready"
    status = 409
    message = _("This job has no audio to download: it is not done, or it failed. Its state says which.")


class FormatUnknown(DomainError):
    code = "format_unknown"
    status = 400
    field = "format"
    message = _("There is no such format. Use one of: %(formats)s.")


class SampleRateNotSupported(DomainError):
    code = "sample_rate_not_supported"
    status = 422
    field = "sample_rate_hz"
    message = _("%(format)s takes one of these sample rates: %(rates)s Hz. Nothing was charged.")


class AudioBeingMade(DomainError):
    code = "audio_being_made"
    status = 503
    retry_after_s = 5
    message = _("The file is being made in this format. Ask again in a few seconds; it costs nothing.")


class AudioNotMade(DomainError):
    code = "audio_not_made"
    status = 500
    message = _(
        "The file could not be made in this format. Take another one, or write to us with the job's number. It "
        "costs nothing."
    )


class SpeakerWithoutVoice(DomainError):
    """`speakers`: their names, as the script spells them."""

    code = "speaker_without_voice"
    status = 400
    field = "cast"
    message = _(
        "No voice is chosen for %(names)s. Choose one for every speaker of the script. Nothing was charged."
    )

    def __init__(self, *, speakers: Sequence[str]) -> None:
        self.speakers = list(speakers)
        shown = ", ".join(self.speakers[:MOST_NAMES]) + (" …" if len(self.speakers) > MOST_NAMES else "")
        super().__init__(names=shown)

    def details(self) -> dict[str, Any]:
        """`speakers`: all of them."""
        return {"speakers": self.speakers}


class SubtitlesNotReady(DomainError):
    code = "subtitles_not_ready"
    status = 409
    message = _("This job has no subtitles yet: they are there when it has ended and something was spoken.")


class IdempotencyKeyReused(DomainError):
    code = "idempotency_key_reused"
    status = 409
    message = _(
        "This Idempotency-Key was used before for another request. Send a new key. Nothing was charged."
    )


class IdempotencyKeyInvalid(DomainError):
    code = "idempotency_key_invalid"
    status = 400
    message = _("An Idempotency-Key is 1 to 200 printable ASCII characters.")


class ModeNotSupported(DomainError):
    code = "mode_not_supported"
    status = 422
    field = "instruction"
    message = _(
        "No device of the pool takes instructions now. Nothing was charged. "
        "Have the text read plainly, or try again later."
    )


class InstructionMissing(DomainError):
    code = "instruction_missing"
    status = 422
    field = "instruction"
    message = _("The mode instruct needs an instruction. Choose one, or speak the text as it is.")


class FreeInstructionNotSupported(DomainError):
    code = "free_instruction_not_supported"
    status = 422
    field = "instruction_text"
    message = _(
        "No device of the pool takes instructions in your own words now. Nothing was charged. "
        "Choose one of the list, or leave it out."
    )


class InstructionTooLong(DomainError):
    code = "instruction_too_long"
    status = 422
    field = "instruction_text"
    message = _("An instruction in your own words has at most %(limit)s characters. Nothing was charged.")


class InstructionsConflict(DomainError):
    code = "instructions_conflict"
    status = 422
    field = "instruction_text"
    message = _("Choose an instruction of the list or write one of your own, not both. Nothing was charged.")


class LabelRequired(DomainError):
    code = "label_required"
    status = 422
    field = "explicit_label"
    message = _("The operator asks for a label that is heard. Choose a tone or words. Nothing was changed.")


class LoudnessInvalid(DomainError):
    code = "loudness_invalid"
    status = 422
    field = "loudness_lufs"
    message = _("A loudness target is from %(minimum)s to %(maximum)s LUFS. Nothing was changed.")


class NotOffered(DomainError):
    code = "not_offered"
    status = 422
    message = _(
        "No device of the pool can speak this now: its models lack the kind of voice or the language. Nothing was "
        "charged. Choose a preset voice or another language."
    )


class QueueFull(DomainError):
    code = "queue_full"
    status = 429
    retry_after_s = 5
    message = _(
        "You have %(limit)s jobs waiting, as many as your workspace may. Wait for one to end. Nothing was charged."
    )


class JobTooLong(DomainError):
    code = "job_too_long"
    status = 422
    field = "text"
    message = _(
        "The text has %(characters)s characters; your plan allows %(limit)s in one job. Nothing was charged. "
        "Divide the text or choose another plan."
    )


class DailyCharactersReached(DomainError):
    code = "daily_characters_reached"
    status = 429
    message = _(
        "Your plan allows %(limit)s characters in 24 hours, and %(left)s are left now. Nothing was charged. "
        "Wait until earlier ones are a day old, shorten the text, or choose another plan."
    )


class TextBlocked(DomainError):
    code = "text_blocked"
    status = 409
    field = "text"
    message = _(
        "A part of this text made the engine fail on every device that tried it. Change the text, or try again "
        "tomorrow. Nothing was charged."
    )


class JobAlreadyEnded(DomainError):
    code = "job_already_ended"
    status = 409
    message = _("This job has ended already; there is nothing to cancel.")


class JobNotSucceeded(DomainError):
    code = "job_not_succeeded"
    status = 409
    message = _(
        "Segments are said again only of a job that was spoken to its end; this one was not. Nothing was charged."
    )


class AudioGone(DomainError):
    code = "audio_gone"
    status = 409
    message = _(
        "The audio of the other segments is not there any more, so they cannot be kept. Nothing was charged. "
        "Speak the whole text anew."
    )


class SegmentUnknown(DomainError):
    code = "segment_unknown"
    status = 400
    message = _("The job has no such segment.")


class SegmentTwice(DomainError):
    code = "segment_twice"
    status = 400
    message = _("This segment is named twice.")


class RevisionInvalid(DomainError):
    """Some of the changed segments cannot be spoken; `faults` says which, and why each of them cannot."""

    code = "revision_invalid"
    status = 400
    field = "segments"
    message = _("Segment %(number)s cannot be said like this: %(reason)s Nothing was charged.")

    def __init__(self, *, faults: Sequence[tuple[int, DomainError]]) -> None:
        self.faults = list(faults)
        index, first = self.faults[0]
        super().__init__(number=index + 1)
        self._first = first

    def text(self) -> str:
        return str(self.message) % {**self.params, "reason": self._first.text()}

    def details(self) -> dict[str, Any]:
        """`segments`, each with its `index`, a `code`, a `message`, and the further members of that refusal."""
        return {
            "segments": [
                {"index": index, "code": fault.code, "message": fault.text(), **fault.details()}
                for index, fault in self.faults
            ]
        }


class ConsentRequired(DomainError):
    code = "consent_required"
    status = 400
    field = "consent"
    message = _("A voice is cloned only with the consent of the person who speaks. Confirm the statement.")


class SpokenConsentMissing(DomainError):
    code = "spoken_consent_missing"
    status = 400
    field = "consent_clip"
    message = _(
        "Here a voice is cloned only with a recording in which its owner agrees. Record the sentence, or choose a file."
    )


class SpokenConsentUnusable(DomainError):
    """The file is no recording of speech; `reason` is what a reference clip of that kind is told."""

    code = "spoken_consent_unusable"
    status = 400
    field = "consent_clip"
    message = _("The recording of the spoken consent cannot be used. %(reason)s")


class TooManyCharactersPriced(DomainError):
    code = "too_many_characters_priced"
    status = 429
    message = _(
        "You have had %(limit)s characters priced in a minute, as many as you may. Wait %(seconds)s seconds."
    )


class TooManyVoiceChecks(DomainError):
    code = "too_many_voice_checks"
    status = 429
    retry_after_s = 60
    message = _("You have had %(limit)s recordings checked in a minute, as many as you may. Wait a minute.")


class TooManyVoices(DomainError):
    code = "too_many_voices"
    status = 409
    message = _("Your workspace has %(limit)s voices, as many as it may. Delete one first.")


class StorageFull(DomainError):
    code = "storage_full"
    status = 409
    message = _(
        "Your plan keeps %(limit)s of audio, and this does not fit beside what is there. Nothing was charged. "
        "Delete jobs or voices that you need no more, or choose another plan."
    )


class PresetVoiceFixed(DomainError):
    code = "preset_voice_fixed"
    status = 403
    message = _("Preset voices belong to the platform; they cannot be changed or deleted.")


class NameInvalid(DomainError):
    code = "name_invalid"
    status = 400
    field = "name"
    message = _("A name has 1 to 60 characters, at least one of them visible.")


class PronunciationVersionUnknown(NotFound):
    code = "pronunciation_version_unknown"
    message = _("There is no such version of your pronunciations, or it is kept no more.")


class PronunciationsChanged(DomainError):
    code = "pronunciations_changed"
    status = 412
    message = _(
        "Somebody saved the pronunciations in the meantime. Read them again, and make your change in those."
    )


class PronunciationsFull(DomainError):
    code = "pronunciations_full"
    status = 409
    field = "entries"
    message = _("There may be up to %(limit)s pronunciations. Remove those that you need no more.")


class IfMatchRequired(DomainError):
    code = "if_match_required"
    status = 428
    message = _(
        'Send If-Match with the ETag of the pronunciations that you changed, so that nothing is lost; "0" where there '
        "were none, * to replace whatever is there."
    )


class PronunciationTooLong(DomainError):
    code = "pronunciation_too_long"
    status = 422
    field = "text"
    message = _(
        "By your pronunciations a part of this text takes too long to be said in one go. Shorten what is said for its "
        "words. Nothing was charged."
    )
