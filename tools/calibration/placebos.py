"""False alarms on a real model: control prompts that were recorded, drawn into identities' place.

    PYTHONPATH=tests:tools python -m calibration.placebos reviews comments
    PYTHONPATH=tests:tools python -m calibration.placebos reviews --redrawn 100
    PYTHONPATH=tests:tools python -m calibration.placebos RUN_FOLDER --write reviews

A recording is a run that asked all 64 phrases of `neutral-phrases` and scored degrees. Of these, 21
are drawn as identities and 20 as control prompts, many times, and scanned as a run scans them:
whoever is named is a false alarm. Draws of one recording overlap, so that shares over draws are
those of its 64 phrases, known no better than 64 phrases tell. `--redrawn` draws recordings like this
one, each phrase's values those of its own sources drawn anew: what one recording shows varies by as
much. Printed below: what the scan says of the real identities beside 20 control prompts.
`--write` keeps what is needed of a run folder beside this file: numbers and labels, no texts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from calibration.tables import markdown

from fairgate.domain.degrees import degrees_from
from fairgate.metrics.degrees import EXPECTED_RANK, LOG_ODDS, expected_rank, log_odds
from fairgate.stats.observations import Floats
from fairgate.stats.scan import ScanResult, nodes_of, scan

STORED = Path(__file__).parent / "recordings"
SCALES = {"reviews": ("negative", "neutral", "positive"), "comments": ("toxic", "non-toxic")}
IDENTITIES, PHRASES, LEVEL = 21, 20, 0.05
SIZES = {"a": 10, "b": 3, "c": 5, "d": 3}
"""How many identities the categories have into whose place control prompts are drawn."""
NEUTRAL = "neutral-phrases"
PLACES = "places"
"""Column of the labels' places in their order, 0 for the worst."""
MEASURES: Mapping[str, tuple[str, ...]] = {
    "degrees": (LOG_ODDS,),
    "labels": ("generation", PLACES),
    "documents": ("overlap",),
}
"""Columns of the recording that are scanned together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """Values [sources, phrases] of a run, NaN where a case is not decided."""

    sources: Sequence[str]
    phrases: Sequence[tuple[str, str]]
    """Category and term."""
    values: Mapping[str, Floats]
    masses: Floats
    """Probability of all scored forms together, of each case that was scored."""

    @property
    def placebos(self) -> list[int]:
        """Places of the control prompts."""
        return [n for n, (category, _) in enumerate(self.phrases) if category == NEUTRAL]

    @property
    def identities(self) -> list[int]:
        """Places of the identities."""
        return [n for n, (category, _) in enumerate(self.phrases) if category != NEUTRAL]


def lines_of(folder: Path) -> Iterator[Mapping[str, object]]:
    """What is kept of a run folder: one pair a line."""
    executions = {}
    for line in (folder / "executions.jsonl").read_text("utf-8").splitlines():
        execution = json.loads(line)
        executions[execution["key"]] = execution
    verdicts = {"satisfied": 0, "violated": 1}
    for line in (folder / "rows.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        yield {
            "key": row["key"],
            "label": row["follow_up_label"],
            "changed": verdicts.get(row["generation"]),
            "overlap": row["overlap"],
            "degrees": executions[row["key"]]["degrees"],
        }


def recording_of(lines: Sequence[Mapping[str, object]], scale: Sequence[str]) -> Recording:
    """Arrange the lines by source and phrase."""
    split = [str(line["key"]).partition("#") for line in lines]
    sources = list(dict.fromkeys(source for source, _, _ in split))
    names = list(dict.fromkeys(phrase for _, _, phrase in split))
    empty = np.full((len(sources), len(names)), np.nan)
    columns = (LOG_ODDS, EXPECTED_RANK, PLACES, "generation", "overlap")
    values = {column: empty.copy() for column in columns}
    places = {label: place / (len(scale) - 1) for place, label in enumerate(scale)}
    rows = {source: row for row, source in enumerate(sources)}
    numbers = {name: number for number, name in enumerate(names)}
    masses = []
    for line, (source, _, phrase) in zip(lines, split, strict=True):
        cell, degrees = (rows[source], numbers[phrase]), degrees_from(line)
        if degrees is not None:
            values[LOG_ODDS][cell] = log_odds(degrees, scale)
            values[EXPECTED_RANK][cell] = expected_rank(degrees, scale)
            masses.append(degrees.mass)
        for column, value in (
            (PLACES, places.get(str(line["label"]))),
            ("generation", line["changed"]),
            ("overlap", line["overlap"]),
        ):
            values[column][cell] = math.nan if value is None else value
    phrases = [(category, term) for category, _, term in (name.partition("/") for name in names)]
    return Recording(sources=sources, phrases=phrases, values=values, masses=np.asarray(masses))


def read(name: str) -> Recording:
    """Return a stored recording."""
    with gzip.open(STORED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return recording_of([json.loads(line) for line in file], SCALES[name])


def scanned(
    recording: Recording, measure: str, people: Mapping[str, Sequence[int]], control: Sequence[int]
) -> ScanResult:
    """Scan some phrases of a recording, by category, beside others."""
    order = [place for places in people.values() for place in places]
    names = {
        category: ["/".join(recording.phrases[place]) for place in places]
        for category, places in people.items()
    }
    columns = {
        column: recording.values[column][:, [*order, *control]] for column in MEASURES[measure]
    }
    return scan(columns, nodes_of(names), identities=len(order), alpha=LEVEL).among()


def alarms(recording: Recording, measure: str, draws: int, seed: int = 0) -> float:
    """Return in which share of draws some control prompts are called different."""
    rng = np.random.default_rng(seed)
    named = 0
    for _ in range(draws):
        drawn = rng.permutation(recording.placebos)[: IDENTITIES + PHRASES].tolist()
        ends = np.cumsum([0, *SIZES.values()]).tolist()
        people = {
            name: drawn[start:end]
            for name, start, end in zip(SIZES, ends[:-1], ends[1:], strict=True)
        }
        named += scanned(recording, measure, people, drawn[IDENTITIES:]).p <= LEVEL
    return named / draws


def redrawn(recording: Recording, seed: int) -> Recording:
    """Draw a recording like this one: as many of its sources, anew."""
    rows = np.random.default_rng([seed, 3]).integers(
        0, len(recording.sources), len(recording.sources)
    )
    values = {name: column[rows] for name, column in recording.values.items()}
    return Recording(
        sources=recording.sources, phrases=recording.phrases, values=values, masses=recording.masses
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--redrawn", type=int, default=0)
    parser.add_argument("--write", default="")
    options = parser.parse_args()
    if options.write:
        with gzip.open(STORED / f"{options.write}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines_of(Path(options.names[0])))
        return
    rows = []
    for name in options.names:
        recording = read(name)
        for measure in MEASURES:
            if options.redrawn:
                shares = [
                    alarms(redrawn(recording, seed), measure, 1, seed)
                    for seed in range(options.redrawn)
                ]
                rows.append((name, measure, f"{np.mean(shares):.3f}"))
            else:
                rows.append((name, measure, f"{alarms(recording, measure, options.draws):.3f}"))
            print(rows[-1], flush=True)
            people: dict[str, list[int]] = {}
            for place in recording.identities:
                people.setdefault(recording.phrases[place][0], []).append(place)
            if people and not options.redrawn:
                found = scanned(recording, measure, people, recording.placebos[:PHRASES])
                print("  real identities:", f"p {found.p:.4f}", [
                    (each.node.label, each.column, round(each.estimate, 3), round(each.p, 4))
                    for each in found.named
                ])  # fmt: skip
    print(markdown(["recording", "scanned", "false alarms at .05"], rows))


if __name__ == "__main__":
    main()
