"""`fairgate relations measure`: figures on labelled answers, and those that are shown everywhere."""

import json
from collections import Counter
from importlib import resources

import pytest

from fairgate.features.listings.precision import NOT_MEASURED, embedded_labels, precision_of, share
from fairgate.relations.catalogue import RELATIONS

SHIPPED = resources.files("fairgate") / "data" / "labelled" / "precision.json"


def test_the_shipped_figures_are_measured_on_the_shipped_answers(workspace):
    """Write them again with `fairgate relations measure --out …/labelled/precision.json`."""
    assert workspace.run("relations", "measure", "--out", "p.json") == 0, workspace.err
    assert (workspace.root / "p.json").read_bytes() == SHIPPED.read_bytes()


def test_the_shipped_answers_are_of_both_labels_and_none_stands_twice():
    rows = [json.loads(line) for line in embedded_labels().read_text("utf-8").splitlines()]
    texts = [(row["relation"], row["source"], row["follow_up"]) for row in rows]
    assert len(texts) == len(set(texts)) >= 200
    for relation in {row["relation"] for row in rows}:
        labels = Counter(row["differs"] for row in rows if row["relation"] == relation)
        assert min(labels[True], labels[False]) >= 5, relation


def test_list_explain_and_json_show_the_figures(workspace):
    measured = json.loads(SHIPPED.read_text())["relations"]
    assert workspace.run("relations", "list") == 0
    lines = {line.split()[0]: line for line in workspace.out.splitlines()}
    assert workspace.run("relations", "list", "--format", "json") == 0
    shown = {one["id"]: one["precision"] for one in json.loads(workspace.out)["result"]}
    for name in RELATIONS.ids:
        expected = NOT_MEASURED
        if name in measured:
            figure = measured[name]
            expected = share(figure["real"], figure["reported"])
            assert figure["real"] <= figure["reported"] <= figure["answers"]
        assert precision_of(name) == shown[name] == expected
        assert f"precision {expected}" in lines[name]
        assert workspace.run("relations", "explain", name) == 0
        assert f"Precision: {expected}." in workspace.out


def rows_of(workspace, *rows):
    workspace.write("mine.jsonl", rows)
    return workspace.run("relations", "measure", "mine.jsonl")


YES_NO = {"relation": "meta-fair/mr12-yes-no", "source": "Yes", "follow_up": "No", "differs": True}


def test_labels_of_ones_own_are_counted(workspace):
    rows = [YES_NO] * 3 + [YES_NO | {"differs": False}] + [YES_NO | {"follow_up": "Perhaps."}] * 2
    assert rows_of(workspace, *rows) == 0, workspace.err
    assert "precision 0.75 (0.30 to 0.95; 3 of 4)" in workspace.out
    assert "recall 0.60 (0.23 to 0.88; 3 of 5)" in workspace.out
    assert "6 answers, 2 undecided" in workspace.out
    assert "reported, but labelled as no difference: line 4" in workspace.out


def test_a_relation_that_reports_nothing_has_no_precision_and_an_empty_file_nothing(workspace):
    assert rows_of(workspace, YES_NO | {"follow_up": "Yes", "differs": False}) == 0
    assert "precision not defined, recall not defined" in workspace.out
    assert rows_of(workspace) == 4
    assert "mine.jsonl" in workspace.err


@pytest.mark.walk(4)
@pytest.mark.parametrize(("row", "wrong"), [
    (YES_NO | {"differs": "yes"}, "mine.jsonl:2: `differs` is 'yes'; expected true or false"),
    (YES_NO | {"relation": "mr12"}, "mine.jsonl:2: no relation is called 'mr12'"),
    (YES_NO | {"relation": "nothing/*"}, "no relation is called 'nothing/*'"),
    (YES_NO | {"relation": "meta-fair/mr2-dual-attributes"}, "only judges read"),
    (YES_NO | {"source": 1}, "mine.jsonl:2: 'source' holds 1"),
    (YES_NO | {"items": ["a"]}, "has no `items`"),
    (YES_NO | {"relation": "meta-fair/mr13-multiple-choice"}, "needs `items`"),
    (YES_NO | {"relation": "meta-fair/mr14-prioritisation", "items": "a|b"}, "`items` is"),
    (YES_NO | {"relation": "set-equivalence"}, "name one in `task`"),
    (YES_NO | {"relation": "set-equivalence", "task": "sentimen"}, "sentimen"),
])  # fmt: skip
def test_rows_that_are_wrong_are_told_with_their_line(workspace, row, wrong):
    assert rows_of(workspace, YES_NO, row) == 4
    assert wrong in workspace.err
