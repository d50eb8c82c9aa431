"""A policy's text to a validated Policy, or all of its problems at once, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from fairgate.domain.errors import PolicyError, Problem
from fairgate.domain.wording import shown
from fairgate.policy.assembled import PolicyParts, policy_model, sufficient_model
from fairgate.policy.checks import contradictions
from fairgate.policy.explain import explain
from fairgate.policy.schema import Policy
from fairgate.policy.yaml_nodes import Mark, Where
from fairgate.policy.yaml_text import YamlDocument, load_yaml

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPolicy:
    """A valid policy with the place of each of its values."""

    policy: Policy
    document: YamlDocument

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
    document = load_yaml(text, path)
    policy, problems = validated(document, sufficient_model(parts, document.data))
    if policy is None:
        policy, problems = validated(document, policy_model(parts))
    if document.complete:
        found = contradictions(document.data, parts.systems)
        problems += [document.problem(*place_and_sentence) for place_and_sentence in found]
    if policy is None or problems:
        raise PolicyError(list(dict.fromkeys(problems)))
    return ParsedPolicy(policy=policy, document=document)


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
