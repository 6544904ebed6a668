"""The Chinese catalogue: complete, without leftovers, and written as Chinese is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polib
import pytest
from django.utils.translation import override, trans_real

from portal.lib import catalogues

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "portal" / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
PLACEHOLDER = re.compile(r"%\(\w+\)[\d.]*[a-z]|%[sd]|\{\w*\}")
TAG = re.compile(r"</?\w+[^>]*>")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Names and units are the same in both languages.
SAME = {"GPU", "CPU", "{decibels} dBFS", "%(label)s: %(value)s"}


def entries() -> list[polib.POEntry]:
    return [entry for entry in polib.pofile(str(CATALOGUE)) if not entry.obsolete]


def translations(entry: polib.POEntry) -> list[str]:
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


def test_nothing_is_missing_empty_or_fuzzy() -> None:
    assert catalogues.find_problems() == []


def test_there_are_no_leftovers() -> None:
    assert [entry.msgid for entry in polib.pofile(str(CATALOGUE)) if entry.obsolete] == []


def test_placeholders_and_tags_are_those_of_the_message() -> None:
    wrong = [
        entry.msgid
        for entry in entries()
        for text in translations(entry)
        for pattern in (PLACEHOLDER, TAG)
        if sorted(pattern.findall(text)) != sorted(pattern.findall(entry.msgid_plural or entry.msgid))
    ]
    assert wrong == []


def test_every_translation_is_chinese() -> None:
    plain = [
        entry.msgid
        for entry in entries()
        for text in translations(entry)
        if not CHINESE.search(text) and entry.msgid not in SAME
    ]
    assert plain == []


@pytest.mark.parametrize(
    ("fault", "pattern"),
    [
        ("half-width punctuation beside Chinese", r"[\u4e00-\u9fff][,;:!?]|[,;!?](?=[\u4e00-\u9fff])"),
        ("a full stop of English", r"[\u4e00-\u9fff]\.(?!\w)"),
        ("no space between Chinese and Latin letters", r"[\u4e00-\u9fff][A-Za-z]|[A-Za-z][\u4e00-\u9fff]"),
        ("no space between Chinese and digits", r"[\u4e00-\u9fff]\d|\d[\u4e00-\u9fff]"),
        ("a space between two Chinese characters", r"[\u4e00-\u9fff] [\u4e00-\u9fff]"),
        ("straight quotes", r'[\u4e00-\u9fff]"|"[\u4e00-\u9fff]'),
        ("the familiar form of address", "你"),
    ],
)
def test_chinese_is_set_as_chinese_is(fault: str, pattern: str) -> None:
    found = []
    for entry in entries():
        for text in translations(entry):
            # What a placeholder brings is of its own kind.
            shown = TAG.sub("", PLACEHOLDER.sub("▢", text))
            if re.search(pattern, shown):
                found.append(text)
    assert found == [], fault


def test_a_message_that_ends_a_sentence_ends_one_in_chinese() -> None:
    wrong = [
        (entry.msgid, text)
        for entry in entries()
        for text in translations(entry)
        if entry.msgid.endswith((".", "?")) != text.endswith(("。", "？", "）。"))
        and not entry.msgid.endswith(("…", ":"))
    ]
    assert wrong == []


def test_compiled_messages_are_what_people_see(tmp_path: Path) -> None:
    locales = tmp_path / "locale"
    shutil.copytree(CATALOGUE.parents[2], locales)
    catalogues.compile_catalogues(locales)
    with (locales / "zh_Hans" / "LC_MESSAGES" / "django.mo").open("rb") as file:
        compiled = trans_real.gettext_module.GNUTranslations(file)
    assert compiled.gettext("Studio") == "工作台"
    assert compiled.ngettext("%(count)s minute", "%(count)s minutes", 5) == "%(count)s 分钟"
    with override("zh-hans"):
        assert trans_real.gettext("Studio") == "工作台"


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="The gettext programs are not installed.")
def test_the_catalogue_holds_what_makemessages_finds(tmp_path: Path) -> None:
    for folder in catalogues.SOURCE_FOLDERS:
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("locale", "__pycache__")
        )
    (tmp_path / "locale").mkdir()
    command = [
        sys.executable,
        "-m",
        "django",
        "makemessages",
        "-l",
        "zh_Hans",
        "--no-location",
        "-e",
        "html,txt,py",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=environment)
    found = polib.pofile(str(tmp_path / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"))
    wanted = {(entry.msgctxt, entry.msgid, entry.msgid_plural) for entry in found}
    known = {(entry.msgctxt, entry.msgid, entry.msgid_plural) for entry in entries()}
    assert wanted - known == set()
    assert known - wanted == set()
