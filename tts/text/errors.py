"""Why a text is refused. Every refusal has a stable code, and none repeats what was typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError
from tts.languages import language_name
from tts.text.annotation_inventory import ARPABET, SOUNDS, SPANS
from tts.text.annotations import Mistake, Problem
from tts.text.characters import Script
from tts.text.limits import MAX_JOB_CHARACTERS, MAX_LONG_JOB_CHARACTERS
from tts.text.ssml import Fault

SCRIPT_NAMES: dict[Script, str | Promise] = {
    Script.HAN: _("Chinese characters"),
    Script.KANA: _("Japanese kana"),
    Script.HANGUL: _("Korean letters"),
    Script.BOPOMOFO: _("Bopomofo letters"),
    Script.LATIN: _("Latin letters"),
    Script.CYRILLIC: _("Cyrillic letters"),
    Script.GREEK: _("Greek letters"),
    Script.ARABIC: _("Arabic letters"),
    Script.HEBREW: _("Hebrew letters"),
    Script.DEVANAGARI: _("Devanagari letters"),
    Script.THAI: _("Thai letters"),
    Script.OTHER: _("letters of another script"),
}

# Why an annotation is refused, and what to write in its place.
_ANNOTATION_PROBLEMS: dict[Problem, Any] = {
    Problem.PINYIN: _(
        "this is no Mandarin syllable with a tone; write pinyin with its tone, such as [hào], [hao4] or [h][ào]"
    ),
    Problem.ARPABET: _(
        "this is no ARPAbet phoneme; write one in each bracket, such as [R], [IH1] or [ER0], a vowel with its stress"
    ),
    Problem.SOUND: _("there is no such sound; write one of these: {sounds}"),
    Problem.PAUSE: _(
        "a pause lasts at most 10 seconds; write a shorter one, such as [pause 1.5s], or several in a row"
    ),
    Problem.TAG: _("there is no such tag; write one of these, or remove it: {tags}"),
    Problem.NOT_CLOSED: _(
        "this tag is not closed; write {tag} behind the words that it is for, or remove it"
    ),
    Problem.NOT_OPENED: _(
        "this tag closes nothing; write {tag} before the words that it is for, or remove it"
    ),
    Problem.EMPTY: _("there is nothing between these tags; write words between them, or remove both"),
    Problem.TOO_LONG: _("there are more than 60 characters between these tags; put them around fewer words"),
    Problem.WORD_TOO_LONG: _("this word has more than 24 phonemes; put spaces between words"),
}
# What is suggested belongs beside what is there, not in its place: the reason says where.
MISSING: frozenset[str] = frozenset({Problem.NOT_CLOSED.value, Problem.NOT_OPENED.value})
_BRACKETS: frozenset[Problem] = frozenset({Problem.PINYIN, Problem.ARPABET, Problem.SOUND, Problem.PAUSE})
_ALLOWED: dict[Problem, list[str]] = {
    Problem.PINYIN: ["[hào]", "[hao4]", "[h][ào]"],
    Problem.ARPABET: [f"[{phoneme}]" for phoneme in sorted(ARPABET)],
    Problem.SOUND: [f"[{sound}]" for sound in sorted(SOUNDS)],
    Problem.PAUSE: ["[pause 500ms]", "[pause 1.5s]"],
    Problem.TAG: [f"<{name}>" for name in sorted(SPANS)],
}


def annotation_reason(mistake: Mistake) -> str | Promise:
    """Why an annotation is refused and what to do, in words that follow on others."""
    return format_lazy(
        _ANNOTATION_PROBLEMS[mistake.problem],
        tag=mistake.suggestion,
        sounds=" ".join(_ALLOWED[Problem.SOUND]),
        tags=" ".join(_ALLOWED[Problem.TAG]),
    )


def annotation_hint(mistake: Mistake) -> str | Promise:
    """What was probably meant, as a sentence of its own; "" where that is not known, or the reason says it."""
    if not mistake.suggestion or mistake.problem.value in MISSING:
        return ""
    return format_lazy(_(" Did you mean {suggestion}?"), suggestion=mistake.suggestion)


class TextRefused(DomainError):
    """A text that cannot be spoken as it is. Nothing was charged."""

    field = "text"


class TextEmpty(TextRefused):
    code = "text_empty"
    message = _("There is no text. Type something to speak.")


class TextUnspeakable(TextRefused):
    """Punctuation, symbols or emoji only: an engine would answer with silence or noise."""

    code = "text_unspeakable"
    message = _("There is nothing in this text that can be spoken: it has no letters and no digits.")


class TextTooLong(TextRefused):
    code = "text_too_long"
    message = _("The text has %(characters)s characters; %(limit)s are allowed. Split it into several jobs.")

    def __init__(self, *, characters: int, limit: int, **params: Any) -> None:
        super().__init__(characters=characters, limit=limit, **params)


class TextTooLongToWaitFor(TextTooLong):
    """Same code: in another class of urgency it may be as long."""

    message = _(
        "The text has %(characters)s characters; %(limit)s are allowed in the class Interactive. "
        "Take Standard or Batch, which allow %(longest)s."
    )

    def __init__(self, *, characters: int, limit: int) -> None:
        super().__init__(characters=characters, limit=limit, longest=MAX_LONG_JOB_CHARACTERS)


class SentenceTooLong(TextTooLong):
    """Same code: of what a voice says before it is saved."""

    message = _("A test sentence has at most %(limit)s characters; this one has %(characters)s.")


def too_long(*, characters: int, limit: int) -> TextTooLong:
    """The refusal of a text that has more characters than are allowed."""
    if limit == MAX_JOB_CHARACTERS and characters <= MAX_LONG_JOB_CHARACTERS:
        return TextTooLongToWaitFor(characters=characters, limit=limit)
    return TextTooLong(characters=characters, limit=limit)


class TextTooManyParts(TextRefused):
    """Each turn and each piece that one device speaks is a part."""

    code = "text_too_many_parts"
    message = _("The text has %(parts)s parts; %(limit)s are allowed in one job. Split it into several jobs.")


class SpeechTooLong(TextRefused):
    """More than one file can hold."""

    code = "speech_too_long"
    message = _(
        "This would become %(hours)s hours of speech; %(limit_hours)s are allowed in one job. "
        "Split the text into several jobs."
    )


class TooManySpeakers(TextRefused):
    code = "too_many_speakers"
    message = _(
        "The script has %(speakers)s speakers; %(limit)s are allowed. A name is what stands before a colon at the "
        "beginning of a line."
    )


class _TextRefusedAt(TextRefused):
    """`position` counts Unicode code points of the text as it was sent, from 0; people are told it from 1."""

    def __init__(self, *, position: int, **params: Any) -> None:
        super().__init__(position=position, number=position + 1, **params)


class TextControlCharacter(_TextRefusedAt):
    code = "text_control_characters"
    message = _("Character number %(number)s of the text is a control character. Remove it.")


class TextLoneSurrogate(_TextRefusedAt):
    code = "text_lone_surrogate"
    message = _("Character number %(number)s of the text is only half of one. Send valid Unicode.")


class LanguageNotSupported(TextRefused):
    """The engine does not speak the language that was asked for."""

    code = "language_not_supported"
    message = _("This language cannot be spoken yet. These can: %(languages)s.")

    def __init__(self, *, supported_languages: Sequence[str], **params: Any) -> None:
        names = [language_name(code) or code for code in supported_languages]
        super().__init__(languages=format_lazy(", ".join(["{}"] * len(names)), *names), **params)


class ScriptNotSupported(LanguageNotSupported):
    """Same code: the text is written in something that none of the engine's languages is written in."""

    message = _(
        "The text contains %(script_name)s (the first is character number %(number)s), which cannot be "
        "spoken yet. "
        "These languages can: %(languages)s."
    )

    def __init__(self, *, script: Script, position: int, supported_languages: Sequence[str]) -> None:
        super().__init__(
            supported_languages=supported_languages,
            script=script.value,
            script_name=SCRIPT_NAMES[script],
            position=position,
            number=position + 1,
        )


SSML_FAULTS: dict[Fault, str | Promise] = {
    Fault.TAG: _("this sign begins no tag; write &lt; for it"),
    Fault.NOT_CLOSED: _("this tag is not closed; write its closing tag, or remove it"),
    Fault.NOT_OPENED: _("this tag closes nothing; write its opening tag before, or remove it"),
    Fault.CROSSED: _("another tag has to be closed before this one"),
    Fault.ENTITY: _("there is no such entity; write the character itself, or &amp; for the sign &"),
    Fault.DOCUMENT_TYPE: _("a document type is not allowed; remove it"),
    Fault.AFTER_END: _("nothing may follow the end of the document; remove it, or put it before </speak>"),
}


class SsmlInvalid(TextRefused):
    """An SSML document that is not well-formed; see `tts.text.markup` for the rule."""

    code = "ssml_invalid"
    message = _("This is no well-formed SSML. Characters %(first)s to %(last)s of the text: %(reason)s.")

    def __init__(self, *, fault: Fault, start: int, end: int) -> None:
        self._mistake: dict[str, Any] = {
            "problem": fault.value,
            "start": start,
            "end": end,
            "allowed": [],
            "suggestion": "",
        }
        self._reason = SSML_FAULTS[fault]
        super().__init__(first=start + 1, last=end, reason=self._reason)

    def details(self) -> dict[str, Any]:
        """`mistakes`, of which there is one: as those of AnnotationInvalid."""
        return {"mistakes": [{**self._mistake, "message": str(self._reason)}]}


class AnnotationInvalid(TextRefused):
    """Annotations that were certainly meant as such, but say nothing; see `tts.text.annotations` for the rule."""

    code = "annotation_invalid"
    message = _("Characters %(first)s to %(last)s of the text: %(reason)s.%(hint)s%(escape)s")

    def __init__(self, *, mistakes: Sequence[Mistake]) -> None:
        first = mistakes[0]
        self.mistakes = list(mistakes)
        escape = _(" To have it read as it stands, write a backslash before each bracket.")
        super().__init__(
            first=first.start + 1,
            last=first.end,
            reason=annotation_reason(first),
            hint=annotation_hint(first),
            escape=escape if first.problem in _BRACKETS else "",
        )

    def details(self) -> dict[str, Any]:
        """`mistakes`, each with `problem`, `start` and `end` (from 0, as the text was sent; the end is not part of it),

        `message`, what is `allowed`, and a `suggestion`.
        """
        return {
            "mistakes": [
                {
                    "problem": mistake.problem.value,
                    "start": mistake.start,
                    "end": mistake.end,
                    "message": str(annotation_reason(mistake)),
                    "allowed": _ALLOWED.get(mistake.problem, []),
                    "suggestion": mistake.suggestion,
                }
                for mistake in self.mistakes
            ]
        }
