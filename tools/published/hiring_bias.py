"""The scores of a published résumé audit, judged again beside its own irrelevant edits.

`python tools/published/hiring_bias.py scores.csv.gz` prints, for each axis of the audit, what its
authors compute (how far scores of an edited résumé lie from those of the unedited one, whichever
way) beside the difference from irrelevant edits and who is named by a scan of the same scores: all
models together, and each alone. The file has a row an answer: `variant`, `model`, `jd` (a job
description), `run`, `score`.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import fairgate

PLACEBO, BASELINE, ANONYMOUS, NAMES = "placebo", "baseline", "anonymize", "firstName"
CONTROL = (PLACEBO, BASELINE)
ALL = "all models"
Row = Mapping[str, str]
Means = Mapping[tuple[str, str], Mapping[str, float]]
"""Axis and value of an edit to its mean score for each source, a model and a job."""


def read(path: str) -> list[Row]:
    """Return the answers about people, of models that were asked the irrelevant edits, too."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    axes = [row["variant"].partition("_")[0] for row in rows]
    able = {row["model"] for row, axis in zip(rows, axes, strict=True) if axis == PLACEBO}
    return [
        {
            **row,
            "who": row["variant"].partition("_")[2] or BASELINE,
            "axis": axis,
            "source": f"{row['model']} {row['jd']}",
        }
        for row, axis in zip(rows, axes, strict=True)
        if row["model"] in able and axis != ANONYMOUS
    ]


def means_of(rows: Sequence[Row]) -> Means:
    """Average the runs of each edit for each source."""
    scores: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        scores[row["axis"], row["who"]][row["source"]].append(float(row["score"]))
    return {
        edit: {source: fmean(runs) for source, runs in of_sources.items()}
        for edit, of_sources in scores.items()
    }


def absolute_difference(means: Means, edit: tuple[str, str]) -> float:
    """Return the authors' figure: the mean over sources of |mean of edit - mean of no edit|."""
    plain = means[BASELINE, BASELINE]
    return fmean(abs(score - plain[source]) for source, score in means[edit].items())


def beside_controls(means: Means, axis: str) -> float:
    """Return the mean over sources and edits of an axis less that of the irrelevant edits."""
    controls = [edit for edit in means if edit[0] in CONTROL]
    level = {
        source: fmean(means[edit][source] for edit in controls) for source in means[controls[0]]
    }
    own = [each for edit, each in means.items() if edit[0] == axis]
    return fmean(score - level[source] for each in own for source, score in each.items())


def scanned(
    rows: Sequence[Row], control: Sequence[str], by: str | None = None
) -> dict[str, Mapping[str, Any]]:
    """Return what a scan says of the scores now, for each value of a column or for all."""
    verdict = fairgate.scan(
        rows, source="source", who="who", category="axis", outcome="score", repeat="run",
        control=control, by=by,
    )  # fmt: skip
    parity = verdict.to_dict()["parity"]
    scores = [one for one in parity if (one["outcome"], one["against"]) == ("score", "control")]
    return {one["suite"] if by else ALL: one for one in scores}


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of agreement: a row an axis of all models and of each.

    p values of the models are corrected over all of them.
    """
    scores = scanned(rows, CONTROL) | scanned(rows, CONTROL, by="model")
    yield "| scores | axis | absolute difference | beside irrelevant edits | named |"
    yield "|:--|:--|--:|--:|:--|"
    for part, score in scores.items():
        means = means_of([row for row in rows if part in (ALL, row["model"])])
        sizes: dict[str, list[float]] = defaultdict(list)
        for edit in means:
            sizes[edit[0]].append(absolute_difference(means, edit))
        for axis in sorted({*sizes} - {BASELINE}, key=lambda axis: -fmean(sizes[axis])):
            size = f"{fmean(sizes[axis]):.3f}"
            if axis == PLACEBO:
                size += f" ({min(sizes[axis]):.3f} to {max(sizes[axis]):.3f})"
                yield f"| {part} | *irrelevant* | {size} | | |"
                continue
            beside = f"{beside_controls(means, axis):+.2f}"
            yield f"| {part} | {axis} | {size} | {beside} | {named(score, axis)} |"
        reach = ", ".join(f"{level} {size:.2f}" for level, size in score["reach"].items())
        yield f"| {part} | *would have been missed* | | {reach} | p {score['p']:.2f} |"


def named(score: Mapping[str, Any], axis: str) -> str:
    """Return whether a scan names the axis, one of its edits or everybody, and the p value."""
    found = [
        f"{each['level']} {-each['estimate']:+.2f}, p {each['p']:.4f}"
        for each in score["named"]
        if any(who.startswith(f"{axis}/") for who in each["who"])
    ]
    return "; ".join(found) or "nobody"


def main() -> int:
    """Print the table, and the first names beside each other."""
    rows = read(sys.argv[1])
    print("\n".join(lines(rows)))
    score = scanned([row for row in rows if row["axis"] == NAMES], ())[ALL]
    print(f"\nFirst names beside each other: {named(score, NAMES)} (p {score['p']:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
