"""How much a change may have planned that nobody has agreed to: counted before it is made."""

import json

import pytest
from action.repositories import POLICY, fair

from fairgate.cli import main
from fairgate.suites.metamorphic import suite

GATE = "policies/small.yaml"


@pytest.fixture
def planned(monkeypatch):
    """Return the numbers of sources that plans were made of."""
    numbers, made = [], suite.build_plan

    def counted(of, relations):
        numbers.append(len(of.sources))
        return made(of, relations)

    monkeypatch.setattr(suite, "build_plan", counted)
    return numbers


def rows(number):
    return "".join(
        json.dumps({"id": f"s{n}", "text": f"Text number {n} is fine."}) + "\n"
        for n in range(number)
    )


GROWN = {
    "more sources": {"sources.jsonl": rows(28_000)},
    "other sources": {
        "more.jsonl": rows(28_000), GATE: POLICY.replace("sources.jsonl", "more.jsonl"),
    },
    "more repeats": {
        GATE: POLICY.replace("    control: paper", "    control: paper\n    repeats: 20"),
        "sources.jsonl": rows(1000),
    },
}  # fmt: skip


@pytest.mark.walk(1)
@pytest.mark.parametrize("way", GROWN)
def test_a_proposal_beyond_all_proportion_is_refused_before_it_is_planned(
    history, job, planned, capsys, way
):
    history.proposes(fair, GROWN[way])
    planned.clear()
    assert main(["run", GATE, "--base", "main", "--quiet"]) == 2
    assert "may propose beside the base's 230" in capsys.readouterr().err
    assert job.pull(history) == 2
    assert "may propose beside the base's 230" in job.err
    assert max(planned) <= 10, planned


def renamed(history):
    (history.root / GATE).unlink()
    return POLICY, "may propose beside the base's 230"


def introduced(history):
    return POLICY.replace(
        "name: small", "name: new"
    ), "more than the 100,000 that a change may introduce"


@pytest.mark.walk(1)
@pytest.mark.parametrize("arrives", [renamed, introduced])
def test_nor_under_a_path_that_the_base_does_not_have(history, job, planned, capsys, arrives):
    history.branch()
    text, told = arrives(history)
    history.write("policies/new.yaml", text.replace("sources.jsonl", "more.jsonl"))
    history.write("more.jsonl", rows(28_000))
    history.commit()
    planned.clear()
    assert main(["run", "policies/new.yaml", "--base", "main", "--quiet"]) == 2
    assert told in capsys.readouterr().err
    assert job.pull(history, FAIRGATE_POLICY="policies/new.yaml") == 2
    assert told in job.err
    assert max(planned, default=0) <= 10, planned


def test_a_proposal_in_proportion_is_planned(history, planned):
    history.proposes(fair, {"sources.jsonl": rows(60)})
    planned.clear()
    assert main(["run", GATE, "--base", "main", "--quiet"]) in (0, 4)
    assert max(planned) == 60
