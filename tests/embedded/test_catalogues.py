"""Message catalogues are compiled without the gettext programs, and what they lack is named."""

from __future__ import annotations

import gettext
from pathlib import Path

import pytest

from portal.lib import catalogues

HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=1; plural=0;\\n"\n\n'
)


@pytest.fixture
def write(tmp_path: Path):
    """Write a catalogue and source files; returns the problems that are found."""

    def find(catalogue: str, **sources: str) -> list[str]:
        path = tmp_path / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADER + catalogue, encoding="utf-8")
        for name, text in sources.items():
            folder, _, suffix = name.partition("_")
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"page.{suffix}").write_text(text, encoding="utf-8")
        return catalogues.find_problems(tmp_path, tmp_path / "locale")

    return find


def test_a_compiled_catalogue_is_what_gettext_reads(write, tmp_path):
    write(
        'msgid "Hello"\nmsgstr "你好"\n\n'
        'msgctxt "month"\nmsgid "May"\nmsgstr "五月"\n\n'
        'msgid "one job"\nmsgid_plural "%(n)s jobs"\nmsgstr[0] "%(n)s 个任务"\n'
    )
    [compiled] = catalogues.compile_catalogues(tmp_path / "locale")
    with compiled.open("rb") as file:
        translations = gettext.GNUTranslations(file)
    assert translations.gettext("Hello") == "你好"
    assert translations.pgettext("month", "May") == "五月"
    assert translations.ngettext("one job", "%(n)s jobs", 5) == "%(n)s 个任务"


def test_every_message_of_the_sources_must_be_in_the_catalogue(write):
    problems = write(
        'msgid "Known"\nmsgstr "已知"\n',
        portal_py='from x import gettext as _\n_("Known")\n_("Lost " "in code")\n_(name)\n',
        templates_html='{% load i18n %}{% translate "Known" %}\n{% translate "Lost in a template" %}\n'
        '{{ _("Inner") }}'
        "{% blocktranslate trimmed count n=n %}\n  {{ n }} job\n"
        "{% plural %}\n  {{ n }} jobs\n{% endblocktranslate %}",
    )
    assert problems == [
        "zh_Hans: page.py:3: not in the catalogue: 'Lost in code'",
        "zh_Hans: page.html:2: not in the catalogue: 'Lost in a template'",
        "zh_Hans: page.html:3: not in the catalogue: 'Inner'",
        "zh_Hans: page.html:3: not in the catalogue: '%(n)s job'",
    ]


def test_a_complete_catalogue_has_no_problems(write):
    assert (
        write(
            'msgid "%(n)s job"\nmsgid_plural "%(n)s jobs"\nmsgstr[0] "%(n)s 个任务"\n\n'
            '#~ msgid "Old"\n#~ msgstr ""\n',
            portal_py='ngettext("%(n)s job", "%(n)s jobs", 2)\n',
        )
        == []
    )


def test_empty_fuzzy_and_mangled_translations_are_named(write):
    assert write(
        'msgid "Empty"\nmsgstr ""\n\n'
        '#, fuzzy\nmsgid "Fuzzy"\nmsgstr "模糊"\n\n'
        'msgid "Costs {price}"\nmsgstr "费用 {prise}"\n'
    ) == [
        "zh_Hans: not translated: 'Empty'",
        "zh_Hans: fuzzy: 'Fuzzy'",
        "zh_Hans: other placeholders than its message: 'Costs {price}'",
    ]


def test_a_missing_catalogue_is_a_problem(tmp_path):
    problems = catalogues.find_problems(tmp_path, tmp_path / "locale")
    assert problems == ["zh_Hans: there is no catalogue django.po."]
