"""Every limit of a reference clip, each with its reason.

Nothing else in the project repeats these numbers.
"""

from __future__ import annotations

from typing import Final

# -- What a customer may upload ------------------------------------------------------------------------------

# 30 s of 96 kHz 24-bit stereo is 17 MB; 30 s of 48 kHz stereo at 16 or 24 bit, which is what recorders
# write, is 5.8 to 8.6 MB. Anything larger is not a short clip.
MAX_UPLOAD_BYTES: Final = 15 * 1024 * 1024

# CosyVoice needs one clean, complete sentence; under 3 s the voice is a guess.
MIN_CLIP_SECONDS: Final = 3.0

# CosyVoice asserts that its prompt lasts at most 30 s. We refuse rather than cut: the customer, not we,
# knows which part is the good one, and the transcript would no longer match.
MAX_CLIP_SECONDS: Final = 30.0

# Encoders pad: "exactly 30 s" of MP3, AAC or Opus decodes to up to 0.1 s more. That much is cut in silence.
MAX_CLIP_PADDING_SECONDS: Final = 0.1

# What the makers of CosyVoice recommend and what the pages tell people to aim for.
BEST_CLIP_SECONDS: Final = (3, 10)

# 7.1 is the most that a consumer format has. Each channel costs memory and time in the decoder.
MAX_CHANNEL_COUNT: Final = 8

# Telephone speech is the least that carries a voice; below it, one source sample becomes many of ours.
MIN_SAMPLE_RATE_HZ: Final = 8_000

# The highest rate of ordinary recorders. More only costs decoding time.
MAX_SAMPLE_RATE_HZ: Final = 192_000

# -- What is kept --------------------------------------------------------------------------------------------

# The output rate of CosyVoice 2 and 3 and of the built-in engine. A clip is kept as mono 16-bit PCM at it.
CANONICAL_SAMPLE_RATE_HZ: Final = 24_000
CANONICAL_SAMPLE_BYTES: Final = 2
MAX_CANONICAL_SAMPLES: Final = int(MAX_CLIP_SECONDS) * CANONICAL_SAMPLE_RATE_HZ

# -- What a decoded clip must at least hold ------------------------------------------------------------------

# The loudest half second of a whisper into a phone is around -45 dBFS; a muted microphone is below -60.
MIN_LOUDEST_DBFS: Final = -60.0

# Less detected speech than one short word is none: coughs and clicks reach 0.2 s.
MIN_SPEECH_SECONDS: Final = 0.3

# NaN, infinite and absurdly large float samples become zero. With more than one in a hundred it is no audio.
MAX_NOT_SOUND_RATIO: Final = 0.01

# -- What the decoding child may use -------------------------------------------------------------------------

# Address space on top of what its libraries take before they see the upload (about 60 MB resident):
# together under 200 MB. The hungriest legal clip, 30 s of 8 channels, needs about 50 MB of it.
CHILD_WORKING_MEMORY_BYTES: Final = 128 * 1024 * 1024

# Decoding and measuring 30 s takes about 0.5 s of processor time; a bomb is cut off at four times that.
CHILD_CPU_SECONDS: Final = 2

# Waiting time, start-up included. Half a second is usual; only a badly overloaded host comes near the limit,
# which lies below the 30 s after which gunicorn gives up on a request.
CHILD_WALL_SECONDS: Final = 20.0

# Its answer is a small report and at most 30 s of PCM (1.44 MB). It can write no more than this to any file.
CHILD_MAX_OUTPUT_BYTES: Final = 2 * 1024 * 1024
