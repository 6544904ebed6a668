"""Every limit of a text, each with its reason. Nothing else in the project repeats these numbers."""

from __future__ import annotations

from typing import Final

# About 20 minutes of Mandarin or 6 of English: a chapter. Longer texts are several jobs.
MAX_JOB_CHARACTERS: Final = 5_000

# What is thrown away in cleaning (emoji, markers, spaces) does not count, but is not unlimited either: beyond
# this a text is refused before it is looked at.
MAX_RAW_CHARACTERS: Final = 4 * MAX_JOB_CHARACTERS

# A segment is what one device speaks in one go. 300 characters of English are 20 s of speech.
MAX_SEGMENT_CHARACTERS: Final = 300

# By speech rather than by characters: a Chinese character takes as long as four letters. CosyVoice drifts and
# repeats beyond 80 to 100 Chinese characters; Kokoro takes at most 510 phoneme symbols, which are 110 of
# them.
MAX_SEGMENT_MS: Final = 24_000

# Where the text offers a good place to cut, segments stay below this: less is lost when one is retried, and
# several devices share a job.
PREFERRED_SEGMENT_MS: Final = 16_000

# The first segment is kept shorter, because nothing is heard before it is done.
FIRST_SEGMENT_MS: Final = 6_000

# Shorter pieces are joined to a neighbour: engines read single words badly, and each costs a round.
MIN_SEGMENT_MS: Final = 1_500

# Runs of signs that nobody speaks ("!?!?!?…", rows of dashes) are cut to this, so that no segment is without
# a word.
MAX_UNSPOKEN_RUN: Final = 16

# No language stacks more marks on one letter; "Zalgo" text stacks hundreds.
MAX_MARKS_PER_CHARACTER: Final = 8
