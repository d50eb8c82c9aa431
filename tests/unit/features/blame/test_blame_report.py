"""What explains a verdict, in one line and in many: whatever documents and rules are called."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.features.blame import blame_line, blame_record, render_blame
from fairgate.features.blame.factors import (
    Blame,
    ExplainedRule,
    Known,
    Move,
    SearchedDocuments,
)
from fairgate.features.blame.mixed_corpus import ChangedDocument
from fairgate.features.blame.sides import Factor

RESTORES = "restores the verdict"
UNKNOWN = "is not known"


def document(id_):
    return ChangedDocument(kind="added", id=id_, new=id_)


def rule(**shares):
    moves = [
        Move(factor=Factor(name), change=share / 2, share=share) for name, share in shares.items()
    ]
    return ExplainedRule(
        metric="asr/generation", suite="s", where={"term": "man"}, who=[], is_rate=True, base=0.1, head=0.6, cases=9,
        left_out=2, residual=0.0, moves=moves,
    )  # fmt: skip


def blamed(restoring=(Factor.CORPUS,), documents=None, known=Known.EXPLAINED, **more):
    return Blame(
        known=known, factors=[Factor.PROMPT, Factor.CORPUS], notes=["a note"],
        rules=[rule(prompt=0.25, corpus=0.75)], restoring=list(restoring), documents=documents,
        budget=1000, **more,
    )  # fmt: skip


def found(ids, *, minimal=True):
    return SearchedDocuments(
        changed={"added": len(ids)}, found=[document(id_) for id_ in ids], minimal=minimal,
        reverted=[0.1], trials=3, why_not="" if minimal else "the budget ended",
    )  # fmt: skip


@pytest.mark.parametrize(("given_", "expected"), [
    (blamed(documents=found(["17", "203"])), "The corpus change explains it: documents 17, 203."),
    (
        blamed(documents=found([str(n) for n in range(12)])),
        "The corpus change explains it: documents 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more.",
    ),
    (
        blamed(documents=found(["1", "2"], minimal=False)),
        "The corpus change explains it: some of 2 documents, the budget ended.",
    ),
    (blamed((Factor.TOP_K,)), "The top_k change explains it."),
    (
        blamed((Factor.PROMPT, Factor.CORPUS)),
        f"The prompt and corpus changes explain it: taking back any one of them {RESTORES}.",
    ),
    (
        blamed(()),
        "No part of the change explains it alone: of asr/generation, prompt 25 %, corpus 75 %.",
    ),
    (blamed(known=Known.GREEN), ""),
    (blamed(known=Known.NOTHING_DIFFERS), ""),
    (
        blamed(known=Known.OUT_OF_BUDGET),
        f"Which part of the change explains it {UNKNOWN}: the budget of 1,000 questions ended.",
    ),
])  # fmt: skip
def test_the_line_of_a_comment(given_, expected):
    assert blame_line(given_) == expected


def test_a_set_that_is_no_claim_is_not_shown_as_one():
    text = render_blame(blamed(documents=found(["1", "2"], minimal=False)))
    assert "no claim" in text
    assert "minimal" not in text.replace("1-minimal", "")
    assert "not searched to the end: the budget ended" in text
    assert "2 others are not decided everywhere" in text


@given(id_=st.text(min_size=1, max_size=256))
def test_no_id_breaks_a_line_or_writes_a_command(id_):
    text = render_blame(blamed(documents=found([id_, "b"])))
    plain = render_blame(blamed(documents=found(["a", "b"])))
    assert len(text.splitlines()) == len(plain.splitlines())
    assert text.isprintable() or "\n" in text
    assert not any(line.lstrip().startswith(("::", "##[")) for line in text.splitlines())
    line = blame_line(blamed(documents=found([id_] * 30)))
    assert len(line) < 2000
    assert json.loads(json.dumps(blame_record(blamed(documents=found([id_])))))["sentence"]
