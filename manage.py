#!/usr/bin/env python
"""Django's command line for VoicePool."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.embedded")
    from django.core.management import execute_from_command_line  # noqa: PLC0415 - settings come first

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
