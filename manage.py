#!/usr/bin/env python
"""Django's command line for VoicePool."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.embedded")
    if sys.argv[1:2] == ["gpu_worker"]:
        from tts.slot_engine import start_early

        start_early(sys.argv[2:])
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
