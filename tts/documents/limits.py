"""Every limit of an uploaded document, each with its reason."""

from __future__ import annotations

from typing import Final

# A novel is 1 to 2 MB of text; what makes books larger is pictures, which are not read.
MAX_UPLOAD_BYTES: Final = 10 * 1024 * 1024

# Three long novels. What is found is sent back whole, so that chapters can be chosen from it.
MAX_DOCUMENT_CHARACTERS: Final = 2_000_000

# Long web novels have about this many; a list of more helps nobody.
MAX_CHAPTERS: Final = 3_000

# Of a document's own title, which is only shown; a chapter's is at most tts.text.limits.MAX_TITLE_CHARACTERS.
MAX_DOCUMENT_TITLE_CHARACTERS: Final = 120

# -- Archives (docx, epub) -------------------------------------------------------------------------------------

# Books with a file for every page and every picture stay below it.
MAX_ENTRIES: Final = 10_000

# Declared sizes of everything together. Pictures do not shrink, and text does by four to ten times.
MAX_UNPACKED_BYTES: Final = 200 * 1024 * 1024

# Text packs at most about twenty times; a bomb a thousand times.
MAX_RATIO: Final = 200
# Smaller parts may pack better: a page of spaces is no bomb.
RATIO_COUNTS_FROM_BYTES: Final = 1024 * 1024

# One part, and all parts that are read, as they come out of the archive, whatever their sizes were declared to be.
MAX_PART_BYTES: Final = 16 * 1024 * 1024
MAX_READ_BYTES: Final = 48 * 1024 * 1024

# -- What the reading child may use ----------------------------------------------------------------------------

# A part of 16 MiB as a tree takes about 200 MiB.
CHILD_WORKING_MEMORY_BYTES: Final = 384 * 1024 * 1024

# A book of a million characters takes about a second.
CHILD_CPU_SECONDS: Final = 10

# Waiting time, start-up included; below the 30 s after which gunicorn gives up on a request.
CHILD_WALL_SECONDS: Final = 25.0

# MAX_DOCUMENT_CHARACTERS in UTF-8, with what JSON adds.
CHILD_MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024
