"""Names, messages and docs use plain technical English: no reviewed phrase comes back."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/reference/reading-answers.md"
"""Answers of models, in their own words."""

PHRASES = {
    "told apart": "distinguished", "tells apart": "distinguishes",
    "be told from": "be distinguished from",
    "tells nothing": "is no evidence, returns nothing",
    "tells none": "returns none",
    "context tells": "the context gives the answer",
    "reader is told": "is shown, is reported", "stranger": "untrusted", "strangers": "untrusted",
    "speaks of": "covers, mentions", "gives way": "is loosened, is cut",
    "says aloud": "warns, reports", "still said": "still shown", "mend": "fix", "mends": "fixes",
    "nobody knows": "is not known", "nobody says": "is not known",
    "could not be had": "is not available", "to be had from": "is not available",
    "slip of the pen": "mistake", "slips of the pen": "mistake",
    "under our hands": "was modified concurrently", "asks nothing of": "sets no limit for",
    "counts for nothing": "is excluded", "count for nothing": "are excluded",
    "knows nothing of": "is missing from, does not import",
    "says not": "does not say",
}  # fmt: skip
"""What has to be read twice, and what to write instead."""

NAMES = {
    "said": "answer, message, stated", "told": "reason, reported", "walked": "visited",
    "owed": "expected", "lot": "batch", "forgetful": "without a store", "speaker": "sender",
}  # fmt: skip
"""Names that do not say what they hold, and what to look for instead."""


@cache
def texts() -> dict[Path, str]:
    code = (ROOT / "fairgate").rglob("*.py")
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / ".github").glob("*.md")]
    paths = sorted({*code, *pages} - {EXAMPLES})
    return {path: path.read_text("utf-8") for path in paths}


def phrases_in(text: str) -> list[str]:
    """Return a sentence for each phrase, also where it continues on another line."""
    flat = " ".join(text.lower().split()).replace(" # ", " ")
    flat = flat.replace('" f"', "").replace('" "', "")
    return [
        f"{phrase!r}; write: {instead}"
        for phrase, instead in PHRASES.items()
        if phrase in flat and re.search(rf"\b{phrase}\b", flat)
    ]


def names_in(text: str) -> list[str]:
    """Return a sentence for each identifier; words in strings and comments are none."""
    if not re.search(rf"\b_?(?:{'|'.join(NAMES)})\b", text, re.IGNORECASE):
        return []
    found = {name: name.lower().strip("_") for name in identifiers(text)}
    return [
        f"{name!r}; write, for instance: {NAMES[plain]}"
        for name, plain in found.items()
        if plain in NAMES
    ]


def identifiers(text: str) -> set[str]:
    named = (
        getattr(node, field, None)
        for node in ast.walk(ast.parse(text))
        for field in ("name", "arg", "id", "attr")
    )
    return {name for name in named if isinstance(name, str)}


def test_no_phrase_and_no_name_comes_back():
    assert [f"{path}: {hit}" for path, text in texts().items() for hit in phrases_in(text)] == []
    code = {path: text for path, text in texts().items() if path.suffix == ".py"}
    assert [f"{path}: {hit}" for path, text in code.items() for hit in names_in(text)] == []


@pytest.mark.parametrize(("text", "count"), [
    ("It cannot be told from 0.", 1),
    ("Reads a stranger's data.", 1),
    ("They are told\n    apart here.", 1),
    ('raise ValueError(\n    "the context "\n    f"tells the answer")', 1),
    ("A dependency is missing from the list.", 0),
    ("An amendment, recommended.", 0),
    ("He told the story.", 0),
])  # fmt: skip
def test_whole_phrases_are_found(text, count):
    assert len(phrases_in(text)) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [("said = 1\n", 1), ("x = 'said'  # said\n", 0), ("class Told: ...\n", 1), ("untold = 2\n", 0)],
)
def test_only_identifiers_are_names(text, count):
    assert len(names_in(text)) == count
