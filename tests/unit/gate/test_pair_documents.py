"""How pairs' documents relate: the same whether lists are shared, equal or made anew."""

from types import SimpleNamespace

import pytest

from fairgate.domain.executions import Document, Execution
from fairgate.domain.units import Judged, Reason, Unit
from fairgate.gate import waves
from fairgate.gate.waves import Answered, Documents, documents_of_pairs


def documents(*ids):
    return None if ids == (None,) else tuple(Document(id=one) for one in ids)


PAIRS = [
    (documents("a", "b"), documents("a", "b"), Documents.EQUAL),
    (documents("a", "b"), documents("b", "a"), Documents.DIFFERENT),
    (documents("a"), documents("a", "b"), Documents.DIFFERENT),
    (documents(), documents(), Documents.EQUAL),
    (documents(None), documents("a"), Documents.UNKNOWN),
    (documents("a"), documents(None), Documents.UNKNOWN),
]


def judged(number, suite="own", decision=0.0):
    unit = Unit(
        key=f"s{number}#x",
        suite=suite,
        asks={"source": f"s{number}", "follow-up": f"s{number}#x"},
        cluster=f"s{number}",
        dimensions={},
        content="",
    )
    return Judged(unit=unit, readings={}, claims={"generation": decision}, decisive="generation")


@pytest.mark.parametrize("held", [0, 1, 100])
def test_relations_do_not_depend_on_what_is_held(held, monkeypatch):
    monkeypatch.setattr(waves, "_MOST_HELD", held)
    executions = {}
    for number, (left, right, _) in enumerate(PAIRS * 3):
        for key, found in ((f"s{number}", left), (f"s{number}#x", right)):
            executions["own", key] = Execution(key=key, suite="own", documents=found)
    rows = [judged(number) for number in range(3 * len(PAIRS))]
    expected = [kind for _, _, kind in PAIRS] * 3
    assert list(documents_of_pairs(rows, executions, {"own"})) == expected


def test_without_an_answer_nothing_is_known_and_other_units_are_never_looked_up():
    rows = [judged(0), judged(1, decision=Reason.MISSING), judged(2, suite="questions")]
    found = list(documents_of_pairs(rows, {}, {"own"}))
    assert found == [Documents.UNKNOWN, Documents.UNDECIDED, Documents.UNDECIDED]


@pytest.mark.parametrize(
    ("crossing", "kind"),
    [
        ("sampled", Documents.DIFFERENT),
        ("all", Documents.DIFFERENT),
        ("off", Documents.UNDECIDED),
        (None, Documents.UNDECIDED),
    ],
)
def test_documents_are_compared_only_for_suites_that_use_it(crossing, kind):
    executions = {
        ("own", key): Execution(key=key, suite="own", documents=documents(key))
        for key in ("s0", "s0#x")
    }
    answered = Answered(
        plan=None,
        suites={"own": SimpleNamespace(crossing=crossing)},
        readings={},
        executions=executions,
        judge=lambda: [judged(0)],
    )
    assert answered.documents == [kind]
