"""The studio marks characters with several readings and offers them."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.pages.test_studio_texts import answer
from tts.models import Voice
from tts.views.spoken_preview import MAX_MARKS

pytestmark = pytest.mark.django_db
MARK = re.compile(r'data-reading-of="(.)" data-start="(\d+)"')


def test_each_character_has_its_place_in_the_field_and_its_readings(
    alice_client: Client, alices_voice: Voice
) -> None:
    text = "😀 **银行**很大。\r\n他还在。"
    page = answer(alice_client, alices_voice, text)
    field = text.replace("\r\n", "\n").encode("utf-16-le")
    found = [(character, int(start)) for character, start in MARK.findall(page)]
    assert [character for character, _ in found] == ["行", "还"]
    for character, start in found:
        assert field[2 * start : 2 * start + 2].decode("utf-16-le") == character
    assert "2 characters with several readings" in page
    assert 'data-annotation="[xíng]"' in page
    # Without scripts it is copied by hand.
    assert "<code>[xíng]</code> 行走" in page
    assert "行走" in page
    assert "2 个多音字" in answer(alice_client, alices_voice, text, "zh-hans")


def test_a_neutral_tone_is_written_by_its_number(alice_client: Client, alices_voice: Voice) -> None:
    assert 'data-annotation="[de5]"' in answer(alice_client, alices_voice, "我的书。")


def test_what_is_annotated_already_and_what_is_not_typed_is_not_marked(
    alice_client: Client, alices_voice: Voice
) -> None:
    page = answer(alice_client, alices_voice, "他[hào]学，重[chóng]来12处。")
    assert [character for character, _ in MARK.findall(page)] == ["重", "处"]
    assert MARK.findall(answer(alice_client, alices_voice, "He is here.")) == []


def test_a_long_text_brings_a_bounded_number_of_menus(alice_client: Client, alices_voice: Voice) -> None:
    page = answer(alice_client, alices_voice, "银行很大。" * 300)
    assert len(MARK.findall(page)) == MAX_MARKS
