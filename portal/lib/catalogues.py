"""Message catalogues: compile them without the gettext programs, and find what they lack.

`python -m portal.lib.catalogues compile` writes the .mo files that Django reads, beside the .po files that
are kept. `python -m portal.lib.catalogues check` names every message of the sources that a catalogue does not
have, and every entry that is empty, fuzzy, or whose placeholders differ from its message.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polib

ROOT = Path(__file__).resolve().parent.parent.parent
LOCALES = ROOT / "portal" / "locale"
LANGUAGES = ("zh_Hans",)  # English is the language of the messages themselves
SOURCE_FOLDERS = ("portal", "accounts", "billing", "tts", "templates")
# Position of the context, the message and its plural among the arguments of each function.
FUNCTIONS: dict[str, tuple[int | None, int, int | None]] = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop"), (None, 0, None)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (None, 0, 1)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), (0, 1, None)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), (0, 1, 2)),
}
_STRING = r"""u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_CALL = re.compile(rf"\b(_|n?p?gettext)\({_STRING}(?:, ?{_STRING})?(?:, ?{_STRING})?")
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}")


@dataclass(frozen=True)
class Message:
    """One message of the sources and where it stands."""

    context: str | None
    text: str
    plural: str | None
    place: str


def compile_catalogues(locales: Path = LOCALES) -> list[Path]:
    """Write a .mo file beside every .po file under `locales` and return what was written."""
    written = []
    for source in sorted(locales.glob("*/LC_MESSAGES/*.po")):
        target = source.with_suffix(".mo")
        temporary = source.with_suffix(".mo.unfinished")
        polib.pofile(str(source)).save_as_mofile(str(temporary))
        temporary.replace(target)
        written.append(target)
    return written


def find_problems(root: Path = ROOT, locales: Path = LOCALES) -> list[str]:
    """Return one sentence for each thing that a reader would see in the wrong language, or broken."""
    messages = [message for path in _source_files(root) for message in messages_of(path)]
    problems = []
    for language in LANGUAGES:
        path = locales / language / "LC_MESSAGES" / "django.po"
        if not path.exists():
            problems.append(f"{language}: there is no catalogue {path.name}.")
            continue
        catalogue = polib.pofile(str(path))
        known = {(entry.msgctxt, entry.msgid) for entry in catalogue if not entry.obsolete}
        problems += [
            f"{language}: {message.place}: not in the catalogue: {message.text!r}"
            for message in messages
            if (message.context, message.text) not in known
        ]
        problems += [f"{language}: {fault}" for entry in catalogue for fault in _faults(entry)]
    return problems


def messages_of(path: Path) -> Iterator[Message]:
    """Yield the messages of one Python file or template."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _messages_of_python(text, path)
    else:
        yield from _messages_of_template(text, path)


def _source_files(root: Path) -> Iterator[Path]:
    for folder in SOURCE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".py", ".html", ".txt"} and "migrations" not in path.parts:
                yield path


def _messages_of_python(text: str, path: Path) -> Iterator[Message]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        values = [
            argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None
            for argument in node.args
        ]
        message = _message(name, values, f"{path.name}:{node.lineno}")
        if message is not None:
            yield message


def _messages_of_template(text: str, path: Path) -> Iterator[Message]:
    from django.utils.translation.template import templatize  # only the check needs Django

    # What xgettext would read: the template with its messages as calls, line by line where they stood.
    calls = templatize(text, origin=str(path))
    for match in _CALL.finditer(calls):
        values = [None if literal is None else ast.literal_eval(literal) for literal in match.groups()[1:]]
        line = calls.count("\n", 0, match.start()) + 1
        message = _message(match.group(1), values, f"{path.name}:{line}")
        if message is not None:
            yield message


def _message(name: str, values: list[str | None], place: str) -> Message | None:
    if name not in FUNCTIONS:
        return None
    context_at, text_at, plural_at = FUNCTIONS[name]

    def value(position: int | None) -> str | None:
        return values[position] if position is not None and position < len(values) else None

    text = value(text_at)
    return Message(value(context_at), text, value(plural_at), place) if text else None


def _faults(entry: polib.POEntry) -> Iterator[str]:
    if entry.obsolete:
        return
    if "fuzzy" in entry.flags:
        yield f"fuzzy: {entry.msgid!r}"
    translations = list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]
    expected = sorted(_PLACEHOLDER.findall(entry.msgid_plural or entry.msgid))
    for translation in translations:
        if not translation:
            yield f"not translated: {entry.msgid!r}"
        elif sorted(_PLACEHOLDER.findall(translation)) != expected:
            yield f"other placeholders than its message: {entry.msgid!r}"


def main(arguments: list[str]) -> int:
    if arguments == ["compile"]:
        compile_catalogues()
        return 0
    if arguments == ["check"]:
        problems = find_problems()
        for problem in problems:
            print(problem)  # noqa: T201 - a command's output
        return 1 if problems else 0
    print("Say compile or check.", file=sys.stderr)  # noqa: T201 - a command's output
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
