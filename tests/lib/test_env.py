"""Settings from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.lib.env import env_bool, env_int, env_list, env_text


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXAMPLE", raising=False)
    monkeypatch.delenv("EXAMPLE_FILE", raising=False)


def test_a_variable_wins_over_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE", "given")
    assert env_text("EXAMPLE", "default") == "given"


def test_an_empty_variable_is_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE", "")
    assert env_text("EXAMPLE", "default") == ""


def test_a_secret_is_read_from_its_file_without_the_line_break(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for the environment\n", encoding="utf-8")
    monkeypatch.setenv("EXAMPLE_FILE", str(secret))
    assert env_text("EXAMPLE") == "not for the environment"


def test_the_variable_itself_wins_over_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXAMPLE", "given")
    monkeypatch.setenv("EXAMPLE_FILE", str(tmp_path / "missing"))
    assert env_text("EXAMPLE") == "given"


def test_a_file_that_is_named_but_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EXAMPLE_FILE", str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        env_text("EXAMPLE", "default")


def test_a_variable_without_a_default_must_be_set() -> None:
    with pytest.raises(ImproperlyConfigured, match="Set EXAMPLE"):
        env_text("EXAMPLE")


@pytest.mark.parametrize("word", ["1", "true", "TRUE", "yes", "on"])
def test_words_for_true(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("EXAMPLE", word)
    assert env_bool("EXAMPLE", False) is True


@pytest.mark.parametrize("word", ["0", "false", "False", "no", "off", ""])
def test_words_for_false(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("EXAMPLE", word)
    assert env_bool("EXAMPLE", True) is False


@pytest.mark.parametrize("word", ["ja", "2", "tru"])
def test_no_other_word_is_a_truth_value(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("EXAMPLE", word)
    with pytest.raises(ImproperlyConfigured, match="true or false"):
        env_bool("EXAMPLE", True)


def test_truth_values_have_defaults() -> None:
    assert env_bool("EXAMPLE", True) is True
    assert env_bool("EXAMPLE", False) is False


def test_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env_int("EXAMPLE", 7) == 7
    monkeypatch.setenv("EXAMPLE", "42")
    assert env_int("EXAMPLE", 7) == 42


@pytest.mark.parametrize("word", ["", "4.2", "many"])
def test_what_is_no_whole_number_is_an_error(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("EXAMPLE", word)
    with pytest.raises(ImproperlyConfigured, match="whole number"):
        env_int("EXAMPLE", 7)


def test_lists_are_split_at_commas_and_empty_parts_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env_list("EXAMPLE") == []
    assert env_list("EXAMPLE", "a,b") == ["a", "b"]
    monkeypatch.setenv("EXAMPLE", " a.example , ,b.example,")
    assert env_list("EXAMPLE", "c") == ["a.example", "b.example"]
