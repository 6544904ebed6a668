"""What is refused of a text, and why."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError


class TextRefused(DomainError):
    field = "text"


class TextEmpty(TextRefused):
    code = "text_empty"
    message = _("There is no text. Type something to speak.")


class TextUnspeakable(TextRefused):
    code = "text_unspeakable"
    message = _("There is nothing in this text that can be spoken: it has no letters and no digits.")


class TextTooLong(TextRefused):
    code = "text_too_long"
    message = _("The text has %(characters)s characters; %(limit)s are allowed. Split it into several jobs.")


class TextControlCharacter(TextRefused):
    code = "text_control_characters"
    message = _("The text holds a control character at position %(position)s. Remove it.")


class TextLoneSurrogate(TextRefused):
    code = "text_lone_surrogate"
    message = _("The text holds half of a character at position %(position)s. Send it as valid Unicode.")
