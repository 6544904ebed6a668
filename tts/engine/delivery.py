"""What leaves an engine's process: its sound, with what the engine itself leaves undone made up for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tts.engine.base import Engine, SpeakControl
from tts.engine.capabilities import Capabilities
from tts.engine.errors import EngineError
from tts.engine.finishing import Finish, silence_of
from tts.engine.protocol import SpeakRequest


def delivered(
    engine: Engine, request: SpeakRequest, control: SpeakControl, can: Capabilities
) -> Iterator[bytes]:
    """The chunks of `Engine.speak`, as they come.

    An engine that knows no annotations is given plain text from pause to pause, and the pauses are put between; one
    that does not obey the speed is asked for normal speed; silent ends go where it leaves them. None of this is the
    device's work: the clock rests meanwhile.

    Raises:
        EngineError: what `Engine.speak` raises; `text_unspeakable` with blame "user".
    """
    if engine.reads_annotations and can.obeys_speed and can.trims_edges:
        yield from engine.speak(request, control)
        return
    asked = request if can.obeys_speed else dataclasses.replace(request, speed=1.0)
    said = False
    for text, pause_ms in _parts(engine, request.text):
        if any(character.isalnum() for character in text):
            said = True
            finish = Finish(speed=1.0 if can.obeys_speed else request.speed, trim=not can.trims_edges)
            chunks = engine.speak(dataclasses.replace(asked, text=text), control)
            yield from _finished(chunks, finish, control)
        if pause_ms:
            yield silence_of(round(pause_ms / request.speed))
    if not said:
        raise EngineError("text_unspeakable", "There is nothing in this text that can be spoken.", "user")


def _parts(engine: Engine, text: str) -> list[tuple[str, int]]:
    """Texts, each with the silence after it in milliseconds at normal speed."""
    if engine.reads_annotations:
        return [(text, 0)]
    from tts.text.engine_forms import (
        EngineForm,
        for_engine,
    )  # its dictionaries are for those few engines alone

    return [(part.text, part.pause_after_ms) for part in for_engine(text, EngineForm.PLAIN)]


def _finished(chunks: Iterator[bytes], finish: Finish, control: SpeakControl) -> Iterator[bytes]:
    for pcm in chunks:
        control.clock.pause()
        made = finish.push(pcm)
        control.clock.resume()
        if made:
            yield made
    control.clock.pause()
    rest = finish.finish()
    control.clock.resume()
    if rest:
        yield rest
