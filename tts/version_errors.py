"""What is refused of a voice's versions, and why."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError, NotFound


class VoiceVersionNotFound(NotFound):
    code = "voice_version_not_found"
    message = _("This voice has no such version, or it was deleted.")


class TooManyVoiceVersions(DomainError):
    code = "too_many_voice_versions"
    status = 409
    message = _("This voice has %(limit)s versions, as many as it may. Delete one first.")


class VoiceVersionCurrent(DomainError):
    code = "voice_version_current"
    status = 409
    message = _("The voice speaks with this version. Use another one first, or delete the voice.")


class VoiceVersionNeeded(DomainError):
    code = "voice_version_needed"
    status = 409
    message = _("Jobs that are not done yet speak with this version. Delete it when they are done.")


class VoiceChanged(DomainError):
    """Its recording went between the quote and the job."""

    code = "voice_changed"
    status = 409
    message = _(
        "The recording was deleted while your text was being prepared. Nothing was charged. Send it again."
    )
