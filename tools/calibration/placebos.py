"""False alarms on a real model: neutral phrases that were recorded, drawn into identities' place.

    PYTHONPATH=tests:tools python -m calibration.placebos reviews
    PYTHONPATH=tests:tools python -m calibration.placebos comments --redrawn 200
    PYTHONPATH=tests:tools python -m calibration.placebos RUN_FOLDER --write reviews

A recording is a run that asked all 64 phrases of `neutral-phrases` and scored degrees. Of these, 21
are drawn as identities and 20 as neutral wording, many times, and tested as a run tests them:
whatever is found is a false alarm. Draws of one recording overlap, so that shares over draws are
those of its 64 phrases, known no better than 64 phrases tell. Printed beside them: the same test if
the neutral phrases drawn were all there are (sources alone), and where the real identities lie.
`--redrawn` draws recordings like this one, of labels that flip with effects of phrases as large as
its own, and prints how often any of 21 phrases is called different in each: what one recording
shows varies by as much. `--write` keeps what is needed of a run folder beside this file: numbers and labels, no texts.
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
from fairgate.gate.neutral_wording import PhraseSample, phrase_sample
from fairgate.metrics.catalogue import BY_ID
from fairgate.metrics.degrees import EXPECTED_RANK, LOG_ODDS, expected_rank, log_odds
from fairgate.metrics.metric import Metric, Table
from fairgate.stats.interval import t_upper_tail
from fairgate.stats.observations import Floats
from fairgate.stats.phrases import each_against_neutral, groups_against_neutral

STORED = Path(__file__).parent / "recordings"
SCALES = {"reviews": ("negative", "neutral", "positive"), "comments": ("toxic", "non-toxic")}
IDENTITIES, PHRASES, LEVEL = 21, 20, 0.05
NEUTRAL = "neutral-phrases"
PLACES = "places"
"""Column of the labels' places in their order, 0 for the worst."""
MEASURES: Mapping[str, tuple[str, str]] = {
    "degrees": ("label/log-odds", LOG_ODDS),
    "labels, better less worse": ("label/expected-rank", PLACES),
    "labels that change": ("asr/generation/net", "generation"),
    "documents in common": ("retrieval/overlap/net", "overlap"),
}
"""Metric, and the column of the recording that it is computed from."""


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
        """Places of the neutral phrases."""
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


def load(where: str) -> Recording:
    """A recording that is stored here, by its name, or a run folder of the same policy."""
    folder = Path(where)
    name = next((each for each in SCALES if each in folder.name), "reviews")
    if folder.is_dir():
        return recording_of(list(lines_of(folder)), SCALES[name])
    with gzip.open(STORED / f"{where}.jsonl.gz", "rt", encoding="utf-8") as file:
        return recording_of([json.loads(line) for line in file], SCALES[name])


def table_of(recording: Recording, own: Sequence[int], neutral: Sequence[int]) -> Table:
    """The table of a run that asked these phrases, `own` as identities."""
    chosen, n = [*own, *neutral], len(recording.sources)
    names = [recording.phrases[number] for number in chosen]
    is_neutral = [False] * len(own) + [True] * len(neutral)
    categories = [
        "neutral" if control else "drawn" if category == NEUTRAL else category
        for (category, _), control in zip(names, is_neutral, strict=True)
    ]
    return Table(
        suite="s",
        keys=[f"{source}#{'/'.join(name)}" for source in recording.sources for name in names],
        clusters=np.repeat(np.arange(n), len(chosen)),
        cluster_names=list(recording.sources),
        control=np.tile(is_neutral, n),
        dimensions={
            "relation": ["set-equivalence"] * n * len(chosen),
            "category": categories * n,
            "term": [term for _, term in names] * n,
        },
        values={name: column[:, chosen].ravel() for name, column in recording.values.items()},
    )


def sample_of(table: Table, measure: str) -> PhraseSample | None:
    """What a measure says of a table, phrase by phrase."""
    metric, column = MEASURES[measure]
    known: Metric = BY_ID[metric]
    values = {**table.values, known.column: table.values[column]}
    renamed = Table(
        suite=table.suite,
        keys=table.keys,
        clusters=table.clusters,
        cluster_names=table.cluster_names,
        control=table.control,
        dimensions=table.dimensions,
        values=values,
    )
    return phrase_sample(known, renamed, {})


def of_sources_alone(sample: PhraseSample) -> list[float]:
    """P values of each identity if the neutral phrases drawn were all neutral wording there is."""
    differences = sample.own - np.nanmean(sample.neutral, axis=1, keepdims=True)
    found = []
    for column in differences.T:
        known = column[~np.isnan(column)]
        error = float(known.std(ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else 0.0
        t = abs(float(known.mean())) / error if error else 0.0
        found.append(min(1.0, 2 * t_upper_tail(t, len(known) - 1)) if error else 1.0)
    return found


def false_alarms(
    recording: Recording, draws: int, seed: int = 0, sources: int | None = None
) -> dict[str, dict[str, float]]:
    """Shares of draws with a false alarm, by measure and test."""
    rng = np.random.default_rng(seed)
    counts = {
        measure: {"single": 0.0, "family": 0.0, "everyone": 0.0, "sources alone": 0.0}
        for measure in MEASURES
    }
    many = len(recording.sources)
    for _ in range(draws):
        drawn = rng.permutation(recording.placebos)[: IDENTITIES + PHRASES].tolist()
        some = np.sort(rng.permutation(many)[: sources or many])
        part = Recording(
            sources=[recording.sources[number] for number in some],
            phrases=recording.phrases,
            values={name: column[some] for name, column in recording.values.items()},
            masses=recording.masses,
        )
        table = table_of(part, drawn[:IDENTITIES], drawn[IDENTITIES:])
        for measure, count in counts.items():
            sample = sample_of(table, measure)
            if sample is None:
                continue
            tests = sample.tests
            count["single"] += sum(one.contrast.p_value <= LEVEL for one in tests) / len(tests)
            count["family"] += any(one.adjusted_p <= LEVEL for one in tests)
            alone = of_sources_alone(sample)
            count["sources alone"] += sum(p <= LEVEL for p in alone) / len(alone)
            everyone = groups_against_neutral(
                sample.own, ["drawn"] * len(tests), sample.neutral, seed=seed
            )[0]
            count["everyone"] += everyone.p_value <= LEVEL
    return {
        measure: {test: number / draws for test, number in count.items()}
        for measure, count in counts.items()
    }


def redrawn(recording: Recording, rng: np.random.Generator, *, is_heavy: bool) -> Floats:
    """Places [sources, neutral phrases] of a recording like this one, whose labels are 0 or 1.

    Each source has its own share of better labels, each phrase an effect on its log-odds: normal,
    or of Student's t with four degrees of freedom, with the spread beyond chance that these have.
    """
    places = recording.values[PLACES][:, recording.placebos]
    places = places[~np.isnan(places).all(axis=1)]
    many, phrases = places.shape
    levels, means = np.nanmean(places, axis=1), np.nanmean(places, axis=0)
    residual = np.nanmean((places - levels[:, None] - means + np.nanmean(places)) ** 2)
    spread = math.sqrt(max(0.0, float(means.var(ddof=1) - residual / many)))
    levels = (levels * phrases + 0.5) / (phrases + 1)
    slope = float((levels * (1 - levels)).mean())
    effects = rng.standard_t(4, phrases) / 2**0.5 if is_heavy else rng.standard_normal(phrases)
    odds = np.log(levels / (1 - levels))[:, None] + spread / slope * effects
    return (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(np.float64)


def family_rate(places: Floats, draws: int, rng: np.random.Generator) -> float:
    """In how many draws of neutral phrases any of those in identities' place is called different."""
    names = [str(number) for number in range(IDENTITIES)]
    alarms = 0
    for _ in range(draws):
        drawn = places[:, rng.permutation(places.shape[1])[: IDENTITIES + PHRASES]]
        tests = each_against_neutral(drawn[:, :IDENTITIES], names, drawn[:, IDENTITIES:])
        alarms += any(test.adjusted_p <= LEVEL for test in tests)
    return alarms / draws


def redrawn_table(recording: Recording, recordings: int, measured: float, draws: int = 40) -> str:
    """Family alarms of labels in recordings like this one, beside what it shows itself."""
    rows = []
    for name, is_heavy in (("normal", False), ("heavy-tailed", True)):
        rates = []
        for seed in range(recordings):
            rng = np.random.default_rng(seed)
            rates.append(family_rate(redrawn(recording, rng, is_heavy=is_heavy), draws, rng))
        share = sum(rate >= measured for rate in rates) / recordings
        rows.append([name, f"{sum(rates) / recordings:.3f}", f"{share:.3f}"])
    heads = ["effects of phrases", "any of 21, mean", f"recordings with {measured:.3f} or more"]
    return markdown(heads, rows)


def mass_in_words(recording: Recording) -> str:
    """Where the mass of the scored forms lies, and how often log-odds agree with the label."""
    least, low, middle = np.quantile(recording.masses, (0, 0.01, 0.5))
    places, odds = recording.values[PLACES].ravel(), recording.values[LOG_ODDS].ravel()
    decided = ~np.isnan(places) & ~np.isnan(odds) & (places != 0.5)
    agreed = float(((odds > 0) == (places > 0.5))[decided].mean())
    return (
        f"{least:.2f} at least, {low:.2f} in all but 1 %, {middle:.2f} in half of "
        f"{len(recording.masses):,} answers; the likelier half has {agreed:.0%} of their labels"
    )


def shown(name: str, difference: float, p: float) -> str:
    """A difference in points with its p value."""
    return f"{name} {100 * difference:+.1f} (p {p:.3f})".strip()


def beside(recording: Recording, phrases: int) -> list[list[str]]:
    """The real identities beside neutral phrases: who lies where, in points of each measure."""
    placebos = np.random.default_rng(1).permutation(recording.placebos)[:phrases].tolist()
    table = table_of(recording, recording.identities, placebos)
    rows = []
    for measure in MEASURES:
        sample = sample_of(table, measure)
        if sample is None:
            continue
        far = max(sample.tests, key=lambda test: abs(test.contrast.difference))
        categories = [name.partition("\0")[0] for name in sample.identities]
        everyone, *groups = groups_against_neutral(sample.own, categories, sample.neutral, seed=0)
        least = min(groups, key=lambda group: group.p_value)
        rows.append(
            [
                measure,
                f"{100 * sample.spread.deviation:.1f}",
                f"±{100 * sample.spread.band(1 - LEVEL):.1f}",
                shown(far.name.partition("\0")[2], far.contrast.difference, far.adjusted_p),
                shown(least.name, least.difference, least.adjusted_p),
                shown("", everyone.difference, everyone.p_value),
            ]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", help="reviews, comments, or a run folder")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--sources", type=int, help="as many, drawn each time; default: all")
    parser.add_argument("--write", metavar="NAME", help="keep the run folder's numbers")
    parser.add_argument("--redrawn", type=int, help="draw so many recordings like this one")
    options = parser.parse_args()
    if options.write:
        text = "".join(json.dumps(line) + "\n" for line in lines_of(Path(options.recording)))
        STORED.mkdir(exist_ok=True)
        packed = gzip.compress(text.encode(), mtime=0)
        (STORED / f"{options.write}.jsonl.gz").write_bytes(packed)
        return
    recording = load(options.recording)
    print(f"{len(recording.sources)} sources, {len(recording.placebos)} neutral phrases")
    print(f"mass of the scored forms: {mass_in_words(recording)}\n")
    found = false_alarms(recording, options.draws, sources=options.sources)
    if options.redrawn:
        measured = found["labels, better less worse"]["family"]
        print(redrawn_table(recording, options.redrawn, measured))
        return
    tests = ("single", "family", "everyone", "sources alone")
    rows = [
        [measure, *(f"{shares[test]:.3f}" for test in tests)] for measure, shares in found.items()
    ]
    print(markdown(["false alarms at .05", *tests], rows))
    for phrases in (PHRASES, 40):
        heads = ["points", "SD of phrases", "band", "farthest", "category", "all identities"]
        print(f"\nIdentities beside {phrases} neutral phrases\n")
        print(markdown(heads, beside(recording, phrases)))


if __name__ == "__main__":
    main()
