"""What a mail server's refusal is about: the one mail, or all of them."""

from __future__ import annotations

import smtplib

PERMANENT = 500


def is_about_this_mail(error: smtplib.SMTPException) -> bool:
    """Whether the next mail may be taken where this one was not, and this one will not be later either: its address
    does not exist or cannot be written here, or its content was refused for good."""
    if isinstance(error, smtplib.SMTPDataError):
        return error.smtp_code >= PERMANENT
    return isinstance(error, (smtplib.SMTPRecipientsRefused, smtplib.SMTPNotSupportedError))
