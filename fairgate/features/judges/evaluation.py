"""Measure a judge on pairs that people have labelled, and write its record."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import SupportsInt

import numpy as np

from fairgate.domain.errors import DataError, ModelError, PolicyError
from fairgate.domain.ports import Progress
from fairgate.domain.runtime import Runtime
from fairgate.io.durable import write_text
from fairgate.io.tables import read_rows, table_columns
from fairgate.io.text_files import capped, checked_text, file_sha256
from fairgate.policy.parse import validated
from fairgate.policy.yaml_text import load_yaml, read_yaml_file
from fairgate.relations.oracles.judge import JUDGE_RULE, JudgedTexts, Verdict
from fairgate.stats.association import auc, entropy, stability
from fairgate.stats.interval import Interval, wilson
from fairgate.stats.observations import Floats, Mask
from fairgate.systems.judges import (
    JudgeFile,
    Judgements,
    Vote,
    fingerprints,
    judge_all,
    open_judges,
    vote,
)
from fairgate.systems.resources import Resources

CONFIDENCE = 0.95
_DECIMALS = 4
_CLAIMS = (Verdict.BIASED, Verdict.UNBIASED)
_NAMES = {"f1": "F1", "auc": "AUC"}
_TEXTS = ("prompt", "follow_up", "response", "follow_up_response")
_LABELS = {"biased": True, "unbiased": False, "true": True, "false": False, "1": True, "0": False}
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationChoice:
    """What `fairgate judge evaluate` is asked to do."""

    repeats: int
    seed: int


def load_judge(path: Path) -> JudgeFile:
    """Return the judge that a file describes. Raises PolicyError with all problems."""
    judge, problems = validated(load_yaml(read_yaml_file(path), str(path)), JudgeFile)
    if judge is None or problems:
        raise PolicyError(problems)
    return judge


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """One pair with what people say of it."""

    id: str
    texts: JudgedTexts
    is_biased: bool


def read_labelled_pairs(path: str) -> list[LabelledPair]:
    """Return the pairs of a table with `id`, four texts and `label`, in the order of the file.

    `label` is BIASED or UNBIASED. Raises DataError with the place of what is wrong, and where only
    one of the labels occurs: agreement beyond chance is not defined then.
    """
    missing = [name for name in (*_TEXTS, "label") if name not in table_columns(path)]
    if missing:
        raise DataError(
            f"{path}: no column {missing[0]!r}; expected {', '.join((*_TEXTS, 'label'))}"
        )
    found: list[LabelledPair] = []
    lines: dict[str, int] = {}
    for row in read_rows(path):
        place = f"{path}:{row.line}"
        name = str(row.values.get("id") or row.number)
        if lines.setdefault(name, row.line) != row.line:
            raise DataError(f"{place}: id {capped(name)} was used on line {lines[name]} already")
        texts = [checked_text(row.values.get(column), place, column) for column in _TEXTS]
        for column, text in zip(_TEXTS, texts, strict=True):
            if not text.strip():
                raise DataError(f"{place}: {column!r} is empty; write the text or remove the row")
        found.append(
            LabelledPair(
                id=name,
                texts=JudgedTexts(
                    source_prompt=texts[0],
                    follow_up_prompt=texts[1],
                    source_response=texts[2],
                    follow_up_response=texts[3],
                ),
                is_biased=_label(row.values.get("label"), place),
            )
        )
    if len({pair.is_biased for pair in found}) < 2:
        there = "no pair" if not found else "BIASED" if found[0].is_biased else "UNBIASED"
        raise DataError(
            f"{path}: holds {there} alone; expected pairs of both labels: with one of them no "
            "judge can be distinguished from one that always says the same"
        )
    return found


def _label(value: object, place: str) -> bool:
    found = _LABELS.get(str(value).strip().lower())
    if found is None:
        raise DataError(f"{place}: 'label' holds {capped(value)}; expected BIASED or UNBIASED")
    return found


def evaluate_judge(
    path: Path, labelled: Path, choice: EvaluationChoice, runtime: Runtime, progress: Progress
) -> dict[str, object]:
    """Ask a judge about labelled pairs, and return its record: plain data, the same every time.

    Raises ModelError where it gave no verdict at all.
    """
    judge = load_judge(path)
    pairs = read_labelled_pairs(str(labelled))
    resources = Resources(runtime, progress)
    texts = {pair.id: pair.texts for pair in pairs}
    opened = open_judges(judge, resources)
    judged = judge_all(texts, opened, choice.repeats, progress)
    first = {key: vote(repeats[0]) for key, repeats in judged.items()}
    decided = [pair for pair in pairs if first[pair.id].verdict in _CLAIMS]
    if not decided:
        raise ModelError(
            f"{path}: the judge called none of the {len(pairs)} pairs BIASED or UNBIASED "
            f"({_counted(first.values())}); expected JSON verdicts: try a larger model, more "
            "`max_new_tokens`, or look at one answer"
        )
    rng = np.random.default_rng(choice.seed)
    return {
        "schema_version": 1,
        "judge": judge.id,
        "models": judge.names,
        "definition": judge.definition,
        "fingerprints": fingerprints(opened),
        "rule": JUDGE_RULE,
        "labelled": file_sha256(str(labelled)),
        "pairs": len(pairs),
        "biased": sum(pair.is_biased for pair in pairs),
        "decided": len(decided),
        "verdicts": dict(sorted(Counter(_word(one) for one in first.values()).items())),
        "repeats": choice.repeats,
        "confidence": CONFIDENCE,
        "seed": choice.seed,
        **_agreement(decided, first, rng),
        **_steadiness(judged),
    }


def write_record(record: Mapping[str, object], output: Path) -> None:
    """Write a judge's record, keys sorted."""
    write_text(output, json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def summary_lines(record: Mapping[str, object]) -> Iterator[str]:
    """Yield a record's summary as lines."""
    verdicts = record["verdicts"]
    assert isinstance(verdicts, dict)  # noqa: S101 (made above)
    counts = ", ".join(f"{number} {word}" for word, number in verdicts.items())
    yield f"judge {record['judge']}: {record['decided']} of {record['pairs']} pairs decided"
    yield f"  verdicts   {counts}"
    for name in ("precision", "recall", "f1", "auc", "kappa", "stability", "entropy"):
        figure = record.get(name)
        if isinstance(figure, dict):
            yield f"  {_NAMES.get(name, name):<10} {_shown(figure)}"


@dataclass(frozen=True, slots=True)
class Figure:
    """An estimate with its interval; NaN where it is not defined."""

    value: float
    low: float
    high: float


def precision(predicted: Mask, true: Mask) -> float:
    """Return the share of positive verdicts that are right; NaN without a positive verdict."""
    return _share(np.count_nonzero(predicted & true), np.count_nonzero(predicted))


def recall(predicted: Mask, true: Mask) -> float:
    """Return the share of positive cases that are found; NaN without a positive case."""
    return _share(np.count_nonzero(predicted & true), np.count_nonzero(true))


def f1(predicted: Mask, true: Mask) -> float:
    """Return 2 TP / (2 TP + FP + FN); NaN where nothing is positive on either side."""
    return _share(
        2 * np.count_nonzero(predicted & true), np.count_nonzero(predicted) + np.count_nonzero(true)
    )


def kappa(predicted: Mask, true: Mask) -> float:
    """Return Cohen's kappa; NaN where both are constant and equal, so that nothing is by chance."""
    if not len(predicted):
        return float("nan")
    agree = float(np.mean(predicted == true))
    a, b = float(np.mean(predicted)), float(np.mean(true))
    chance = a * b + (1 - a) * (1 - b)
    return (agree - chance) / (1 - chance) if chance < 1 else float("nan")


def figures(
    predicted: Mask, true: Mask, scores: Floats, *, confidence: float, rng: np.random.Generator
) -> dict[str, Figure]:
    """Return the five figures of `n` cases with percentile-bootstrap intervals.

    `predicted`, `true` [n] are verdict and label, `scores` [n] how strongly it is
    positive. Resamples in which a figure is not defined are left out of its interval.

    They are precision, recall, F1, AUC and Cohen's kappa: (p - e) / (1 - e), with p the share of
    equal pairs and e what equal margins alone would give (J. Cohen, Educational and Psychological
    Measurement 20 (1960) 37-46).
    """
    measures: dict[str, Callable[[Mask, Mask, Floats], float]] = {
        "precision": lambda s, t, _: precision(s, t),
        "recall": lambda s, t, _: recall(s, t),
        "f1": lambda s, t, _: f1(s, t),
        "auc": lambda _, t, x: auc(x, t),
        "kappa": lambda s, t, _: kappa(s, t),
    }
    n = len(predicted)
    drawn = rng.integers(0, n, size=(_RESAMPLES, n)) if n else np.empty((0, 0), dtype=np.int64)
    tail = (1 - confidence) / 2
    found = {}
    for name, measure in measures.items():
        values = np.asarray([measure(predicted[i], true[i], scores[i]) for i in drawn])
        known = values[~np.isnan(values)]
        low, high = (
            (float(np.quantile(known, q)) for q in (tail, 1 - tail))
            if len(known)
            else (float("nan"), float("nan"))
        )
        found[name] = Figure(measure(predicted, true, scores), low, high)
    return found


def _share(part: SupportsInt, whole: SupportsInt) -> float:
    return int(part) / int(whole) if int(whole) else float("nan")


def _agreement(
    decided: Sequence[LabelledPair], votes: Mapping[str, Vote], rng: np.random.Generator
) -> dict[str, object]:
    judged = np.asarray([votes[pair.id].verdict is Verdict.BIASED for pair in decided], dtype=bool)
    true = np.asarray([pair.is_biased for pair in decided], dtype=bool)
    scores = np.asarray([votes[pair.id].score for pair in decided], dtype=np.float64)
    found = figures(judged, true, scores, confidence=CONFIDENCE, rng=rng)
    return {name: _plain(figure) for name, figure in found.items()}


def _steadiness(judged: Mapping[str, Judgements]) -> dict[str, object]:
    """Return the share of pairs with one verdict over all repeats, and the mean entropy."""
    words = [[_word(vote(one)) for one in repeats] for repeats in judged.values()]
    if len(words[0]) < 2:
        return {}
    share = stability(words)
    found = wilson(share * len(words), len(words), confidence=CONFIDENCE)
    low, high = (found.low, found.high) if isinstance(found, Interval) else (math.nan, math.nan)
    return {
        "stability": _plain(Figure(share, low, high)),
        "entropy": {"value": round(float(np.mean([entropy(each) for each in words])), _DECIMALS)},
    }


def _word(one: Vote) -> str:
    return "none" if one.verdict is None else str(one.verdict)


def _counted(votes: Iterable[Vote]) -> str:
    counts = Counter(_word(one) for one in votes)
    return ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))


def _plain(figure: Figure) -> dict[str, float | None]:
    return {
        name: None if math.isnan(value) else round(value, _DECIMALS) + 0.0
        for name, value in asdict(figure).items()
    }


def _shown(figure: Mapping[str, float | None]) -> str:
    value, low, high = (figure.get(name) for name in ("value", "low", "high"))
    if value is None:
        return "not defined"
    return f"{value:.2f}" + (f"  ({low:.2f} to {high:.2f})" if None not in (low, high) else "")
