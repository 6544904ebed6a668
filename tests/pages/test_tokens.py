"""The design tokens: two themes that say the same, and contrast that people can read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CSS = Path(__file__).resolve().parents[2] / "static" / "css"
TOKENS = (CSS / "tokens.css").read_text(encoding="utf-8")
DECLARATION = re.compile(r"(--[\w-]+):\s*([^;]+);")
HEX = re.compile(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})")

TEXT = 4.5  # WCAG 2.2, 1.4.3
GRAPHICS = 3.0  # 1.4.11
SURFACES = ("--canvas", "--surface", "--sunken", "--hover")
STATES = ("ok", "warn", "bad", "live", "idle")
PAIRS = [
    *((ink, ground, TEXT) for ink in ("--ink", "--ink-soft", "--ink-muted") for ground in SURFACES),
    *(("--accent-ink", ground, TEXT) for ground in (*SURFACES, "--accent-soft")),
    *((f"--{state}-ink", f"--{state}-soft", TEXT) for state in STATES),
    *((f"--{state}-ink", ground, TEXT) for state in STATES for ground in SURFACES),
    *(("--ink", f"--{state}-soft", TEXT) for state in STATES),
    *(("--accent-ink", f"--{state}-soft", TEXT) for state in ("live", "ok", "warn", "bad")),
    ("--ink-muted", "--accent-soft", TEXT),
    ("--ink", "--warn-line", TEXT),
    ("--ink-on-accent", "--accent", TEXT),
    ("--ink-on-accent", "--accent-hover", TEXT),
    ("--surface", "--bad-fill", TEXT),
    ("--surface", "--bad-fill-hover", TEXT),
    *(("--line-strong", ground, GRAPHICS) for ground in ("--canvas", "--surface", "--sunken")),
    *(("--focus", ground, GRAPHICS) for ground in (*SURFACES, "--accent-soft")),
    *(("--accent", ground, GRAPHICS) for ground in (*SURFACES, "--accent-soft", "--line")),
]


def _block(after: str) -> dict[str, str]:
    start = TOKENS.index(after)
    opening = TOKENS.index("{", start)
    return dict(DECLARATION.findall(TOKENS[opening : TOKENS.index("}", opening)]))


LIGHT = _block(":root {")
DARK_BY_SYSTEM = _block(':root:not([data-theme="light"])')
DARK_BY_CHOICE = _block(':root[data-theme="dark"]')


def _luminance(colour: str) -> float:
    match = HEX.fullmatch(colour)
    assert match, f"{colour} is not written as #rrggbb"
    parts = [int(part, 16) / 255 for part in match.groups()]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours by WCAG 2."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_dark_is_the_same_by_system_and_by_choice() -> None:
    assert DARK_BY_SYSTEM == DARK_BY_CHOICE


def test_dark_replaces_only_what_light_defines() -> None:
    assert set(DARK_BY_CHOICE) <= set(LIGHT)
    colours = {name for name, value in LIGHT.items() if HEX.fullmatch(value)}
    assert colours == {name for name, value in DARK_BY_CHOICE.items() if HEX.fullmatch(value)}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "ground", "least"), PAIRS, ids=lambda value: str(value).lstrip("-"))
def test_every_pair_of_colours_can_be_read(theme: str, ink: str, ground: str, least: float) -> None:
    tokens = LIGHT if theme == "light" else LIGHT | DARK_BY_CHOICE
    assert contrast(tokens[ink], tokens[ground]) >= least


def _used_tokens() -> Iterator[tuple[str, str]]:
    for path in sorted(CSS.glob("*.css")):
        for name in re.findall(r"var\((--[\w-]+)", path.read_text(encoding="utf-8")):
            yield path.name, name


def test_styles_name_only_tokens_that_exist() -> None:
    own = {
        (path.name, name)
        for path in CSS.glob("*.css")
        for name, _value in DECLARATION.findall(path.read_text(encoding="utf-8"))
    }
    unknown = {use for use in _used_tokens() if use[1] not in LIGHT and use not in own}
    assert unknown == set()


def test_only_tokens_have_colours_of_their_own() -> None:
    """The console and the records give tokens other values; what uses them names them."""
    colour = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl)a?\(")
    found = {
        f"{path.name}: {line.strip()}"
        for path in CSS.glob("*.css")
        # Swagger UI knows one theme, and what stands around it goes with it; paper has no themes.
        if path.name not in ("api-docs.css", "invoice.css")
        for line in path.read_text(encoding="utf-8").splitlines()
        if colour.search(DECLARATION.sub("", line))
    }
    assert found == set()
