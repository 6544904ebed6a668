"""What CosyVoice is given to read: pieces of text, and its forms of prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from tts.engine.cosyvoice_voices import VoiceFeatures
from tts.engine.errors import EngineError
from tts.engine.languages import latin_language, scripts_of
from tts.engine.protocol import SpeakRequest, VoiceReference
from tts.text.characters import UNSPACED_SCRIPTS, has_speech, script_of
from tts.text.engine_forms import EngineForm, for_engine
from tts.text.instructions import version_2_sentence, without_marks
from tts.text.pauses import pause_after_ms
from tts.text.segmentation import segment

# What stands before every prompt of CosyVoice3, and the mark without which it does not end.
SYSTEM = "You are a helpful assistant."
END_OF_PROMPT = "<|endofprompt|>"

ZERO_SHOT, CROSS_LINGUAL, INSTRUCT = "zero_shot", "cross_lingual", "instruct"

LONGEST_PIECE_MS = 20_000
PREFERRED_PIECE_MS = 14_000
# Nothing is heard before the first piece is done.
FIRST_PIECE_MS = 4_000
CHARACTERS_PER_TOKEN = 3  # of English, in the model's tokens
LEAST_CHARACTERS = 40  # the segmenter keeps room for signs without a word

_KANA_SHIFT = ord("ァ") - ord("ぁ")


@dataclass(frozen=True)
class Piece:
    """What is spoken in one call ("" for a rest alone), and the silence after it."""

    text: str
    pause_ms: int


def pieces_of(text: str, *, version: int, language: str, speed: float, characters: int) -> list[Piece]:
    """The calls that a text takes, in order, each at most `characters` long (three times that in letters).

    Annotations do not count, are not cut, and are written as this version of the model knows them.

    Raises:
        EngineError: `text_unspeakable` or `text_needs_kana`, with blame "user".
    """
    text = _in_katakana(without_marks(text).strip(), language)
    longest = characters if _is_unspaced(text) else characters * CHARACTERS_PER_TOKEN
    parts = segment(
        text,
        max_characters=max(LEAST_CHARACTERS, longest),
        max_ms=LONGEST_PIECE_MS,
        preferred_ms=PREFERRED_PIECE_MS,
        first_ms=FIRST_PIECE_MS,
    )
    form = EngineForm.COSYVOICE3 if version == 3 else EngineForm.COSYVOICE2
    pieces: list[Piece] = []
    for number, part in enumerate(parts):
        rest_ms = pause_after_ms(part, speed=speed) if number + 1 < len(parts) else 0
        pieces += _written(part, form, rest_ms=rest_ms, speed=speed)
    if not any(piece.text for piece in pieces):
        # The model would answer with nothing at all, or break.
        raise EngineError("text_unspeakable", "There is nothing to speak in this text.", "user")
    return pieces


def _written(part: str, form: EngineForm, *, rest_ms: int, speed: float) -> list[Piece]:
    """A part of the text as this model knows it: several pieces where it holds pauses of its own."""
    written = for_engine(part, form)
    last = len(written) - 1
    return [
        Piece(
            text=spoken.text if has_speech(spoken.text) else "",
            pause_ms=max(round(spoken.pause_after_ms / speed), rest_ms if number == last else 0),
        )
        for number, spoken in enumerate(written)
    ]


def _is_unspaced(text: str) -> bool:
    return any(script_of(character) in UNSPACED_SCRIPTS for character in text)


def _in_katakana(text: str, language: str) -> str:
    """Japanese as CosyVoice reads it. Kanji it would read as Chinese."""
    scripts = scripts_of(text)
    if language != "ja" and not scripts & {"hiragana", "katakana"}:
        return text
    if "han" in scripts:
        raise EngineError(
            "text_needs_kana", "This engine reads kanji as Chinese. Write Japanese in kana.", "user"
        )
    return "".join(chr(ord(sign) + _KANA_SHIFT) if "ぁ" <= sign <= "ゖ" else sign for sign in text)


def mode_of(request: SpeakRequest, voice: VoiceReference) -> str:
    """How a text is spoken: with an instruction, or in the words of the voice where it has some in this language.

    Raises:
        EngineError: `mode_not_supported`.
    """
    if request.instruction:
        return INSTRUCT
    if request.mode not in ("", ZERO_SHOT, CROSS_LINGUAL):
        raise EngineError("mode_not_supported", "This engine does not speak in that mode.")
    if request.mode == CROSS_LINGUAL:
        return CROSS_LINGUAL
    if not voice.transcript.strip():
        return CROSS_LINGUAL
    spoken = request.language or likely_language(request.text)
    if request.mode == ZERO_SHOT:
        return ZERO_SHOT
    return ZERO_SHOT if not voice.language or not spoken or voice.language == spoken else CROSS_LINGUAL


def likely_language(text: str) -> str:
    """The language of a text as far as its letters tell; "" where they do not."""
    scripts = scripts_of(text)
    if scripts & {"hiragana", "katakana"}:
        return "ja"
    for script, language in (("hangul", "ko"), ("cyrillic", "ru"), ("han", "zh")):
        if script in scripts:
            return language
    return latin_language(text) if "latin" in scripts else ""


@dataclass(frozen=True)
class Prompt:
    """`before` is the language model's prompt (None: it has none), `prefix` stands before every piece."""

    before: Optional[str]
    prefix: str
    with_speech: bool


def prompt_for(mode: str, *, version: int, transcript: str, instruction: str) -> Prompt:
    """The form that this version of the model was trained with."""
    system = f"{SYSTEM}{END_OF_PROMPT}" if version == 3 else ""
    if mode == ZERO_SHOT:
        return Prompt(before=system + without_marks(transcript).strip(), prefix="", with_speech=True)
    if mode == CROSS_LINGUAL:
        return Prompt(before=None, prefix=system, with_speech=False)
    before = f"{SYSTEM} " if version == 3 else ""
    sentence = without_marks(instruction).strip()
    if version == 2:
        sentence = version_2_sentence(sentence)
    return Prompt(before=f"{before}{sentence}{END_OF_PROMPT}", prefix="", with_speech=False)


def model_inputs(frontend: Any, prompt: Prompt, text: str, features: VoiceFeatures) -> Mapping[str, Any]:
    """What `model.tts` is called with.

    Made here from the frontend's tokens, as its own methods make them: those normalise and cut the text, write it to
    the log, and forget an instruction where the voice is cached.
    """
    tokens, count = frontend._extract_text_token(prompt.prefix + text)
    inputs = {
        "text": tokens,
        "text_len": count,
        "flow_prompt_speech_token": features.speech_token,
        "flow_prompt_speech_token_len": features.speech_token_length,
        "prompt_speech_feat": features.speech_feat,
        "prompt_speech_feat_len": features.speech_feat_length,
        "llm_embedding": features.embedding,
        "flow_embedding": features.embedding,
    }
    if prompt.before is not None:
        inputs["prompt_text"], inputs["prompt_text_len"] = frontend._extract_text_token(prompt.before)
    if prompt.with_speech:
        inputs["llm_prompt_speech_token"] = features.speech_token
        inputs["llm_prompt_speech_token_len"] = features.speech_token_length
    return inputs
