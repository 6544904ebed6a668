"""Settings from the environment: typed, loud when malformed, secrets also from files (X_FILE)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


def env_text(name: str, default: str | None = None) -> str:
    """The variable `name`, or the content of the file that `name`_FILE names, or `default`."""
    if name in os.environ:
        return os.environ[name]
    if file_name := os.environ.get(f"{name}_FILE"):
        return Path(file_name).read_text(encoding="utf-8").strip()
    if default is None:
        raise ImproperlyConfigured(f"Set {name} (or {name}_FILE) in the environment.")
    return default


def env_bool(name: str, default: bool) -> bool:
    word = env_text(name, "true" if default else "false").lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false.")


def env_int(name: str, default: int) -> int:
    text = env_text(name, str(default))
    try:
        return int(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a whole number.") from error


def env_list(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in env_text(name, default).split(",") if part.strip()]


def env_matching(name: str, default: str, pattern: str) -> str:
    """The variable `name`, which must match the whole regular expression."""
    text = env_text(name, default)
    if re.fullmatch(pattern, text) is None:
        raise ImproperlyConfigured(f"{name} must match {pattern}.")
    return text
