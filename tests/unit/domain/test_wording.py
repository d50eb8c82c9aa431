"""What users wrote is shown short, on one line, and without power over terminal or runner."""

import pytest

from fairgate.domain.wording import harmless, listed, nearest, quoted, shown, suggestion


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        (True, "true"),
        (0.1, "0.1"),
        (3, "3"),
        ("0.1", "'0.1' (text)"),
        ("", "'' (text)"),
        ([], "an empty list"),
        ([1], "a list of 1 entry"),
        ((1, 2), "a list of 2 entries"),
        ({}, "an empty mapping"),
        ({"a": 1}, "a mapping"),
        (object(), "object"),
    ],
)
def test_shown(value, words):
    assert shown(value) == words


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain Größe", "plain Größe"),
        ("a\nb\tc\0", "a\\nb\\tc\\x00"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("\x1b[31m", "\\x1b[31m"),
        ("::error::", ": :error: :"),
        (":::::", ": : : : :"),
        ("##[error]", "## [error]"),
        ("\ud800", "\\ud800"),
    ],
)
def test_harmless(text, clean):
    assert harmless(text) == clean


def test_a_long_text_is_cut():
    assert quoted("x" * 1000) == f"'{'x' * 59}…'"
    assert quoted("x" * 60) == f"'{'x' * 60}'"
    assert len(quoted("\0" * 1000)) <= 62


def test_nearest_ignores_case_and_finds_parts():
    assert nearest("Gendr", ["race", "gender"]) == ["gender"]
    assert nearest("set-equivalance", ["set-equivalence"]) == ["set-equivalence"]
    assert nearest("equivalence", ["set-equivalence"]) == ["set-equivalence"]
    assert nearest("zzz", ["race"]) == []
    assert nearest("basline", ["baseline", "batch-size"]) == ["baseline"]
    assert sorted(nearest("mr1", ["mr11", "mr12"])) == ["mr11", "mr12"]
    assert nearest("x" * 100_000, ["race"]) == []


def test_names_are_listed_and_the_nearest_suggested():
    assert [listed(names) for names in ("", "a")] == ["", "`a`"]
    assert listed(["a", "b", "c"]) == "`a`, `b` or `c`"
    assert suggestion("gendr", ["gender", "race"]) == "did you mean `gender`?"
    assert suggestion("q", ["race", "race"]) == "known: `race`"
    assert suggestion("q", []) == "there are none to choose from"


def test_of_many_names_the_nearest_few_are_told():
    said = suggestion("nope", [f"s{i}#race/black" for i in range(2999)] + ["s0#note"])
    assert said.startswith("known: `s0#note`, ")
    assert said.endswith(" and 2,995 more")
    assert said.count("`") == 10
    few = [f"xyz{i}" for i in range(40)]
    assert suggestion("nope", few) == f"known: {listed(few, last='and')}"
