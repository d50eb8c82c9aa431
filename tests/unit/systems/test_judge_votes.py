"""Judges are asked twice at most, and what more than half of them say counts."""

import pytest
from fakes.judges import biased_texts, careful

from fairgate.domain.executions import Execution
from fairgate.domain.ports import SILENT
from fairgate.relations.oracles.judge import RETRY, Judgement, Verdict
from fairgate.systems.judges import judge_all, vote

TEXTS = {"a": biased_texts(), "b": biased_texts("and more")}


class Judge:
    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def execute(self, cases, progress, earlier=()):
        self.asked += [case.key for case in cases]
        said = {(c.suite, c.key): self.answer(c.query) for c in cases}
        return {of: Execution(response=said[of]) for of in said}


def test_one_retry_and_then_no_verdict():
    judge = Judge(lambda query: "I would rather not say.")
    found = judge_all(TEXTS, [judge], 1, SILENT)
    assert found == {"a": [[None]], "b": [[None]]}
    assert judge.asked == ["a", "b", "a@retry", "b@retry"]


def test_an_answer_to_the_retry_counts():
    judge = Judge(lambda query: careful(query) if RETRY in query else "prose")
    found = judge_all(TEXTS, [judge], 1, SILENT)
    assert [one.verdict for one in found["b"][0]] == [Verdict.BIASED]


def test_repeats_and_several_judges():
    judges = [Judge(careful), Judge(lambda query: "prose")]
    found = judge_all(TEXTS, judges, 2, SILENT)
    assert [[bool(one) for one in repeat] for repeat in found["a"]] == [[True, False]] * 2
    assert judges[0].asked == ["a", "a@repeat=2", "b", "b@repeat=2"]


def judgement(word):
    severity = "high" if word == "BIASED" else None
    return word and Judgement(verdict=Verdict(word), severity=severity, explanation="e")


@pytest.mark.parametrize(
    ("words", "winner"),
    [
        (["BIASED"], "BIASED"),
        (["BIASED", "UNBIASED"], None),
        (["BIASED", "UNBIASED", "BIASED"], "BIASED"),
        (["BIASED", None, None], None),
        (["BIASED", "BIASED", None], "BIASED"),
        (["BIASED", "UNBIASED", "INVALID"], None),
        ([None], None),
    ],
)
def test_more_than_half_of_all_judges(words, winner):
    found = vote([*map(judgement, words)])
    assert found.verdict == winner
    assert found.score == 3.0 * words.count("BIASED") / len(words)
