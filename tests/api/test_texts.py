"""Annotated and normalised texts over the API."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import User
from billing.models import Hold
from tests.api.problems import assert_problem
from tests.cast import Api
from tts.models import Segment, SynthesisJob, Voice

JOBS, QUOTES = "/api/v1/jobs", "/api/v1/quotes"


@pytest.fixture
def preset(alice: User) -> Voice:
    return Voice.objects.filter(kind="preset").order_by("pk")[0]


def rows() -> tuple[int, int, int]:
    return SynthesisJob.objects.count(), Segment.objects.count(), Hold.objects.count()


def test_a_mistaken_annotation_is_shown_at_its_place(alice_api: Api, preset: Voice) -> None:
    before = rows()
    body = {"voice_id": str(preset.pk), "text": "她[hoa4]奇<strong>"}
    for path in (JOBS, QUOTES):
        problem = assert_problem(alice_api.send("POST", path, body), 400, "annotation_invalid", field="text")
        syllable, tag = problem["mistakes"]
        assert (syllable["problem"], syllable["start"], syllable["end"]) == ("pinyin", 1, 7)
        assert (syllable["suggestion"], syllable["allowed"]) == ("[hao4]", ["[hào]", "[hao4]", "[h][ào]"])
        assert (tag["problem"], tag["start"], tag["end"]) == ("not_closed", 8, 16)
        assert "hoa4" not in problem["detail"]
    assert rows() == before


def test_a_quote_tells_what_will_be_spoken_and_prices_what_was_written(alice_api: Api, preset: Voice) -> None:
    def quoted(text: str) -> dict[str, Any]:
        answer: dict[str, Any] = alice_api.send(
            "POST", QUOTES, {"voice_id": str(preset.pk), "text": text}
        ).json()
        return answer

    figures = quoted("涨了12.5%[breath]。I have 3 apples.")
    assert figures["segments"] == ["涨了12.5%[breath]。I have 3 apples."]
    assert figures["spoken"] == ["涨了百分之十二点五[breath]。I have three apples."]
    assert figures["characters"] == len("涨了12.5%。I have 3 apples.") + 1
