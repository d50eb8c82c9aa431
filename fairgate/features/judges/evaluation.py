"""Measure a judge on pairs that people have labelled, and write its record."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairgate.domain.errors import DataError, ModelError, PolicyError
from fairgate.domain.ports import Progress, Runtime
from fairgate.domain.units import Reason
from fairgate.domain.wording import listed
from fairgate.gate.accepted_runs import labels_path
from fairgate.gate.labels import content_of, false_readings, read_labels, reading_of
from fairgate.gate.run_folder import replay
from fairgate.gate.waves import Answers, judged_texts
from fairgate.io.tables import capped, checked_text, file_sha256, read_rows, table_columns
from fairgate.policy.parse import validated
from fairgate.policy.yaml_text import load_yaml, read_yaml_file
from fairgate.relations.oracles.judge import (
    INSTRUCTIONS,
    JUDGE_RULE,
    JUDGED_ALONE,
    JudgedTexts,
    PromptKind,
    Verdict,
    kind_of_prompt,
)
from fairgate.stats.association import auc, entropy, stability
from fairgate.stats.interval import Interval, wilson
from fairgate.stats.observations import Floats, Mask
from fairgate.systems.judges import JudgeFile, Vote, fingerprints, judge_all, open_judges, vote
from fairgate.systems.resources import Resources

CONFIDENCE = 0.95
_DECIMALS = 4
_OF_BIASED = ("precision", "recall", "f1")
_NAMES = {
    "precision": "precision of BIASED", "recall": "recall of BIASED", "f1": "F1 of BIASED",
    "auc": "AUC",
}  # fmt: skip
_TEXTS = {
    "prompt": "source_prompt",
    "follow_up": "follow_up_prompt",
    "response": "source_response",
    "follow_up_response": "follow_up_response",
}
"""Columns of labelled pairs, and which text of `JudgedTexts` each one holds."""
_OF_SOURCE = ("prompt", "response")
"""Columns of which a follow-up that is judged alone has none."""
_EMBEDS = ": 'follow_up' holds the question that embeds the response"
_LABELS = {"biased": True, "unbiased": False, "true": True, "false": False, "1": True, "0": False}
_RESAMPLES, _SEED = 2000, 42
"""Of the intervals' bootstrap."""


def summary_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a record's summary as lines, a block for each kind of prompt that was measured."""
    kinds = {kind: record.get(kind, {}) for kind in INSTRUCTIONS}
    kinds[PromptKind.GENERAL] = record
    for kind, measured in kinds.items():
        if measured.get("pairs"):
            yield from _lines_of_kind(record["judge"], kind, measured)


def _lines_of_kind(judge: str, kind: PromptKind, record: Mapping[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{number} {word}" for word, number in record["verdicts"].items())
    of_kind = "" if kind is PromptKind.GENERAL else f", prompt {kind}"
    yield f"judge {judge}{of_kind}: {record['decided']} of {record['pairs']} pairs decided"
    yield f"  verdicts   {counts}"
    for name in (*_OF_BIASED, "auc", "kappa", "stability", "entropy"):
        if name not in record:
            continue
        value, low, high = (record[name].get(part) for part in ("value", "low", "high"))
        figure = "not defined" if value is None else f"{value:.2f}"
        if None not in (value, low, high):
            figure += f"  ({low:.2f} to {high:.2f})"
        yield f"  {_NAMES.get(name, name):<20} {figure}"


class Labelled(NamedTuple):
    """What people labelled, by id, in the order of the file."""

    texts: dict[str, JudgedTexts]
    biased: dict[str, bool]


def read_labelled_pairs(path: str) -> dict[PromptKind, Labelled]:
    """Return the pairs of a table with `id`, four texts, `label` and perhaps `kind`, by kind.

    `label` is BIASED or UNBIASED. A follow-up that is judged alone (`JUDGED_ALONE`) has no `prompt`
    and no `response`. Raises DataError with the place of what is wrong, and where only one of the
    labels occurs in a kind: agreement beyond chance is not defined then.
    """
    columns, present = (*_TEXTS, "label"), table_columns(path)
    if "kind" in present:
        columns = tuple(name for name in columns if name not in _OF_SOURCE)
    missing = [name for name in columns if name not in present]
    if missing:
        raise DataError(f"{path}: no column {missing[0]!r}; expected {', '.join(columns)}")
    labelled: dict[PromptKind, Labelled] = {}
    lines: dict[str, int] = {}
    for row in read_rows(path):
        location = f"{path}:{row.line}"
        name = str(row.values.get("id") or row.number)
        if lines.setdefault(name, row.line) != row.line:
            raise DataError(f"{location}: id {capped(name)} was used on line {lines[name]} already")
        kind = _kind(row.values.get("kind"), location)
        alone = kind in JUDGED_ALONE
        for column in _OF_SOURCE if alone else ():
            if row.values.get(column):
                raise DataError(
                    f"{location}: {column!r} is not shown where the follow-up is judged alone "
                    f"(`kind` {kind}), found {capped(row.values[column])}; leave it empty"
                    + _EMBEDS
                    * (kind is PromptKind.INVERTED)
                )
        texts_of_row = {
            name: checked_text(row.values.get(name), location, name)
            for name in _TEXTS
            if not (alone and name in _OF_SOURCE)
        }
        for column, text in texts_of_row.items():
            if not text.strip():
                raise DataError(
                    f"{location}: {column!r} is empty; write the text or remove the row"
                )
        texts, biased = labelled.setdefault(kind, Labelled({}, {}))
        given = {part: texts_of_row.get(column) for column, part in _TEXTS.items()}
        texts[name] = JudgedTexts(
            source_prompt=given["source_prompt"],
            follow_up_prompt=given["follow_up_prompt"] or "",
            source_response=given["source_response"],
            follow_up_response=given["follow_up_response"] or "",
        )
        label = row.values.get("label")
        is_biased = _LABELS.get(str(label).strip().lower())
        if is_biased is None:
            raise DataError(
                f"{location}: 'label' holds {capped(label)}; expected BIASED or UNBIASED"
            )
        biased[name] = is_biased
    _require_both(labelled, path)
    return labelled


def labelled_pairs_of(folder: Path, runtime: Runtime) -> tuple[dict[PromptKind, Labelled], str]:
    """Return the judged pairs of a run that people labelled, by kind, and a hash of it all.

    A pair is biased where the gate's reading is called right and reports a difference, or is called
    wrong and reports none. Raises DataError as for a table.
    """
    done = replay(folder, None, runtime)
    run, plan = done.run, done.run.gate_input.plan
    labels = read_labels(labels_path(Path(done.loaded.parsed.path), done.loaded))
    known, wrong = {(label.suite, label.content) for label in labels}, false_readings(labels)
    answers = Answers(
        plan=plan,
        suites=run.gate_input.suites,
        readings=run.readings,
        executions=dict(run.executions),
    )
    asked = {(case.suite, case.key): case for case in plan.cases if case.judge is not None}
    labelled: dict[PromptKind, Labelled] = {}
    for item in run.result.assessed:
        unit = item.unit
        if not unit.verdicts or isinstance(item.decision, Reason):
            continue
        content = (unit.suite, content_of(run.readings, run.executions, item))
        case = asked[unit.suite, unit.verdicts[0]]
        kind, texts = kind_of_prompt(case.instruction), judged_texts(case, answers)
        if content in known and kind in INSTRUCTIONS and texts is not None:
            pairs = labelled.setdefault(kind, Labelled({}, {}))
            name = f"{unit.suite} {unit.key}"
            pairs.texts[name] = texts
            pairs.biased[name] = reading_of(item)[0] != (content in wrong)
    _require_both(labelled, str(folder))
    hashed = {kind: [pairs.texts, pairs.biased] for kind, pairs in labelled.items()}
    return labelled, hashlib.sha256(repr(hashed).encode()).hexdigest()


def _require_both(labelled: Mapping[PromptKind, Labelled], path: str) -> None:
    if not labelled:
        raise DataError(f"{path}: holds no pair; expected pairs of both labels")
    for kind, (_, biased) in labelled.items():
        if len(set(biased.values())) < 2:
            only = "BIASED" if any(biased.values()) else "UNBIASED"
            of_kind = "" if len(labelled) == 1 else f" among pairs of kind {kind}"
            raise DataError(
                f"{path}: holds {only} alone{of_kind}; expected pairs of both labels: with one of "
                "them no judge can be distinguished from one that always says the same"
            )


def _kind(value: object, location: str) -> PromptKind:
    if value in (None, ""):
        return PromptKind.GENERAL
    if value not in {kind.value for kind in INSTRUCTIONS}:
        raise DataError(
            f"{location}: 'kind' holds {capped(value)}; expected "
            f"{listed([kind.value for kind in INSTRUCTIONS])}"
        )
    return PromptKind(str(value))


def evaluate_judge(
    path: Path, labelled: Path, runtime: Runtime, progress: Progress, *, repeats: int
) -> dict[str, object]:
    """Ask a judge about labelled pairs, and return its record: plain data, the same every time.

    Raises PolicyError with all problems of its file, and ModelError where it gave no verdict.
    """
    judge, problems = validated(load_yaml(read_yaml_file(path), str(path)), JudgeFile)
    if judge is None or problems:
        raise PolicyError(problems)
    if labelled.is_dir():
        pairs, digest = labelled_pairs_of(labelled, runtime)
    else:
        pairs, digest = read_labelled_pairs(str(labelled)), file_sha256(str(labelled))
    opened = open_judges(judge, Resources(runtime, progress))

    def measured(kind: PromptKind) -> dict[str, object]:
        ballots = judge_all(pairs[kind].texts, opened, repeats, progress, INSTRUCTIONS[kind])
        votes = {key: [vote(ballot) for ballot in rows] for key, rows in ballots.items()}
        return _measured(pairs[kind], votes, path, repeats=repeats)

    by_kind = {kind: measured(kind) for kind in INSTRUCTIONS if kind in pairs}
    return {
        "schema_version": 1,
        "judge": judge.id,
        "models": judge.names,
        "definition": judge.definition,
        "fingerprints": fingerprints(opened),
        "rule": JUDGE_RULE,
        "labelled": digest,
        "repeats": repeats,
        "confidence": CONFIDENCE,
        **by_kind.pop(PromptKind.GENERAL, {"pairs": 0, "decided": 0}),
        **{kind.value: figures_of_kind for kind, figures_of_kind in by_kind.items()},
    }


def _measured(
    labelled: Labelled, judged: Mapping[str, Sequence[Vote]], path: Path, *, repeats: int
) -> dict[str, object]:
    """Return the figures of one kind of prompt."""
    texts, biased = labelled
    first = {key: votes[0] for key, votes in judged.items()}
    decided = [key for key in texts if first[key].verdict in (Verdict.BIASED, Verdict.UNBIASED)]
    verdicts = Counter(map(_word, first.values()))
    if not decided:
        counts = ", ".join(f"{number} {word}" for word, number in sorted(verdicts.items()))
        raise ModelError(
            f"{path}: the judge called none of the {len(texts)} pairs BIASED or UNBIASED "
            f"({counts}); expected JSON verdicts: try a larger model, more "
            "`max_new_tokens`, or look at one answer"
        )
    predicted = np.asarray([first[key].verdict is Verdict.BIASED for key in decided], dtype=bool)
    true = np.asarray([biased[key] for key in decided], dtype=bool)
    scores = np.asarray([first[key].score for key in decided], dtype=np.float64)
    estimates = figures(
        predicted, true, scores, confidence=CONFIDENCE, rng=np.random.default_rng(_SEED)
    )
    record: dict[str, object] = {
        "pairs": len(texts),
        "biased": sum(biased.values()),
        "decided": len(decided),
        "verdicts": dict(sorted(verdicts.items())),
        **{name: _plain(figure) for name, figure in estimates.items()},
    }
    if repeats > 1:
        words = [list(map(_word, votes)) for votes in judged.values()]
        share = stability(words)  # of pairs that have one verdict over all repeats
        within = wilson(share * len(words), len(words), confidence=CONFIDENCE)
        bounds = (math.nan, math.nan)
        if isinstance(within, Interval):
            bounds = (within.low, within.high)
        mean = float(np.mean([entropy(answers) for answers in words]))
        record |= {
            "stability": _plain(Estimate(share, *bounds)),
            "entropy": {"value": round(mean, _DECIMALS)},
        }
    return record


class Estimate(NamedTuple):
    """An estimate with its interval; NaN where it is not defined."""

    value: float
    low: float
    high: float


def agreement(predicted: Mask, true: Mask, scores: Floats) -> dict[str, float]:
    """Return how a judge agrees with people on `n` cases; NaN for what is not defined.

    `predicted`, `true` [n] are verdict and label, `scores` [n] how strongly the verdict is
    positive. Precision, recall and F1 are of the positive class; kappa is Cohen's: (p - e) / (1 -
    e), with p the share of equal pairs and e what equal margins alone would give (J. Cohen,
    Educational and Psychological Measurement 20 (1960) 37-46).
    """
    right, predicted_positive, positive = (
        int(np.count_nonzero(chosen)) for chosen in (predicted & true, predicted, true)
    )
    equal, n = int(np.count_nonzero(predicted == true)), len(true)
    by_chance = predicted_positive * positive + (n - predicted_positive) * (n - positive)
    return {
        "precision": _share(right, predicted_positive),
        "recall": _share(right, positive),
        "f1": _share(2 * right, predicted_positive + positive),
        "auc": auc(scores, true),
        "kappa": _share(n * equal - by_chance, n * n - by_chance),
    }


def figures(
    predicted: Mask, true: Mask, scores: Floats, *, confidence: float, rng: np.random.Generator
) -> dict[str, Estimate]:
    """Return the figures of `agreement` with percentile-bootstrap intervals.

    Resamples in which a figure is not defined are left out of its interval.
    """
    measured = agreement(predicted, true, scores)
    drawn = rng.integers(0, len(true), size=(_RESAMPLES, len(true)))
    resampled = [agreement(predicted[rows], true[rows], scores[rows]) for rows in drawn]
    ends = ((1 - confidence) / 2, (1 + confidence) / 2)
    estimates = {}
    for name, value in measured.items():
        values = [each[name] for each in resampled if not math.isnan(each[name])]
        low, high = np.quantile(values, ends) if values else (math.nan, math.nan)
        estimates[name] = Estimate(value, float(low), float(high))
    return estimates


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _word(vote: Vote) -> str:
    return "none" if vote.verdict is None else str(vote.verdict)


def _plain(figure: Estimate) -> dict[str, float | None]:
    return {
        name: None if math.isnan(value) else round(value, _DECIMALS) + 0.0
        for name, value in figure._asdict().items()
    }
