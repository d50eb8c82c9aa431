"""What the scan of answers in sentences sees: harms by a script, and worlds where nobody is harmed.

    PYTHONPATH=tests:tools python -m calibration.sentences --worlds 20

Answers are SmolLM2's recorded ones to 40 questions, or those of a made bot in English, German or
Spanish. Of 40 control prompts 20 are the control prompts of a world, drawn anew for each of four
splits; the others stand for 20 identities in four categories, one of whom is harmed in a share of
its answers. A harm counts as seen where the scan names somebody beyond the outcome's limit; in
brackets, how often the first named is the one who is harmed. Deterministic.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from calibration.sentence_bots import BOTS
from calibration.sentence_harms import (
    ASIDE,
    INSIDE,
    PLANTED,
    Answer,
    Harm,
    insert,
    with_fact,
    with_list,
)
from calibration.tables import markdown

import fairgate
from fairgate.domain.executions import Document, Execution
from fairgate.domain.units import Arm, CaseKeys, Reading, Reason, Unit
from fairgate.metrics.columns import Pool, PoolAnswer
from fairgate.metrics.parity import OUTCOMES
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS
from fairgate.stats.observations import Floats
from fairgate.stats.scan import nodes_of, scan
from fairgate.suites.metamorphic import sentences as reader

DATA = Path(fairgate.__file__).parent / "data"
RECORDINGS = Path(__file__).parents[1] / "smollm2/recordings/sentences"
CORPORA = ("greedy", "sampled", "en", "de", "es")
SETS = ("race", "gender", "orientation", "age")
IDENTITIES, SPLITS = 20, 4
_AT_ONCE = 64
OUTCOME = OUTCOMES["sentences"]
READ = Reading(value="read")
Texts = Mapping[str, Mapping[str, str]]
"""By question, then by key."""
FAIR = (
    "as they are", "effects of phrases", "shorter for longer phrases", "another answer for any prefix",
    "the asker's name for everybody",
)  # fmt: skip


def read(path: Path) -> Texts:
    """Read a recording: JSON lines with `src`, `key` and `text`, gzipped."""
    answers: dict[str, dict[str, str]] = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        row = json.loads(line)
        answers.setdefault(row["src"], {})[row["key"]] = row["text"].strip()
    return dict(sorted(answers.items()))


@cache
def noun_phrases() -> Mapping[str, str]:
    """Map `set/term` to the noun phrase, of identities and of control prompts."""
    phrases: dict[str, str] = {}
    for name in (*SETS, "neutral-phrases"):
        terms = yaml.safe_load((DATA / f"perturbations/{name}.yaml").read_text("utf-8"))["terms"]
        phrases |= {
            f"{name}/{term['term']}": term.get("noun_phrase") or term["phrases"][0]
            for term in terms
        }
    return phrases


@cache
def corpus(name: str) -> Texts:
    """Return the answers of a system to 40 questions for 40 control prompts."""
    recorded = read(RECORDINGS / ("sampled.jsonl.gz" if name == "sampled" else "greedy.jsonl.gz"))
    first = next(iter(recorded.values()))
    keys = [key for key in first if key.startswith("neutral-phrases/")]
    keys = [key for key in keys if all(key in texts for texts in recorded.values())]
    if name in BOTS:
        return {
            f"question-{n:02}": {
                key: BOTS[name].answer(n, random.Random(f"{name}/{n}/{key}")) for key in keys
            }
            for n in range(40)
        }
    return {source: {key: texts[key] for key in keys} for source, texts in recorded.items()}


class _Vectors:
    """Embeds each sentence once."""

    def __init__(self) -> None:
        self._encoder = OnnxEncoder(DATA / "models/minilm", threads=1, choice=NO_PROMPTS)
        self._known: dict[str, Any] = {}

    def __call__(self, documents: Sequence[Document]) -> Any:
        texts = [str(document.text) for document in documents]
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= zip(new, self._encoder.embed(new), strict=True)
        return np.stack([self._known[text] for text in texts])


@cache
def vectors() -> _Vectors:
    """Load the shipped embedder once."""
    return _Vectors()


@dataclass(frozen=True, kw_only=True)
class Run:
    """Answers of one system, and who is a control prompt."""

    texts: Texts
    controls: Sequence[str]
    identities: Sequence[str]

    def pools(self, identities: Sequence[str]) -> Iterator[Pool]:
        """Yield the pool of each question, of some identities."""
        for source, texts in self.texts.items():
            members = [
                _member(source, key, texts[key], is_control=key in self.controls)
                for key in (*identities, *self.controls)
            ]
            asked = PoolAnswer(key=source, unit=None, reading=READ, executions=[], responses=[])
            yield Pool(relation="set-equivalence", source=asked, members=members)

    def columns(self, identities: Sequence[str]) -> dict[str, Floats]:
        """Read answers: [questions, identities and control prompts] by column."""
        rows = list(reader.SENTENCES.compute(list(self.pools(identities)), vectors()))
        return {
            column.column: np.array(
                [
                    [np.nan if isinstance(value, Reason) else value for value in row[column.column]]
                    for row in rows
                ]
            )
            for column in OUTCOME.columns
            if column.column in rows[0]
        }


def _member(source: str, key: str, text: str, *, is_control: bool) -> PoolAnswer:
    category, _, term = key.partition("/")
    follow_up = f"{source}#{key}"
    unit = Unit(
        key=follow_up, suite="bench", cluster=source, content="",
        arm=Arm.CONTROL if is_control else Arm.TEST,
        asks=CaseKeys({"source": 0, "follow-up": 1}, (source, follow_up)),
        dimensions={"relation": "set-equivalence", "category": category, "term": term},
        names={"noun_phrase": noun_phrases()[key.partition("#")[0]]},
    )  # fmt: skip
    execution = Execution(documents=None, response=text)
    return PoolAnswer(
        key=follow_up, unit=unit, reading=READ, executions=[execution], responses=[text]
    )


def _split(texts: Texts, number: int) -> tuple[list[str], list[str]]:
    keys = list(next(iter(texts.values())))
    random.Random(f"split/{number}").shuffle(keys)
    return keys[:IDENTITIES], keys[IDENTITIES:]


Prepare = Callable[[str, str], str]
"""An answer and its question to the answer that is harmed or not."""


@cache
def _prepared(name: str, preparation: str, questions: int) -> Texts:
    texts = dict(list(corpus(name).items())[:questions])
    prepare = {"fact": with_fact, "list": with_list, "": None}[preparation]
    if prepare is None:
        return texts
    return {
        source: {
            key: prepare(text, random.Random(source), random.Random(f"{source}/{key}"))
            for key, text in of.items()
        }
        for source, of in texts.items()
    }


@lru_cache(maxsize=24)
def base(name: str, preparation: str, number: int, questions: int) -> tuple[Run, dict[str, Floats]]:
    """Return a run where nobody is harmed, and its columns."""
    texts = _prepared(name, preparation, questions)
    identities, controls = _split(texts, number)
    run = Run(texts=texts, controls=controls, identities=identities)
    return run, run.columns(identities)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the scan says of a world."""

    is_red: bool
    is_right: bool
    column: str


def judged(run: Run, columns: Mapping[str, Floats], who: str = "") -> Verdict:
    """Scan a world's columns."""
    categories = {f"category {n}": list(run.identities[n * 5 : n * 5 + 5]) for n in range(4)}
    turned = {
        column.column: -columns[column.column] if column.turned else columns[column.column]
        for column in OUTCOME.columns
        if column.column in columns and not np.isnan(columns[column.column]).all()
    }
    result = scan(turned, nodes_of(categories), identities=IDENTITIES).among()
    beyond = [named for named in result.named if abs(named.estimate) > OUTCOME.max]
    first = beyond[0] if beyond else None
    is_right = first is not None and first.node.who == (who,)
    return Verdict(first is not None, is_right, first.column if first else "")


World = tuple[str, float, int]
"""The harm, its share of the answers, and a number that all draws are made from."""


def harmed(
    name: str,
    harms: Mapping[str, Harm],
    shares: Sequence[float],
    numbers: Sequence[int],
    questions: int = 40,
) -> dict[World, Verdict]:
    """Judge worlds in each of which one identity's answers are harmed in a share of the questions.

    No answer is read beside those to other identities, so that many worlds are read at once.
    """
    verdicts: dict[World, Verdict] = {}
    needs = {harm: getattr(harms[harm], "needs", "") if name not in BOTS else "" for harm in harms}
    for preparation, split in product(sorted(set(needs.values())), range(SPLITS)):
        run, columns = base(name, preparation, split, questions)
        own = [
            (harm, share, number)
            for harm, share, number in product(harms, shares, numbers)
            if needs[harm] == preparation and number % SPLITS == split
        ]
        for start in range(0, len(own), _AT_ONCE):
            some = own[start : start + _AT_ONCE]
            told = {
                f"{run.identities[world[2] % IDENTITIES]}#{n}": _told(run, name, harms, world)
                for n, world in enumerate(some)
            }
            texts = {s: of | {key: told[key][s] for key in told} for s, of in run.texts.items()}
            read_of = replace(run, texts=texts).columns([*told])
            for n, (world, key) in enumerate(zip(some, told, strict=True)):
                who = key.partition("#")[0]
                together = {column: values.copy() for column, values in columns.items()}
                for column, values in together.items():
                    values[:, run.identities.index(who)] = read_of[column][:, n]
                verdicts[world] = judged(run, together, who)
    return verdicts


def _told(run: Run, name: str, harms: Mapping[str, Harm], world: World) -> dict[str, str]:
    """Return what the identity who is harmed is told, by question."""
    harm, share, number = world
    rng = random.Random(f"{name}/{number}/{share}")
    who = run.identities[number % IDENTITIES]
    bad = set(rng.sample(sorted(run.texts), round(share * len(run.texts))))
    told = {}
    for source, of in run.texts.items():
        other = rng.choice([each for each in run.texts if each != source])
        language = name if name in BOTS else "en"
        answer = Answer(of[who], noun_phrases()[who], run.texts[other][who], language)
        told[source] = harms[harm](answer, rng) if source in bad else of[who]
    return told


_HABITS = (
    "I hope that this is of use.", "Let us look at it together.", "That is a fine question.",
    "Feel free to ask again.", "Here is what comes to mind.", "There is more than one way.",
)  # fmt: skip


def _effect(kind: str, key: str, rng: random.Random) -> Callable[[str, random.Random], str]:
    """How a phrase changes answers, whoever it stands for."""
    if kind == "effects of phrases":
        habit, often = rng.choice(_HABITS), rng.betavariate(2, 6)
        return lambda text, draw: insert(text, habit, draw) if draw.random() < often else text
    if kind == "shorter for longer phrases":
        often = min(0.6, 0.1 * len(noun_phrases()[key].split()))
        return lambda text, draw: _half(text) if draw.random() < often else text
    if kind == "another answer for any prefix":
        habit = "Somebody says a text to us."
        return lambda text, draw: insert(text, habit, draw) if draw.random() < 0.4 else text
    if kind == "the asker's name for everybody":
        phrase = noun_phrases()[key]
        clause = f"As {phrase[:1].lower()}{phrase[1:]}, "
        return lambda text, draw: (
            clause + text[:1].lower() + text[1:] if draw.random() < 0.5 else text
        )
    return lambda text, draw: text


def _half(text: str) -> str:
    words = text.split(" ")
    return " ".join(words[: max(3, len(words) // 2)])


def fair(name: str, kind: str, number: int, questions: int = 40) -> Verdict:
    """Judge a world in which naming somebody does what naming any control prompt may do."""
    texts = dict(list(corpus(name).items())[:questions])
    rng = random.Random(f"fair/{kind}/{number}")
    effects = {key: _effect(kind, key, rng) for key in next(iter(texts.values()))}
    changed = {s: {k: effects[k](text, rng) for k, text in of.items()} for s, of in texts.items()}
    identities, controls = _split(changed, 1_000 + number)
    run = Run(texts=changed, controls=controls, identities=identities)
    return judged(run, run.columns(identities))


def main() -> None:
    """Print the tables of `docs/validation/sentences.md`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument(
        "--corpora", nargs="+", default=["greedy", "en", "de", "es"], choices=CORPORA
    )
    parser.add_argument("--kinds", nargs="+", default=["fair", "planted", "inside"])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.2, 0.4])
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    # Each text is read once, though worlds share them.
    reader.read_text = lru_cache(maxsize=1 << 17)(reader.read_text)  # type: ignore[assignment]
    groups: dict[str, Mapping[str, Harm]] = {"planted": PLANTED, "inside": INSIDE, "aside": ASIDE}
    harms = {
        harm: do
        for group, of_group in groups.items()
        for harm, do in of_group.items()
        if group in options.kinds and options.only in harm
    }
    numbers = range(options.worlds)
    cells: dict[str, dict[str, list[Verdict]]] = {}
    for name in options.corpora:
        for kind in FAIR if "fair" in options.kinds else ():
            if options.only in kind:
                cells.setdefault(f"fair: {kind}", {})[name] = [
                    fair(name, kind, number, options.questions) for number in numbers
                ]
        verdicts = harmed(name, harms, options.shares, numbers, options.questions)
        for (harm, share, _), verdict in verdicts.items():
            of_cell = cells.setdefault(f"{harm}, {share:.0%}", {})
            of_cell.setdefault(name, []).append(verdict)
    rows = []
    for title, by_corpus in cells.items():
        of_all = [verdict for of_corpus in by_corpus.values() for verdict in of_corpus]
        by = Counter(each.column.removeprefix("answer/") for each in of_all if each.is_red)
        rows.append(
            [title]
            + [
                f"{sum(v.is_red for v in of) / len(of):.2f} ({sum(v.is_right for v in of)})"
                for of in by_corpus.values()
            ]
            + [", ".join(f"{n} {column}" for column, n in by.most_common(3))]
        )
    print(markdown(["world", *options.corpora, "named by"], rows))


if __name__ == "__main__":
    main()
