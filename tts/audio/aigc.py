"""The implicit label: the container's own word that what it holds was made by a machine.

China's labelling measures (in force since 2025-09-01) ask for a field `AIGC` with one plain JSON string; its place is a
RIFF chunk in WAV, a TXXX frame in MP3, a Vorbis comment in FLAC and Ogg, a key of the `moov` metadata in MP4.
"""

from __future__ import annotations

import json
import re
import struct
from typing import BinaryIO, Final

KEY: Final = "AIGC"
CHUNK_ID: Final = b"AIGC"
# Printable ASCII without space, quotes and backslash: what every container and every reader takes.
NAME_PATTERN: Final = re.compile(r"[!#-&(-\[\]-~]{1,200}")
# A label has about 250 bytes. A longer chunk under its name is none of ours.
MAX_LABEL_BYTES: Final = 4_096


class LabelMissing(Exception):
    """The label could not be read back: such a file is not delivered."""


def implicit_label(*, producer: str, produce_id: str) -> str:
    """The JSON text of the label, in the order of the standard. Who made it is also the first who passes it on.

    Raises ValueError where a name holds what a label may not.
    """
    for name in (producer, produce_id):
        if not NAME_PATTERN.fullmatch(name):
            raise ValueError(
                "a name in a label is 1 to 200 printable ASCII characters without space or quotes"
            )
    return json.dumps(
        {
            "Label": "1",
            "ContentProducer": producer,
            "ProduceID": produce_id,
            "ReservedCode1": "",
            "ContentPropagator": producer,
            "PropagateID": produce_id,
            "ReservedCode2": "",
        },
        separators=(",", ":"),
    )


def label_chunk(label: str) -> bytes:
    """The label as a chunk of a RIFF file."""
    content = label.encode("ascii")
    return struct.pack("<4sI", CHUNK_ID, len(content)) + content + bytes(len(content) % 2)


def read_chunk_label(file: BinaryIO) -> str | None:
    """The label of an open RIFF file, wherever its chunk stands; None where it has none."""
    file.seek(0)
    if file.read(12)[:4] != b"RIFF":
        return None
    while len(header := file.read(8)) == 8:
        name, size = struct.unpack("<4sI", header)
        if name == CHUNK_ID and size <= MAX_LABEL_BYTES:
            content = file.read(size)
            return content.decode("ascii", "replace") if len(content) == size else None
        file.seek(size + size % 2, 1)
    return None
