"""Joints that cannot be heard: between the engine's calls, between segments, between chapters, beside the label.

A text with every kind of joint (paragraphs, sentences, clauses, and cuts inside a clause that is too long) is cut,
spoken and put together as the product does it, with the tone of the label before and behind it; live streams hold the
same samples. `joint_ratio`: the largest step from one sample to the next within half
a millisecond of a joint, over the largest such step anywhere else. A click is a step that speech does not have.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from tests.bench._speech import SAMPLE_RATE_HZ, chunks_of, engine
from tts.audio import explicit
from tts.audio.aigc import implicit_label
from tts.audio.assembly import write_joined
from tts.audio.wav import read_wav, wav_file
from tts.text.pauses import pause_after_ms
from tts.text.segmentation import segment

AROUND_SAMPLES = SAMPLE_RATE_HZ // 2000
TEXTS = {
    "zh": "清晨的阳光慢慢照进窗户。楼下不知哪里开了一扇门，孩子们背着书包跑过长长的巷子！\n"
    "笑声一直传到河边；河水很清，看得见底下的石头……你听见了吗？"
    + "我们沿着河一直往前走走过了桥走过了田野走过了村庄" * 8
    + "。\n第二天又下雨了。",
    "en": "The morning light came slowly through the window. Somewhere below, a door was opened! "
    "The children ran down the lane; they laughed… Did you hear them?\n"
    + "and we went on along the river over the bridge through the fields past the village " * 6
    + ".\nThe next day it rained.",
}
SPEEDS = (1.0, 2.0)


def run() -> dict[str, float]:
    """Measure and return the figure; prints each text."""
    ratios = []
    with engine() as process:
        for language, text in TEXTS.items():
            for speed in SPEEDS:
                segments = segment(text)
                chunks = [chunks_of(process, part, language=language, speed=speed) for part in segments]
                samples, joints = _joined(segments, chunks, speed)
                ratios += [_ratio(samples, joints), *_label_ratios(samples)]
                print(
                    f"{language} at {speed}: {len(segments)} segments, {len(joints)} joints, "
                    f"ratio {ratios[-3]:.4f}, beside the label {max(ratios[-2:]):.4f}",
                    flush=True,
                )
    return {"joint_ratio": round(max(ratios), 4)}


def _joined(
    segments: list[str], chunks: list[list[bytes]], speed: float
) -> tuple[NDArray[np.int32], list[int]]:
    """The assembled samples and where they were joined: where each chunk begins, and each pause."""
    pauses = [pause_after_ms(text, speed=speed) for text in segments]
    openers = [partial(_opened, b"".join(parts)) for parts in chunks]
    target = io.BytesIO()
    write_joined(
        target,
        openers,
        pauses_ms=pauses,
        label=implicit_label(producer="bench", produce_id="bench"),
        peak_count=10,
    )
    joints, at = [], 0
    for parts, pause_ms in zip(chunks, pauses, strict=True):
        for part in parts:
            joints.append(at)
            at += len(part) // 2
        joints.append(at)
        at += round(pause_ms * SAMPLE_RATE_HZ / 1000)
    samples = np.frombuffer(read_wav(target.getvalue()).pcm, "<i2").astype(np.int32)
    return samples, [joint for joint in joints if 0 < joint < len(samples)]


def _label_ratios(speech: NDArray[np.int32]) -> Iterator[float]:
    """The same where label and speech begin and end, with the rest between them, for both places of the label."""
    sounds = {"label": explicit.tone_label(SAMPLE_RATE_HZ), "speech": speech.astype(np.int16)}
    rest_samples = SAMPLE_RATE_HZ * explicit.REST_MS // 1000
    for position in explicit.POSITIONS:
        parts = explicit.with_label(
            iter([sounds["speech"]]), iter([sounds["label"]]), at=position, sample_rate_hz=SAMPLE_RATE_HZ
        )
        # Silence on either side: what begins or ends with a step clicks there.
        samples = np.concatenate([np.zeros(AROUND_SAMPLES), *parts, np.zeros(AROUND_SAMPLES)])
        first = len(sounds["label" if position == explicit.AT_START else "speech"]) + AROUND_SAMPLES
        joints = [AROUND_SAMPLES, first, first + rest_samples, len(samples) - AROUND_SAMPLES]
        yield _ratio(samples.astype(np.int32), joints)


def _opened(pcm: bytes) -> AbstractContextManager[BinaryIO]:
    return io.BytesIO(wav_file(pcm, sample_rate_hz=SAMPLE_RATE_HZ))


def _ratio(samples: NDArray[np.int32], joints: list[int]) -> float:
    steps = np.abs(np.diff(samples))
    near = np.zeros(len(steps), bool)
    for first, last in _windows(joints):
        near[max(0, first) : last] = True
    return float(steps[near].max() / steps[~near].max())


def _windows(joints: list[int]) -> Iterator[tuple[int, int]]:
    """The steps around each joint; step n leads from sample n to the next."""
    for joint in joints:
        yield joint - 1 - AROUND_SAMPLES, joint + AROUND_SAMPLES
