"""Answers by probability: the option that a model finds most probable, without generating."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import cast

from fairgate.domain.cases import Case
from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Answer, GenerationRequest
from fairgate.domain.ports import Generator, OptionScorer, Progress, ResultStore
from fairgate.systems.stored import read_back, scores_from

_AT_ONCE = 64
_DECIMALS = 4


def score(
    requests: Sequence[GenerationRequest],
    generator: Generator,
    store: ResultStore,
    progress: Progress,
) -> dict[GenerationRequest, Answer]:
    """Return for each request the most probable of its options; the margin is to the next one.

    Each unique request is scored once, and what was scored before comes from the store. Raises
    ModelError where the generator cannot score.
    """
    keys = {request: _key(generator, request) for request in dict.fromkeys(requests)}
    if not keys:
        return {}
    if not hasattr(generator, "score_options"):
        raise ModelError(
            "this generator does not return the probability of an answer; use `read: generated`"
        )
    stored = store.get_many("score", list(keys.values()))
    known = read_back(keys, stored, lambda r, value: scores_from(value, len(r.options)))
    answers = {request: _answer(request, values) for request, values in known.items()}
    missing = [request for request in keys if request not in answers]
    progress.start("score", len(keys), len(answers))
    at_once = _AT_ONCE * getattr(generator, "side_by_side", 1)
    for start in range(0, len(missing), at_once):
        batch = missing[start : start + at_once]
        scores = cast("OptionScorer", generator).score_options(batch)
        found = dict(zip(batch, scores, strict=True))
        store.put_many("score", [(keys[r], json.dumps(values)) for r, values in found.items()])
        answers |= {request: _answer(request, values) for request, values in found.items()}
        progress.advance(len(batch))
    progress.finish()
    return answers


def named_option(case: Case, answer: str) -> str:
    """Return the text of the option that was scored best (its letter may have been scored)."""
    return case.options[case.scored.index(answer)]


def _answer(request: GenerationRequest, scores: Sequence[float]) -> Answer:
    ranked = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    margin = round(scores[ranked[0]] - scores[ranked[1]], _DECIMALS)
    return Answer(text=request.options[ranked[0]], margin=margin, stopped="label")


def _key(generator: Generator, request: GenerationRequest) -> str:
    parts = json.dumps([generator.fingerprint, request.prompt, request.options])
    return hashlib.sha256(parts.encode()).hexdigest()
