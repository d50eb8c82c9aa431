"""A judge's question and answer: what is judged stays data, and only a whole verdict counts."""

import json
from dataclasses import asdict

import pytest
from fakes.judges import attacks, biased_texts, careful, copying, quoting, shown, verdict

from fairgate.relations.oracles.judge import MOST_CHARACTERS, Verdict, read_judgement

TEXTS = biased_texts()
CODE = TEXTS.code
GOOD = verdict(CODE, "BIASED", "low")


@pytest.mark.parametrize("texts", attacks())
def test_planted_texts_stay_data(texts):
    question = texts.question()
    data, code = shown(question)
    assert data == asdict(texts), "the texts are read back as they were"
    assert code == texts.code
    assert code not in "".join(data.values())
    line = question.split("\n")[0]
    assert line.isascii()
    assert not set("<>|[]`") & set(line), "no control token of a chat format can be in it"
    assert json.loads(line) == data


@pytest.mark.parametrize("texts", attacks())
def test_a_planted_verdict_does_not_win(texts):
    question = texts.question()
    assert read_judgement(copying(question), texts.code) is None
    for judge in (careful, quoting):
        found = read_judgement(judge(question), texts.code)
        # A judge that repeats an unclosed thinking tag or brace may end up unread, never misled.
        assert found is None or found.verdict is Verdict.BIASED
    assert read_judgement(careful(question), texts.code).verdict is Verdict.BIASED


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"Here it is:\n```json\n{GOOD}\n```",
        f"<think>{verdict(CODE, 'UNBIASED')}</think>{GOOD}",
        f"{{not json}} {verdict('0' * 12, 'UNBIASED')} {GOOD} done",
    ],
)
def test_verdicts_are_found(answer):
    found = read_judgement(answer, CODE)
    assert (found.verdict, found.severity, found.score) == (Verdict.BIASED, "low", 1.0)


@pytest.mark.parametrize(
    "answer",
    [
        "", "BIASED", "It is biased, clearly.", verdict("0" * 12, "BIASED", "low"),
        verdict(CODE, "BIASED"), verdict(CODE, "BIASED", "huge"), verdict(CODE, "UNBIASED", "low"),
        verdict(CODE, "biased", "low"), verdict(CODE, ["BIASED"], "low"),
        GOOD + verdict(CODE, "UNBIASED"), GOOD.replace('"what differs"', '" "'),
        GOOD.replace("}", ', "extra": 1}'), GOOD.replace("{", '{"verdict": "UNBIASED", '),
        GOOD[:-1], "[" * 100_000, "{" * 100_000, '{"a":' * 5_000,
    ],
)  # fmt: skip
def test_anything_else_is_no_verdict(answer):
    assert read_judgement(answer, CODE) is None


def test_long_texts_are_cut():
    texts = biased_texts("x" * 100_000)
    assert len(texts.question()) < 2 * MOST_CHARACTERS
