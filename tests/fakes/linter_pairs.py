"""The hand-written pairs that the linter is measured by."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from fairgate.features.lint import EditKind, PairLinter
from fairgate.policy.definition_files import embedded_dimensions

DATA = Path(__file__).parents[1] / "data"


class LabelledPair(NamedTuple):
    kind: EditKind
    source: str
    follow_up: str
    fault: str
    """Class of the fault; empty where the pair is good."""


@cache
def linter():
    return PairLinter(embedded_dimensions())


@cache
def labelled_pairs(name="linter_pairs.txt"):
    """Return the pairs of a file, in its order."""
    pairs, source = [], ""
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("S "):
            source = line[2:]
        elif line[:2] in ("+ ", "- "):
            kind, follow_up, *fault = line[2:].split(" | ")
            assert len(fault) == (line[0] == "-"), line
            pairs.append(LabelledPair(EditKind(kind), source, follow_up, "".join(fault)))
    return tuple(pairs)


def agreement(pairs):
    """Return (precision, recall, pairs judged otherwise than labelled); broken is positive."""
    rejected = [pair for pair in pairs if linter().fault(*pair[:3]) is not None]
    broken = [pair for pair in pairs if pair.fault]
    hits = len([pair for pair in rejected if pair.fault])
    wrong = [pair for pair in pairs if (pair in rejected) != bool(pair.fault)]
    return hits / len(rejected), hits / len(broken), wrong
