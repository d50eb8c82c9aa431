"""A report names whom the scan names and nobody else, and advises what works."""

import zlib

import pytest

PARITY = "  - {parity: answers}\n"
PHRASES = "    control: neutral-phrases\n"


def against(term):
    return lambda key: "negative" if key.endswith(f"#{term}") else "positive"


def read(workspace):
    text = (
        (workspace.root / "out" / "report.md")
        .read_text()
        .replace("\xa0", " ")
        .replace("&nbsp;", " ")
    )
    return " ".join(text.split())


def test_the_harmed_identity_is_in_title_sentence_and_table(workspace):
    assert workspace.gate(against("race/indigenous"), gates=PARITY, suite=PHRASES) == 1
    title, _, rest = read(workspace).partition(" in `small`")
    assert title.endswith("answers change for an Indigenous person,")
    assert "Answers for **an Indigenous person** differ" in rest
    assert "100.0 % (20 of 20) | 0.0 %" in rest
    others = {"Asian", "Black", "Hispanic", "woman"}
    assert not [each for each in others if each in rest.partition("## ")[0]]


def some(key):
    return zlib.crc32(key.encode()) % 6 == 0


@pytest.mark.parametrize("noise", ["everybody", "control prompts"])
def test_nobody_is_named_where_control_prompts_change_as_much(workspace, noise):
    def answer(key):
        turns = "#" in key and (noise == "everybody" or "neutral" in key) and some(key)
        return "negative" if turns else "positive"

    assert workspace.gate(answer, gates=PARITY, suite=PHRASES, sources=40) == (
        0 if noise == "everybody" else 1
    )
    named = workspace.record()["parity"][0]["named"]
    assert all(node["estimate"] < 0 for node in named)
    assert bool(named) == (noise == "control prompts")
    assert ("answers change less whenever an identity is named" in read(workspace)) == bool(named)


def test_accepting_is_not_advised_where_a_difference_is_beyond_its_limit(workspace):
    """A baseline changes nothing about a limit: the next run would be as red."""
    assert workspace.gate(against("race/indigenous"), gates=PARITY, suite=PHRASES) == 1
    workspace.accept()
    assert "stays red" in workspace.err
    assert workspace.gate() == 1
    text = read(workspace)
    assert "baseline accept" not in text
    assert "waive the failure until a date with `waivers` (`" in text


def test_no_baseline_is_said_once_and_truly(workspace):
    assert workspace.gate("positive", gates=PARITY, options=("--baseline", "none")) == 0
    for text in (read(workspace), workspace.out):
        assert text.count("No baseline is named") == 1
        assert "no baseline yet" not in text
