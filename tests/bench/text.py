"""A book of a million characters, cut and put into words: what an upload of one costs a web process.

Half Chinese, half English, a number, a date or an amount in every third sentence, an annotation in every twentieth.
In a process of its own, so that the memory is that of the work.
"""

from __future__ import annotations

import json
import subprocess
import sys

CHARACTERS = 1_000_000
SCRIPT = """
import json, random, resource, sys, time

from tts.text.segmentation import segment
from tts.text.spoken import spoken_text

CHARACTERS = int(sys.argv[1])
PLAIN = (
    "那天夜里下了很大的雨，街上一个人也没有，只有远处的灯还亮着。",
    "他站在窗前，想起许多年以前的事情，却怎么也记不清她的样子了。",
    "The rain had stopped by the time they reached the old harbour, and nobody spoke for a while. ",
    "“You never told me,” she said quietly, and looked out over the water. ",
)
NUMBERS = (
    "{year}年{month}月{day}日，他花了¥{amount}.50元买了{count}本书，便宜了{count}%。",
    "会议在下午{hour}:{minute}开始，一共有{count}个人，电话138{phone}。",
    "On {month}/{day}/{year} at {hour}:{minute} pm the price rose {count}.5% to ${amount}.99. ",
    "Chapter {count} begins on page {amount}, about {count} km from the city. ",
)
ANNOTATED = ("他对报道[j][ǐ]予好评[breath]，<strong>真的</strong>很好。", "They will [R][IH1][K][ER0][D] it today. ")

chance = random.Random(1)
parts, length = [], 0
while length < CHARACTERS:
    kind = chance.random()
    chosen = ANNOTATED if kind < 0.05 else NUMBERS if kind < 0.38 else PLAIN
    sentence = chance.choice(chosen).format(
        year=chance.randint(1900, 2030), month=chance.randint(1, 12), day=chance.randint(1, 28),
        hour=chance.randint(1, 12), minute=chance.randint(10, 59), count=chance.randint(2, 99),
        amount=chance.randint(100, 9999), phone=chance.randint(10_000_000, 99_999_999),
    )
    parts.append(sentence + ("\\n" if chance.random() < 0.1 else ""))
    length += len(parts[-1])
book = "".join(parts)[:CHARACTERS]
del parts
started_at = time.perf_counter()
segments = segment(book)
cut_s = time.perf_counter() - started_at
spoken = [spoken_text(part, language="", voice_language="zh") for part in segments]
seconds = time.perf_counter() - started_at
if "".join(segments) != book:
    raise SystemExit("the segments are not the book")
left = sum(any(character.isdecimal() for character in part.replace("IH1", "").replace("ER0", "")) for part in spoken)
if left:
    raise SystemExit(f"{left} segments have digits left")
print(json.dumps({
    "seconds": seconds, "segmentation_seconds": cut_s, "segments": len(segments),
    "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


def run() -> dict[str, float]:
    """Return `seconds` for both, of them `segmentation_seconds`, the most memory `rss_mb`, and how many `segments`."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(CHARACTERS)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {name: round(value, 3) for name, value in figures.items()}
