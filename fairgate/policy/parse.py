"""A policy's text to a validated Policy, or all of its problems at once, each with its place."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fairgate.domain.errors import PolicyError, Problem
from fairgate.domain.wording import shown
from fairgate.policy.assembled import PolicyParts, policy_model, sufficient_model
from fairgate.policy.checks import contradictions
from fairgate.policy.explain import explain
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_text import Mark, Where, YamlDocument, load_yaml

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPolicy:
    """A valid policy with the place of each of its values."""

    policy: Policy
    document: YamlDocument
    stand_ins: frozenset[str] = frozenset()
    """Keys whose values could not be read, and are others here: only where not all is valid."""

    @property
    def path(self) -> str:
        """Return the file's name as messages show it."""
        return self.document.path

    @property
    def text(self) -> str:
        """Return the file's text as it was read."""
        return self.document.text

    def located(self, where: Where) -> Mark:
        """Return line and column, from 1, of `where`, else of its nearest ancestor."""
        return self.document.located(where)


def parse_policy(text: str, path: str, parts: PolicyParts) -> ParsedPolicy:
    """Return the policy that `text` declares; raises PolicyError with every problem found.

    `parts` are what `system` and `judge` may be, `path` is only shown. Names of files, models and
    metrics are not looked up here.
    """
    parsed, problems = readable_part(text, path, parts)
    if parsed is None or problems:
        raise PolicyError(problems)
    return parsed


def readable_part(
    text: str, path: str, parts: PolicyParts
) -> tuple[ParsedPolicy | None, list[Problem]]:
    """Return the policy without what is wrong in it, and every problem; None where nothing is left.

    What it names can be looked up all the same, so that all mistakes are told at once.
    """
    document = load_yaml(text, path)
    policy, problems = validated(document, sufficient_model(parts, document.data))
    if policy is None:
        policy, problems = validated(document, policy_model(parts))
    found = list(contradictions(document.data, parts.systems)) if document.complete else []
    problems += [document.problem(*place_and_sentence) for place_and_sentence in found]
    if policy is not None and not problems:
        return ParsedPolicy(policy=policy, document=document), []
    problems = list(dict.fromkeys(problems))
    if not document.complete or not isinstance(document.data, dict):
        return None, problems
    return _remains(document, policy_model(parts), [place for place, _ in found]), problems


def _remains(
    document: YamlDocument, model: type[Policy], wrong: Sequence[Where]
) -> ParsedPolicy | None:
    """Return the policy without what stands at `wrong` and whatever else the model refuses."""
    data = copy.deepcopy(document.data)
    kept: dict[Where, list[int]] = {}
    stand_ins: set[str] = set()
    for _ in range(_ROUNDS):
        for where in sorted({_removed(data, each) for each in wrong}, key=_order, reverse=True):
            _remove(data, where, kept, stand_ins)
        try:
            policy = model.model_validate(data)
        except ValidationError as error:
            wrong = [where for where, _ in explain(error, model, data)]
            continue
        lost: dict[str, Any] = {name: [] for name in ("suites", "gates") if name in stand_ins}
        found = _Remains(
            **{field.name: getattr(document, field.name) for field in fields(document)}, kept=kept
        )
        policy = policy.model_copy(update=lost)
        return ParsedPolicy(policy=policy, document=found, stand_ins=frozenset(stand_ins))
    return None


_ROUNDS = 8
"""Removing one thing may leave another without what it needs."""
_STAND_INS: Mapping[str, object] = {
    "version": 1,
    "name": "policy",
    "system": {"recorded": "answers.jsonl"},
    "suites": [{"id": "suite", "task": "sentiment", "sources": "sources.jsonl"}],
    "gates": [{"metric": "metric", "max": 0.5}],
}
"""Valid values of what every policy must have; what they name is not looked up."""
_WHOLE = ("gates", "quarantine")
"""Lists whose entries say something else without one of their keys."""
_LEADING = ("relations", "task", "kind")
"""Keys of a suite that its others depend on."""


def _removed(data: Any, wrong: Where) -> Where:
    """Return the place of what has to go: what is there of `wrong`, or the entry around it."""
    place: Where = ()
    for part in wrong:
        inside = isinstance(data, dict) and part in data
        if not inside and not (isinstance(data, list) and part in range(len(data))):
            break
        place, data = (*place, part), data[part]
    if place[:1] == ("judge",):
        return place[:1]
    is_leading = place[:1] == ("suites",) and len(place) > 2 and place[2] in _LEADING
    return place[:2] if is_leading or place[:1] in [(name,) for name in _WHOLE] else place


def _order(where: Where) -> list[tuple[bool, int, str]]:
    """Order places; from the last to the first, the removal of one moves none that follows."""
    return [(isinstance(p, int), p if isinstance(p, int) else 0, str(p)) for p in where]


def _remove(data: Any, where: Where, kept: dict[Where, list[int]], stand_ins: set[str]) -> None:
    if len(where) < 2 and (not where or where[0] in _STAND_INS):
        missing = [where[0]] if where else [name for name in _STAND_INS if name not in data]
        for name in map(str, missing):
            data[name] = copy.deepcopy(_STAND_INS[name])
            stand_ins.add(name)
        return
    if where == ("judge",):
        stand_ins.add("judge")
    *around, last = where
    inside: Any = data
    place: Where = ()
    for part in around:
        inside = inside[part]
        whole = kept[place][part] if place in kept and isinstance(part, int) else part
        place = (*place, whole)
    if isinstance(inside, list) and isinstance(last, int):
        kept.setdefault(place, list(range(len(inside)))).pop(last)
    del inside[last]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remains(YamlDocument):
    """A document of which entries were removed, with the places that the others have in it."""

    kept: Mapping[Where, Sequence[int]]
    """Of a list, by its place in the text: which of its entries are left."""

    def located(self, where: Where) -> Mark:
        """Return the mark of what stands at `where` in what is left."""
        place: Where = ()
        for part in where:
            left = self.kept.get(place)
            whole = left[part] if left is not None and isinstance(part, int) else part
            place = (*place, whole)
        return YamlDocument.located(self, place)


def problem(parsed: ParsedPolicy, where: Where, message: str) -> Problem:
    """Return `message` as a problem at `where`, for checks that come after parsing."""
    return parsed.document.problem(where, message)


def validated(document: YamlDocument, model: type[Model]) -> tuple[Model | None, list[Problem]]:
    """Return the document as `model` (None where it is not one) and all problems known so far.

    Where reading stopped early the model is not validated: missing keys may follow later.
    """
    problems = list(document.problems)
    if not document.complete:
        return None, problems
    if not isinstance(document.data, dict):
        found = "the file is empty" if document.data is None else f"found {shown(document.data)}"
        keys = ", ".join(
            f"`{name}`" for name, field in model.model_fields.items() if field.is_required()
        )
        return None, [*problems, document.problem((), f"{found}, expected a mapping with {keys}")]
    try:
        return model.model_validate(document.data), problems
    except ValidationError as error:
        return None, problems + [
            document.problem(where, message)
            for where, message in explain(error, model, document.data)
        ]
