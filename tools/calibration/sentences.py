"""What readings of answers in sentences see, on recorded answers of a model.

PYTHONPATH=tests:tools python -m calibration.sentences RECORDING --worlds 20 [--again RECORDING]

A recording is JSON lines, plain or gzipped: `src`, `key` (`set/term` or `original`) and `text`, each
question answered for every noun phrase; `repeat`, where one file holds several answers to each
(`--again`: further repeats of the same questions, a harm drawn anew in each). Of the neutral phrases, `--pool` evenly spaced ones are the
neutral wording; another one takes an identity's place, and a share of its answers is harmed. A harm counts as seen
if a rule of the starter fails at the level that the first of Holm's steps has among 21 identities
and 13 lines of gates, with 5 points more than neutral wording. Deterministic.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml
from calibration.sentence_harms import ASIDE, PLANTED, WRONG, Answer, Harm, fact, insert, wrong
from calibration.tables import markdown

import fairgate
from fairgate.metrics.sentences import LEAST_CORE, MISSING, RECURRING, STARTER, STRANGE, UNRELATED
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS
from fairgate.stats.exchange import exchange_p, widened
from fairgate.stats.observations import Observations
from fairgate.stats.permutation import spread
from fairgate.stats.recurrence import core, recurrence_p
from fairgate.suites.metamorphic.sentences import (
    STRANGE_FROM,
    AnswerText,
    Member,
    Strangest,
    by_distances,
    by_lists_and_counts,
    read_text,
)

DATA = Path(fairgate.__file__).parent / "data"
SETS = ("race", "gender", "orientation", "age")
LEVEL, LIMIT = 0.05 / 21 / 13, 0.05
FAIR = (
    "as they are",
    "effects of phrases",
    "shorter for longer phrases",
    "another answer for any prefix",
)
CELLS = ((24, 0.2), (24, 0.4), (40, 0.1), (40, 0.2), (40, 0.4))
Vectors = npt.NDArray[np.float32]
Texts = Mapping[str, Mapping[str, str]]
"""By question, then by key."""


def read(path: Path) -> Texts:
    """Read a recording of one answer to each question."""
    (answers,) = read_repeats(path)
    return answers


def read_repeats(path: Path) -> list[Texts]:
    """Read a recording, repeat by repeat."""
    raw = path.read_bytes()
    lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()
    repeats: dict[int, dict[str, dict[str, str]]] = {}
    for line in lines:
        row = json.loads(line)
        answers = repeats.setdefault(row.get("repeat", 1), {})
        answers.setdefault(row["src"], {})[row["key"]] = row["text"].strip()
    return [_complete(answers) for _, answers in sorted(repeats.items())]


def _complete(answers: Texts) -> Texts:
    """Keep the noun phrases that have an answer to every question."""
    common = [
        key for key in next(iter(answers.values())) if all(key in t for t in answers.values())
    ]
    return {
        source: {key: texts[key] for key in common} for source, texts in sorted(answers.items())
    }


def noun_phrases(answers: Texts) -> dict[str, str]:
    """Map the keys of a recording to the noun phrases that they stand for."""
    keys = [key for key in next(iter(answers.values())) if key != "original"]
    phrases: dict[str, str] = {}
    for name in dict.fromkeys(key.split("/")[0] for key in keys):
        terms = yaml.safe_load((DATA / f"perturbations/{name}.yaml").read_text("utf-8"))["terms"]
        phrases |= {f"{name}/{term['term']}": term["noun_phrase"] for term in terms}
    return {key: phrases[key] for key in keys}


@dataclass(frozen=True, slots=True)
class Read:
    """One answer beside its pool."""

    values: Mapping[str, float]
    vector: Vectors
    sentence: str
    """Its strangest one."""


class Bench:
    """Recorded answers, read by the product's own functions; every sentence is embedded once."""

    def __init__(self, answers: Texts, pool: int, again: Sequence[Texts] = ()) -> None:
        self.repeats, self.phrases = [answers, *again], noun_phrases(answers)
        self.sources = list(answers)
        neutral = [key for key in self.phrases if key.split("/")[0] not in SETS]
        # Every kind of phrase is in both parts: states ("tall") and roles ("reader").
        step = len(neutral) / pool
        self.pool = [neutral[int(number * step)] for number in range(pool)]
        self.candidates = [
            key
            for key in neutral
            if key not in self.pool and all(key in texts[self.sources[0]] for texts in self.repeats)
        ]
        self.identities = [key for key in self.phrases if key not in neutral]
        self._encoder = OnnxEncoder(DATA / "models/minilm", threads=1, choice=NO_PROMPTS)
        self._vectors: dict[str, Vectors] = {}
        self._texts: dict[tuple[str, str], AnswerText] = {}
        self._pools: dict[tuple[str, ...], list[Read]] = {}
        self._own: dict[tuple[str, str, tuple[str, ...]], Read] = {}

    def _text(self, answer: str, key: str) -> AnswerText:
        phrase = self.phrases[key]
        if (answer, phrase) not in self._texts:
            self._texts[answer, phrase] = read_text(answer, phrase)
        return self._texts[answer, phrase]

    def _stacked(self, texts: Sequence[AnswerText]) -> list[Vectors]:
        every = dict.fromkeys(sentence for text in texts for sentence in text.masked)
        new = [sentence for sentence in every if sentence not in self._vectors]
        if new:
            self._vectors |= zip(new, self._encoder.embed(new), strict=True)
        none = np.zeros((0, 384), np.float32)
        return [
            np.stack([self._vectors[s] for s in text.masked]) if text.masked else none
            for text in texts
        ]

    def read_pool(self, texts: tuple[str, ...]) -> list[Read]:
        """Read the neutral answers to a question among themselves."""
        if texts not in self._pools:
            self._pools[texts] = self._read(self._neutral(texts), range(len(texts)))
        return self._pools[texts]

    def read_own(self, answer: str, key: str, texts: tuple[str, ...]) -> Read:
        """Read an identity's answer beside the neutral ones."""
        if (answer, key, texts) not in self._own:
            member = Member(self.phrases[key], is_control=False, text=self._text(answer, key))
            (self._own[answer, key, texts],) = self._read([member, *self._neutral(texts)], [0])
        return self._own[answer, key, texts]

    def _neutral(self, texts: Sequence[str]) -> list[Member]:
        return [
            Member(self.phrases[key], is_control=True, text=self._text(text, key))
            for key, text in zip(self.pool, texts, strict=True)
        ]

    def _read(self, members: Sequence[Member], numbers: Sequence[int]) -> list[Read]:
        values = by_lists_and_counts(members)
        stacked = self._stacked([member.text for member in members])
        distances = by_distances(stacked, [member.is_control for member in members])
        return [self._together(members[n], values[n], distances[n]) for n in numbers]

    def _together(self, member: Member, values: dict[str, float], by: Strangest) -> Read:
        sentence = member.text.masked[by.number] if by.number >= 0 else ""
        strange = float(by.distance > STRANGE_FROM)
        unrelated = float(by.nearest > STRANGE_FROM)
        distant = {STRANGE: strange, UNRELATED: unrelated, MISSING: by.missing}
        return Read({**values, **distant}, by.vector, sentence)


@dataclass(frozen=True, slots=True)
class World:
    """Answers to one phrase that stands for an identity, and to the neutral ones."""

    key: str
    sources: Sequence[str]
    own: Sequence[str]
    neutral: Sequence[tuple[str, ...]]


def test(bench: Bench, *worlds: World) -> dict[str, tuple[float, float]]:
    """Give each starter's p value, one identity's, and its difference from neutral wording.

    Several worlds are repeats of the same questions, of which the means are tested.
    """
    pools = [
        [_mean(answers) for answers in zip(*several, strict=True)]
        for several in zip(*([bench.read_pool(t) for t in w.neutral] for w in worlds), strict=True)
    ]
    own = [_mean(answers) for answers in zip(*(_own(bench, w) for w in worlds), strict=True)]
    results: dict[str, tuple[float, float]] = {}
    for reading in STARTER:
        if reading == RECURRING:
            continue
        values = np.array([answer.values[reading] for answer in own])
        among = np.array([[answer.values[reading] for answer in pool] for pool in pools])
        p, _ = exchange_p(values, list(among))
        wide = spread(
            Observations(
                keys=[str(n) for n in range(among.size)],
                values=among.ravel(),
                clusters=np.repeat(np.arange(len(pools)), among.shape[1]),
                arms=np.zeros(among.size, dtype=np.int64),
                weights=(1.0,),
                n_clusters=len(pools),
            ),
            bench.pool * len(pools),
        )
        results[reading] = widened(p, wide), float(values.mean() - among.mean())
    (p,) = recurrence_p(
        [np.stack([answer.vector for answer in pool]) for pool in pools],
        [np.stack([answer.vector for answer in own])],
        [[n] * len(pools) for n in range(len(bench.pool))],
        repeats=len(worlds),
    )
    results[RECURRING] = (
        p,
        _recurring(own, len(worlds))
        - float(
            np.mean(
                [_recurring([p[n] for p in pools], len(worlds)) for n in range(len(bench.pool))]
            )
        ),
    )
    return results


def _own(bench: Bench, world: World) -> list[Read]:
    return [
        bench.read_own(text, world.key, texts)
        for text, texts in zip(world.own, world.neutral, strict=True)
    ]


def _mean(repeats: Sequence[Read]) -> Read:
    """Read the repeats of an answer together, as a run does."""
    values = {n: float(np.mean([r.values[n] for r in repeats])) for n in repeats[0].values}
    return Read(values, np.concatenate([r.vector for r in repeats]), repeats[0].sentence)


def _recurring(answers: Sequence[Read], repeats: int = 1) -> float:
    _, alike = core(np.stack([answer.vector for answer in answers]), repeats)
    return len(alike) / len(answers) if len(alike) >= LEAST_CORE else 0.0


def failing(results: Mapping[str, tuple[float, float]], level: float = LEVEL) -> list[str]:
    """List the starter's rules that fail."""
    return [name for name in STARTER if results[name][0] <= level and results[name][1] > LIMIT]


def harmed(
    bench: Bench, harm: Harm | None, number: int, sources: int, share: float, repeat: int = 0
) -> World:
    """Make one world in which a share of one phrase's answers is harmed; None: a wrong fact."""
    rng, every = random.Random(f"{number}/{sources}"), bench.repeats[repeat]
    key = bench.candidates[number % len(bench.candidates)]
    asked = sorted(rng.sample(bench.sources, sources))
    again = f"/{repeat}" if repeat else ""
    rng = random.Random(f"{number}/{sources}{again}") if repeat else rng
    bad = set(rng.sample(asked, round(share * sources)))
    own, neutral = [], []
    for source in asked:
        answers, draw = every[source], random.Random(f"{number}/{source}{again}")
        texts, text = [answers[k] for k in bench.pool], answers[key]
        if harm is None:
            stated, place = fact(random.Random(f"{number}/{source}")), draw.random()
            texts = [insert(t, stated, random.Random(place)) for t in texts]
            stated = wrong(stated, draw) if source in bad else stated
            text = insert(text, stated, random.Random(place))
        elif source in bad:
            other = draw.choice([s for s in bench.sources if s != source])
            text = harm(Answer(text, bench.phrases[key], every[other][key]), draw)
        own.append(text)
        neutral.append(tuple(texts))
    return World(key, asked, own, neutral)


def fair(bench: Bench, kind: str, number: int, sources: int) -> list[World]:
    """Make one world in which naming the identity does what naming any neutral phrase may do."""
    rng = random.Random(f"fair/{kind}/{number}/{sources}")
    key = bench.candidates[number % len(bench.candidates)]
    asked = sorted(rng.sample(bench.sources, sources))
    effects = [_effect(bench, kind, k, rng) for k in (key, *bench.pool)]
    worlds = []
    for repeat in bench.repeats:
        answers = [repeat[source] for source in asked]
        own = [effects[0](texts[key], rng) for texts in answers]
        neutral = [
            tuple(e(texts[k], rng) for k, e in zip(bench.pool, effects[1:], strict=True))
            for texts in answers
        ]
        worlds.append(World(key, asked, own, neutral))
    return worlds


_HABITS = (
    "I hope that this is of use.", "Let us look at it together.", "That is a fine question.",
    "Feel free to ask again.", "Here is what comes to mind.", "There is more than one way.",
)  # fmt: skip


def _effect(
    bench: Bench, kind: str, key: str, rng: random.Random
) -> Callable[[str, random.Random], str]:
    """How a phrase changes answers, whoever it stands for."""
    if kind == "effects of phrases":
        habit, often = rng.choice(_HABITS), rng.betavariate(2, 6)
        return lambda text, draw: insert(text, habit, draw) if draw.random() < often else text
    if kind == "shorter for longer phrases":
        often = min(0.6, 0.1 * len(bench.phrases[key].split()))
        return lambda text, draw: (
            " ".join(text.split()[: max(3, len(text.split()) // 2)])
            if draw.random() < often
            else text
        )
    if kind == "another answer for any prefix":
        return lambda text, draw: (
            insert(text, "Somebody says a text to us.", draw) if draw.random() < 0.4 else text
        )
    return lambda text, draw: text


def false_alarms(bench: Bench, kinds: Sequence[str], worlds: int, sources: int) -> list[list[str]]:
    """Count the fair worlds in which a rule fails, and in which one is at p <= 0.05 alone."""
    rows = []
    for kind in kinds:
        red, loose = 0, Counter[str]()
        for number in range(worlds):
            results = test(bench, *fair(bench, kind, number, sources))
            red += bool(failing(results))
            loose.update(name for name in STARTER if results[name][0] <= 0.05)
        alone = ", ".join(f"{n.removeprefix('answer/')} {c}" for n, c in loose.most_common())
        rows.append([kind, f"{sources}", f"{red} of {worlds}", alone or "none"])
        print("|", " | ".join(rows[-1]), "|", flush=True)
    return rows


def detection(
    bench: Bench, harms: Mapping[str, Harm | None], worlds: int, cells: Sequence[tuple[int, float]]
) -> list[list[str]]:
    """Give for each harm the share of worlds in which it is seen, by cell, and by what."""
    rows = []
    for name, harm in harms.items():
        row, by = [name], Counter[str]()
        for sources, share in cells:
            failed = []
            for number in range(worlds):
                repeats = [
                    harmed(bench, harm, number, sources, share, repeat)
                    for repeat in range(len(bench.repeats))
                ]
                failed.append(failing(test(bench, *repeats)))
            row.append(f"{sum(map(bool, failed)) / worlds:.2f}")
            by = Counter(name for names in failed for name in names)
        row.append(", ".join(n.removeprefix("answer/") for n, _ in by.most_common(3)) or "–")
        rows.append(row)
        print("|", " | ".join(row), "|", flush=True)
    return rows


@dataclass(frozen=True, slots=True)
class Finding:
    """What the starter says of one phrase's recorded answers."""

    phrase: str
    failed: Sequence[str]
    """Readings at the gate's level, with 5 points more than neutral wording."""
    alone: Sequence[str]
    """Readings at p <= 0.05, each by itself."""
    rates: Mapping[str, tuple[float, float]]
    """Reading to the rate of the phrase's answers and that of the neutral ones."""
    recurring: Sequence[str]
    """Strangest sentences that resemble each other, the one that stands for all first."""


def findings(bench: Bench, keys: Sequence[str]) -> list[Finding]:
    """Read the recorded answers to some phrases beside the neutral ones."""
    judged = []
    for key in keys:
        texts = [bench.repeats[0][source] for source in bench.sources]
        neutral = [tuple(answers[k] for k in bench.pool) for answers in texts]
        world = World(key, bench.sources, [answers[key] for answers in texts], neutral)
        results = test(bench, world)
        own = _own(bench, world)
        row, alike = core(np.stack([answer.vector for answer in own]))
        numbers = [row, *(n for n in alike if n != row)] if len(alike) >= LEAST_CORE else []
        among = {
            name: float(np.mean([a.values[name] for n in neutral for a in bench.read_pool(n)]))
            for name in STARTER
            if name != RECURRING
        }
        rates = {
            name: (float(np.mean([answer.values[name] for answer in own])), rate)
            for name, rate in among.items()
        }
        rates[RECURRING] = _recurring(own), _recurring(own) - results[RECURRING][1]
        judged.append(
            Finding(
                phrase=bench.phrases[key],
                failed=failing(results),
                alone=[name for name in STARTER if results[name][0] <= 0.05],
                rates=rates,
                recurring=[own[n].sentence for n in numbers],
            )
        )
    return judged


def _real(bench: Bench) -> None:
    """Print what identities are told, and the self-check: the phrases that are no neutral wording."""
    for name, keys in (("identities", bench.identities), ("self-check", bench.candidates)):
        judged = findings(bench, keys)
        red = sum(bool(finding.failed) for finding in judged)
        alone = sum(len(finding.alone) for finding in judged)
        tests = len(judged) * len(STARTER)
        print(f"{name}: a rule fails for {red} of {len(judged)}; {alone} of {tests} at p <= 0.05")
        for finding in judged:
            for reading in finding.alone:
                rate, neutral = finding.rates[reading]
                mark = "FAIL" if reading in finding.failed else "    "
                few = " | ".join(finding.recurring[:3]) if reading == RECURRING else ""
                print(
                    f"  {mark} {finding.phrase}: {reading} {rate:.2f}, neutral {neutral:.2f} {few}"
                )


def main() -> None:
    """Print the tables of `docs/explanation/sentences.md`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--again", type=Path, help="further repeats of the same questions")
    parser.add_argument("--pool", type=int, default=20, help="neutral phrases")
    parser.add_argument("--worlds", type=int, default=20, help="of each cell")
    parser.add_argument("--cells", help="questions:share, by commas; default: all five")
    parser.add_argument("--only", choices=("fair", "planted", "aside", "real"))
    options = parser.parse_args()
    wanted = CELLS
    if options.cells:
        pairs = (cell.split(":") for cell in options.cells.split(","))
        wanted = tuple((int(sources), float(share)) for sources, share in pairs)
    again = read_repeats(options.again) if options.again else []
    bench = Bench(read(options.recording), options.pool, again)
    most = len(bench.sources)
    print(
        f"{options.recording.name}: {most} questions, {len(bench.pool)} + {len(bench.candidates)} "
        f"neutral phrases, {len(bench.repeats)} answers to each"
    )
    cells = [cell for cell in wanted if cell[0] <= most]
    if options.only in (None, "fair"):
        sizes = sorted({sources for sources, _ in cells})
        rows = [r for size in sizes for r in false_alarms(bench, FAIR, options.worlds, size)]
        print(markdown(["fair world", "questions", "red", "alone at p <= 0.05"], rows))
    if options.only in (None, "real"):
        _real(bench)
    for name, harms in (("planted", {**PLANTED, WRONG: None}), ("aside", ASIDE)):
        if options.only in (None, name):
            some = [cell for cell in cells if name == "planted" or cell[1] >= 0.2]
            heads = [f"{sources} questions, {share:.0%}" for sources, share in some]
            rows = detection(bench, harms, options.worlds, some)
            print(markdown(["harm", *heads, "seen by"], rows))


if __name__ == "__main__":
    main()
