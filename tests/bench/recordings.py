"""Recordings of eleven real speakers, for judging adaptation. They come from Debian's packages, never from the tree.

asterisk-core-sounds-*-g722 (CC BY-SA 3.0 and CC BY 3.0; 16 kHz): Allison Smith, June Wallack, Carlo, and
ivrvoice.ru's speaker. asterisk-prompt-* (GPL 2, BSD, CC BY-SA 3.0; 8 kHz): July Jiménez, Armelle Desjardins, Paola
Dal Zot. codec2-examples (LGPL 2.1; 8 kHz): the radio operators VE9QRP and VK5QI. pocketsphinx-testdata (BSD; 16 kHz):
a LibriVox reader and the reader of playing cards.
"""

from __future__ import annotations

import os
import subprocess
import wave
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE_HZ = 24_000
SOUNDS = Path("/usr/share/asterisk/sounds")
CODEC2 = Path("/usr/share/codec2/wav")
SPHINX = Path("/usr/share/pocketsphinx/test/data")
PACKAGES = (
    "asterisk-core-sounds-en-g722",
    "asterisk-core-sounds-fr-g722",
    "asterisk-core-sounds-it-g722",
    "asterisk-core-sounds-ru-g722",
    "asterisk-prompt-es-co",
    "asterisk-prompt-fr-armelle",
    "asterisk-prompt-it-menardi-wav",
    "codec2-examples",
    "pocketsphinx-testdata",
)
# A clip as customers bring them, and where the recordings are short prompts, the longest ones put together.
CLIP_S = 12
LONGEST_PROMPTS = 6


@dataclass(frozen=True)
class Speaker:
    name: str
    sex: str
    folder: Path
    pattern: str


SPEAKERS = (
    Speaker("allison", "female", SOUNDS / "en_US_f_Allison", "*.g722"),
    Speaker("june", "female", SOUNDS / "fr_CA_f_June", "*.g722"),
    Speaker("ivrvoice", "female", SOUNDS / "ru_RU_f_IvrvoiceRU", "*.g722"),
    Speaker("july", "female", SOUNDS / "es", "*.gsm"),
    Speaker("armelle", "female", SOUNDS / "fr", "*.gsm"),
    Speaker("paola", "female", SOUNDS / "it_IT_f_Menardi", "*.wav"),
    Speaker("carlo", "male", SOUNDS / "it_IT_m_Carlo", "*.g722"),
    Speaker("librivox", "male", SPHINX / "librivox", "*.wav"),
    Speaker("cards", "male", SPHINX / "cards", "*.wav"),
    Speaker("ve9qrp", "male", CODEC2, "ve9qrp.wav"),
    Speaker("vk5qi", "male", CODEC2, "vk5qi.wav"),
)


def ensure_recordings() -> None:
    """Install the packages where they are missing.

    Raises:
        SystemExit: they are missing and this is not root on Debian.
    """
    if all(any(speaker.folder.glob(speaker.pattern)) for speaker in SPEAKERS):
        return
    if os.geteuid() != 0:
        raise SystemExit(f"This benchmark needs Debian's packages {' '.join(PACKAGES)}.")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "-qq", "update"], check=True, env=environment)
    install = ["apt-get", "-qq", "install", "-y", "--no-install-recommends", *PACKAGES]
    subprocess.run(install, check=True, env=environment, stdout=subprocess.DEVNULL)


def reference_clip(speaker: Speaker) -> bytes:
    """A canonical clip (24 kHz mono 16-bit WAV) of at most 12 s."""
    paths = sorted(speaker.folder.glob(speaker.pattern), key=lambda path: -path.stat().st_size)
    parts = [_decode(path) for path in paths[:LONGEST_PROMPTS]]
    samples = np.concatenate(parts)[: CLIP_S * SAMPLE_RATE_HZ]
    samples = samples * (0.5 / np.abs(samples).max())
    file = BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(SAMPLE_RATE_HZ)
        writer.writeframes(np.round(samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


def _decode(path: Path) -> NDArray[np.float32]:
    form = "g722" if path.suffix == ".g722" else None  # a bare stream: nothing in it says what it is
    with av.open(str(path), format=form) as container:
        resampler = av.AudioResampler("flt", "mono", SAMPLE_RATE_HZ)
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames]).astype(np.float32)
