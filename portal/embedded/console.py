"""What the supervisor says at the terminal."""

from __future__ import annotations

import sys

from portal.embedded.layout import DataFolder

OPERATOR_EMAIL = "operator@voicepool.localhost"
DEMONSTRATION_EMAIL = "demonstration@voicepool.localhost"


def say(text: str) -> None:
    """Print at once, also into a pipe; a closed terminal is no reason to stop serving."""
    try:
        print(text, flush=True)
    except OSError:
        # Otherwise the interpreter complains about the same pipe once more at its end.
        sys.stdout = None


def fail(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def say_ready(*, address: str, folder: DataFolder, seconds: float, first_start: bool) -> None:
    """Print where everything is and how to sign in."""
    secrets = folder.secrets
    unless = "" if first_start else "   (unless it was changed)"
    say(
        f"\nVoicePool is ready after {seconds:.1f} s.\n\n"
        f"  Address    {address}/\n"
        f"  Operator   {OPERATOR_EMAIL}   {secrets.read('operator_password')}{unless}\n"
        f"             console: {address}/console/   records: {address}/admin/\n"
        f"  Customer   {DEMONSTRATION_EMAIL}   {secrets.read('demonstration_password')}{unless}\n"
        f"  Mail       {address}/outbox/   (this stack sends none: read it there)\n"
        f"  Data       {folder.path}   (logs in {folder.logs})\n\n"
        "Ctrl-C stops everything.\n"
    )
