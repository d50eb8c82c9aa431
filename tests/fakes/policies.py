"""Policies as the command line reads them: with every kind of system."""

from fairgate.policy import parse
from fairgate.policy.assembled import policy_model
from fairgate.policy.json_schema import policy_schema
from fairgate.policy.parse import ParsedPolicy
from fairgate.systems.catalogue import policy_parts


def parse_policy(text: str, path: str) -> ParsedPolicy:
    return parse.parse_policy(text, path, policy_parts())


def schema() -> dict:
    return policy_schema(policy_parts())


def model() -> type:
    return policy_model(policy_parts())
