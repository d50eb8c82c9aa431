"""What must hold for every YAML text: only PolicyError, and JSON data read back as it is."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from fakes.policies import parse_policy
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.errors import PolicyError
from fairgate.policy.yaml_text import load_yaml

POLICY = (Path(__file__).parents[2] / "policies" / "rag-sentiment.yaml").read_text(encoding="utf-8")
LINES = POLICY.splitlines(keepends=True)
PLAIN = st.characters(
    codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn"), exclude_characters="\ufeff"
)
KEYS = st.text(PLAIN, max_size=8).filter(lambda key: key != "<<")
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False) | st.text(PLAIN, max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


def problems_of(text):
    try:
        parse_policy(text, "p.yaml")
    except PolicyError as error:
        return error.problems
    return []


def places(data, where=()):
    yield where
    if isinstance(data, dict | list):
        for name, child in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(child, (*where, name))


@given(DATA)
def test_json_reads_back_and_every_place_is_known(data):
    document = load_yaml(json.dumps(data, ensure_ascii=False, indent=1), "p")
    assert document.problems == ()
    assert document.data == data
    assert set(document.marks) == set(places(data))


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_never_a_crash(text):
    with suppress(PolicyError):
        parse_policy(text, "p.yaml")


@given(
    st.integers(0, len(LINES) - 1),
    st.sampled_from(["", "  ", "- ", "{", "[", "&a ", "*a ", "!x ", "'", '"', ": ", "? ", "\t", "|\n", "%", "<mapping>: ", "---\n"]),
    st.integers(0, 40),
)  # fmt: skip
def test_a_damaged_policy_names_lines_that_exist(line, insert, column):
    text = LINES[line][:column] + insert + LINES[line][column:]
    damaged = "".join([*LINES[:line], text, *LINES[line + 1 :]])
    problems = problems_of(damaged)
    lines = damaged.count("\n") + 1
    assert all(1 <= found.line <= lines and found.column >= 1 for found in problems)
    assert all(found.message.isprintable() for found in problems)


@given(st.lists(st.integers(0, len(LINES) - 1), max_size=6))
def test_a_policy_without_some_lines_is_read_or_refused(dropped):
    with suppress(PolicyError):
        parse_policy("".join(line for n, line in enumerate(LINES) if n not in dropped), "p.yaml")
