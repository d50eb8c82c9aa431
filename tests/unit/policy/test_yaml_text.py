"""YAML 1.2's core schema, exactly: no surprise dates, octals or booleans."""

import math

import pytest

from fairgate.policy.yaml_text import decode_yaml, load_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("true", True), ("False", False), ("~", None),
        ("null", None), ("''", ""), ("'1'", "1"), ('"true"', "true"), ("012", 12), ("0o12", 10),
        ("0x1f", 31), ("-7", -7), ("1_000", "1_000"), ("1e3", 1000.0), (".5", 0.5), ("1.", 1.0),
        ("-.inf", -math.inf), ("2026-01-01", "2026-01-01"), ("12:30:45", "12:30:45"),
        ("gpt2", "gpt2"), ("a # comment", "a"), ("'a # no comment'", "a # no comment"),
        ("Größe", "Größe"), ("9" * 5000, "9" * 5000),
    ],
)  # fmt: skip
def test_scalars(text, value):
    document = load_yaml(f"key: {text}\n", "p")
    assert document.problems == ()
    assert document.data == {"key": value}
    assert type(document.data["key"]) is type(value)


def test_not_a_number():
    assert math.isnan(load_yaml("a: .nan", "p").data["a"])


def test_marks_count_characters_from_one():
    document = load_yaml("ä: 1\nb: [x, {c: 2}]\n", "p")
    assert document.marks == {
        (): (1, 1), ("ä",): (1, 1), ("b",): (2, 1), ("b", 0): (2, 5), ("b", 1): (2, 8),
        ("b", 1, "c"): (2, 9),
    }  # fmt: skip


def test_a_byte_order_mark_is_no_character():
    document = load_yaml(decode_yaml(b"\xef\xbb\xbfa: 1\n", "p"), "p")
    assert document.data == {"a": 1}
    assert document.located(("a",)) == (1, 1)
    assert load_yaml("\ufeffa: 1", "p").data == {"a": 1}


def test_fifty_aliases_are_accepted():
    text = "a: &a x\nb: [" + ", ".join(["*a"] * 50) + "]\n"
    assert load_yaml(text, "p").problems == ()
    assert len(load_yaml(text.replace("]", ", *a]"), "p").problems) == 1


def test_a_directive_does_not_change_the_schema():
    assert load_yaml("%YAML 1.1\n---\na: yes\n", "p").data == {"a": "yes"}
