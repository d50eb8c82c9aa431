"""What explains a verdict, in one line and in many: whatever documents and rules are called."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.executions import CorpusDocument
from fairgate.features.blame.causes import Blame, FailingRule, FoundDocuments
from fairgate.features.blame.documents import ChangedDocument
from fairgate.features.blame.report import blame_line, blame_record, render_blame
from fairgate.features.blame.sides import Factor

RESTORES = "restores the verdict"
PROMPT, CORPUS, TOP_K = (Factor.PROMPT,), (Factor.CORPUS,), (Factor.TOP_K,)


def rule(trials):
    return FailingRule(
        metric="asr/generation", suite="s", where={"term": "man"}, who=[], base=0.1, head=0.6,
        taken_back=[0.1] * trials,
    )  # fmt: skip


def blamed(restoring=(CORPUS,), documents=None):
    trials = [CORPUS, PROMPT, TOP_K, PROMPT + CORPUS, CORPUS + TOP_K]
    return Blame(
        factors=list(Factor), rules=[rule(len(trials))], trials=trials,
        restoring=list(restoring), documents=documents, notes=["a note"],
    )  # fmt: skip


def found(ids):
    return FoundDocuments(
        changed={"added": len(ids)},
        found=[ChangedDocument(id=id_, new=CorpusDocument(id=id_, text="")) for id_ in ids],
    )


@pytest.mark.parametrize(("given_", "expected"), [
    (blamed(documents=found(["17", "203"])), "The corpus change explains it: documents 17, 203."),
    (
        blamed(documents=found([str(n) for n in range(12)])),
        "The corpus change explains it: documents 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more.",
    ),
    (blamed([TOP_K]), "The top_k change explains it."),
    (
        blamed([PROMPT, CORPUS]),
        f"The prompt and corpus changes explain it: taking back any one of them {RESTORES}.",
    ),
    (
        blamed([PROMPT + CORPUS, CORPUS + TOP_K]),
        "Two parts of the change explain it together: prompt and corpus, or corpus and top_k.",
    ),
    (blamed([]), "No one or two parts of the change explain it."),
    (Blame(factors=[Factor.CORPUS]), ""),
    (Blame(factors=[]), ""),
])  # fmt: skip
def test_the_answer_in_a_line(given_, expected):
    assert blame_line(given_) == expected


def test_each_run_has_a_line():
    text = render_blame(blamed([PROMPT + CORPUS]))
    assert "10.0 % at BASE, 60.0 % at HEAD" in text
    assert "10.0 % with BASE's top_k\n" in text
    assert "10.0 % with BASE's prompt and corpus: restored" in text


def test_why_no_document_is_named():
    documents = FoundDocuments(changed={"edited": 3}, why_not="the order decides")
    text = render_blame(blamed(documents=documents))
    assert "3 documents changed (3 edited)" in text
    assert "which of them is not known: the order decides" in text
    assert text.endswith("The corpus change explains it.")


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
