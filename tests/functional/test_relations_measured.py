"""Figures on labelled answers, and those that are shown everywhere."""

import json
import re
from collections import Counter
from importlib import resources

import pytest
from relation_precision import ANSWERS, measure_relations, record_of

from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.ports import Runtime
from fairgate.features.listings.precision import NOT_MEASURED, precision_of, share
from fairgate.relations.catalogue import RELATIONS

SHIPPED = resources.files("fairgate") / "data" / "labelled" / "precision.json"


def test_the_shipped_figures_are_measured_on_the_shipped_answers():
    """Write them again with `tools/recipes/relation_precision.py`."""
    record = record_of(measure_relations(ANSWERS, Runtime()), ANSWERS)
    assert f"{json.dumps(record, indent=1, sort_keys=True)}\n" == SHIPPED.read_text()


def test_the_shipped_answers_are_of_both_labels_and_none_stands_twice():
    rows = [json.loads(line) for line in ANSWERS.read_text("utf-8").splitlines()]
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


def measured(folder, *rows):
    path = folder / "mine.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return measure_relations(path, Runtime())


YES_NO = {"relation": "meta-fair/mr12-yes-no", "source": "Yes", "follow_up": "No", "differs": True}


def test_labels_are_counted(tmp_path):
    rows = [YES_NO] * 3 + [YES_NO | {"differs": False}] + [YES_NO | {"follow_up": "Perhaps."}] * 2
    figures = measured(tmp_path, *rows)[YES_NO["relation"]]
    assert (figures.real, figures.reported, figures.differing) == (3, 4, 5)
    assert (figures.answers, figures.undecided, figures.wrong) == (6, 2, [4])
    assert share(3, 4) == "0.75 (0.30 to 0.95; 3 of 4)"
    assert share(0, 0) == "not defined"


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
def test_rows_that_are_wrong_are_told_with_their_line(tmp_path, row, wrong):
    with pytest.raises((DataError, UsageError), match=re.escape(wrong)):
        measured(tmp_path, YES_NO, row)
