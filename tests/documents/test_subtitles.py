"""Subtitles: what is said when, on two lines, in both formats."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tts.documents.subtitles import LINE_WIDTH, SpokenPart, cues_of, srt, vtt


def test_both_formats_say_what_and_when():
    parts = [
        SpokenPart("你好，世界。", 0, 1_500, "旁白"),
        SpokenPart("Tom & Jerry <run> --> away.", 3_661_007, 3_663_000),
    ]
    assert srt(parts) == (
        "1\n00:00:00,000 --> 00:00:01,500\n旁白: 你好，世界。\n\n"
        "2\n01:01:01,007 --> 01:01:03,000\nTom & Jerry <run> → away.\n"
    )
    assert vtt(parts) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\n<v 旁白>你好，世界。</v>\n\n"
        "01:01:01.007 --> 01:01:03.000\nTom &amp; Jerry &lt;run&gt; --&gt; away.\n"
    )


def test_a_long_part_is_divided_at_sentences_and_its_time_shared():
    sentence = "This sentence has exactly fifty characters in it.."
    cues = cues_of([SpokenPart(f"{sentence} {sentence} {sentence}", 1_000, 16_000)])
    assert [cue.text for cue in cues] == [sentence] * 3
    assert cues[0].start_ms == 1_000
    assert cues[-1].end_ms == 16_000
    assert all(4_900 <= cue.end_ms - cue.start_ms <= 5_100 for cue in cues)


@pytest.mark.parametrize("speaker", ["", "Bob", "The old man of the hill", "山上的老人"])
def test_no_cue_has_more_than_two_lines_with_its_speaker(speaker: str):
    said = (
        "The wind came over the hill and nobody knew why it had come so early in the year, or what it meant."
    )
    for content in (srt([SpokenPart(said, 0, 9_000, speaker)]), vtt([SpokenPart(said, 0, 9_000, speaker)])):
        cues = [block.split("\n") for block in content.strip().split("\n\n") if "-->" in block]
        words = [cue[cue.index(next(line for line in cue if "-->" in line)) + 1 :] for cue in cues]
        assert max(map(len, words)) <= 2
        spoken = " ".join(" ".join(lines) for lines in words)
        assert [word for word in said.split() if word not in spoken] == []


def test_a_short_cue_stays_until_it_can_be_read_or_the_next_begins():
    parts = [SpokenPart("Yes.", 0, 200), SpokenPart("No.", 400, 600)]
    assert [(cue.start_ms, cue.end_ms) for cue in cues_of(parts)] == [(0, 400), (400, 1_100)]


def test_parts_out_of_order_are_refused():
    with pytest.raises(ValueError, match="in order"):
        cues_of([SpokenPart("a", 10, 5)])
    with pytest.raises(ValueError, match="in order"):
        cues_of([SpokenPart("a", 10, 20), SpokenPart("b", 0, 5)])


texts = st.text(alphabet=st.sampled_from("abc 你好世界，。. ,"), min_size=1, max_size=400)


@given(st.lists(texts, max_size=6))
@settings(deadline=None)
def test_cues_say_the_text_in_order_without_overlap(said: list[str]):
    parts = [SpokenPart(text, number * 9_000, number * 9_000 + 8_000) for number, text in enumerate(said)]
    cues = cues_of(parts)
    assert re.sub(r"\s", "", "".join(cue.text for cue in cues)) == re.sub(r"\s", "", "".join(said))
    assert all(cue.start_ms <= cue.end_ms for cue in cues)
    assert all(before.end_ms <= after.start_ms for before, after in itertools.pairwise(cues))
    for block in srt(parts).split("\n\n"):
        lines = block.strip("\n").split("\n")[2:]
        assert all(len(line) <= LINE_WIDTH for line in lines)
