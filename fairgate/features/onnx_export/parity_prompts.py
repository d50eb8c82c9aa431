"""The prompts on which an exported decoder is compared with its original: as the gate asks them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from fairgate.onnx.prompts import PromptTokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityPrompt:
    """A prompt as tokens, and by which tokens each of its labels can begin."""

    text: str
    tokens: list[int]
    starts: list[list[int]]
    """For each label the first tokens of its spellings that no other label shares."""

    @property
    def read_from(self) -> int:
        """Return the first token that is predicted in the comparison: the last 64 are."""
        return max(1, len(self.tokens) - 64)


def parity_prompts(tokenizer: PromptTokenizer) -> list[ParityPrompt]:
    """Return the 28 packaged prompts as this model reads them."""
    file = resources.files("fairgate").joinpath("data/parity/prompts.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    tokens = tokenizer.encode([row["prompt"] for row in rows])
    return [
        ParityPrompt(text=row["prompt"], tokens=ids, starts=_starts(row["labels"], tokenizer))
        for ids, row in zip(tokens, rows, strict=True)
    ]


def _starts(labels: Sequence[str], tokenizer: PromptTokenizer) -> list[list[int]]:
    found = [
        {
            ids[0]
            for space in ("", " ")
            for form in (label, label.lower(), label.capitalize())
            if (ids := tokenizer.encode_fragment(space + form))
        }
        for label in labels
    ]
    shared = {one for n, own in enumerate(found) for other in found[:n] for one in own & other}
    return [sorted(own - shared) for own in found]
