"""Rare words of reports stand in the glossary."""

import html
import re
from pathlib import Path

from fakes.shipped_phrases import tokenizer

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs/reference/glossary.md").read_text("utf-8").lower()
RAREST_EVERYDAY = 15_000
"""Rank in the vocabulary of BERT, which is sorted by frequency; rarer words are explained."""
KNOWN = {
    "yaml", "json", "jsonl", "sha", "checkout", "fairgate", "onnxruntime", "reproduce", "unchanged",
    "wording", "apologise", "clearest", "robustness", "evaluated", "unbiased", "amb", "dis",
}  # fmt: skip
"""Words that a developer knows, and those of the example."""


def rare_words():
    """Map each rare word of a golden report, outside of code, to the reports that have it."""
    words = {}
    for file in (ROOT / "tests/golden/expected").glob("*/*"):
        if file.suffix in (".md", ".txt", ".html"):
            text = re.sub(
                r"(?s)<(style|script|code|pre|bdi)\b.*?</\1>", " ", file.read_text("utf-8")
            )
            text = html.unescape(re.sub(r"<[^>]+>", " ", html.unescape(text)))
            text = re.sub(r"(?s)```.*?```|`[^`]*`|rag-[a-z-]+", " ", text)
            for word in re.findall(r"[a-z][a-z-]+", text.lower()):
                words.setdefault(word, set()).add(f"{file.parent.name}/{file.name}")
    return {
        word: files
        for word, files in words.items()
        if len(ids := tokenizer().encode(word, add_special_tokens=False).ids) > 1
        or ids[0] > RAREST_EVERYDAY
    }


def test_rare_words_of_reports_stand_in_the_glossary():
    words = rare_words()
    assert len(words) > 30
    explained = " ".join(re.findall(r"^- \*\*(.+?)\*\*:", GLOSSARY, re.MULTILINE))
    missing = {
        word: files
        for word, files in words.items()
        if word not in KNOWN and word.removesuffix("s") not in explained
    }
    assert sorted(missing) == []
