"""Every limit of a text, each with its reason. Nothing else in the project repeats these numbers."""

from __future__ import annotations

from typing import Final

# Of a job that somebody waits for: about 20 minutes of Mandarin or 6 of English. More would keep a device from others
# who wait for theirs.
MAX_JOB_CHARACTERS: Final = 5_000

# Of a job of the other classes: a book of ordinary length, 13 hours of Mandarin or 4 of English. In a form, a Chinese
# character is nine bytes: so much fits into the body that a request may have.
MAX_LONG_JOB_CHARACTERS: Final = 200_000

# What is thrown away in cleaning (emoji, markers, spaces, names of speakers) does not count, but is not unlimited
# either: beyond so many times the limit a text is refused before it is looked at.
RAW_FACTOR: Final = 4
MAX_RAW_CHARACTERS: Final = RAW_FACTOR * MAX_JOB_CHARACTERS

# Of the sentence that a voice says before it is saved: enough to hear it, and cheap.
MAX_TEST_CHARACTERS: Final = 100

# A WAV file holds 4 GiB, which are 24.8 hours of 24 kHz mono. Speech may last a third longer than it is estimated to.
MAX_JOB_AUDIO_MS: Final = 18 * 3_600_000

# Each segment is a row, a decision and a settlement. A book has about 3,500; a script of single words would have one
# for each.
MAX_JOB_SEGMENTS: Final = 8_000

# A play has fewer; each is a row of the page where voices are chosen.
MAX_SPEAKERS: Final = 50

# A longer line is a paragraph, whatever it begins with. So many digits are still one segment.
MAX_TITLE_CHARACTERS: Final = 60

# A segment is what one device speaks in one go. 300 characters of English are 20 s of speech.
MAX_SEGMENT_CHARACTERS: Final = 300

# By speech rather than by characters: a Chinese character takes as long as four letters. CosyVoice drifts and
# repeats beyond 80 to 100 Chinese characters; Kokoro takes at most 510 phoneme symbols, which are 110 of
# them.
MAX_SEGMENT_MS: Final = 24_000

# What a segment may last as it is said by the workspace's pronunciations: a device speaks it in one go.
MAX_PRONOUNCED_MS: Final = 2 * MAX_SEGMENT_MS

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


def max_job_characters(job_class: str) -> int:
    """The most characters of a job of this class."""
    return MAX_JOB_CHARACTERS if job_class == "interactive" else MAX_LONG_JOB_CHARACTERS
