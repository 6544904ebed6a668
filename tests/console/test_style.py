"""The console's own accent: told apart from the customers', the same in both dark blocks, and readable."""

from __future__ import annotations

import re

import pytest

from tests.pages import test_tokens as tokens

CONSOLE = (tokens.CSS / "console.css").read_text(encoding="utf-8")


def block(selector: str) -> dict[str, str]:
    """The custom properties that the first rule with this selector sets."""
    opening = CONSOLE.index("{", CONSOLE.index(f"{selector} {{"))
    return dict(tokens.DECLARATION.findall(CONSOLE[opening : CONSOLE.index("}", opening)]))


LIGHT = block("\n.console")
DARK_BY_SYSTEM = block(':root:not([data-theme="light"]) .console')
DARK_BY_CHOICE = block(':root[data-theme="dark"] .console')
THEMES = {
    "light": tokens.LIGHT | LIGHT,
    "dark": tokens.LIGHT | tokens.DARK_BY_CHOICE | LIGHT | DARK_BY_CHOICE,
}


def test_dark_is_the_same_by_system_and_by_choice() -> None:
    assert DARK_BY_SYSTEM == DARK_BY_CHOICE
    assert DARK_BY_CHOICE


def test_only_tokens_of_the_accent_are_replaced() -> None:
    assert set(LIGHT) == {
        "--accent",
        "--accent-hover",
        "--accent-ink",
        "--accent-soft",
        "--accent-line",
        "--focus",
    }
    assert set(DARK_BY_CHOICE) - {"--ink-on-accent"} == set(LIGHT)


@pytest.mark.parametrize("theme", THEMES)
def test_the_accent_is_another_one_than_the_customers(theme: str) -> None:
    customers = tokens.LIGHT if theme == "light" else tokens.LIGHT | tokens.DARK_BY_CHOICE
    assert {name for name in LIGHT if THEMES[theme][name] == customers[name]} == set()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("ink", "ground", "least"), tokens.PAIRS, ids=lambda value: str(value).lstrip("-"))
def test_every_pair_of_colours_can_be_read(theme: str, ink: str, ground: str, least: float) -> None:
    assert tokens.contrast(THEMES[theme][ink], THEMES[theme][ground]) >= least


def test_components_name_tokens_and_no_colours() -> None:
    rules = CONSOLE[CONSOLE.index(".console .topbar") :]
    assert re.findall(r"#[0-9a-f]{3,8}\b|rgba?\(", rules) == []
    used = set(re.findall(r"var\((--[\w-]+)", rules))
    assert used <= set(THEMES["dark"])
