"""Policies as the command line reads them: with every kind of system."""

import datetime as dt
from collections.abc import Mapping
from functools import lru_cache

from fairgate.domain.cases import TestPlan
from fairgate.domain.ports import Runtime
from fairgate.gate.loaded_policy import _load_suites, joined
from fairgate.policy import parse
from fairgate.policy.assembled import policy_model, policy_schema
from fairgate.policy.parse import ParsedPolicy
from fairgate.suites.suite import Suite
from fairgate.systems.catalogue import policy_parts

SOON = str(dt.datetime.now(dt.UTC).date() + dt.timedelta(days=30))
"""A last day that any entry may have, whenever tests run."""


def parse_policy(text: str, path: str) -> ParsedPolicy:
    return parse.parse_policy(text, path, policy_parts())


def schema() -> dict:
    return policy_schema(policy_parts())


def model() -> type:
    return policy_model(policy_parts())


@lru_cache(maxsize=16)
def plan_of(text: str) -> TestPlan:
    """The plan of a policy whose suites name what is embedded, whatever its system is."""
    return joined(suite.plan() for suite in suites_of(text).values())


@lru_cache(maxsize=16)
def suites_of(text: str) -> Mapping[str, Suite]:
    """Return the suites of such a policy, by id."""
    problems: list = []
    suites = _load_suites(parse_policy(text, "p.yaml"), Runtime(), problems, None)
    assert not problems
    return suites
