"""One pair told in full, with a sentence that is true of it."""

from __future__ import annotations

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.errors import UsageError
from fairgate.engine.explain import difference, explain_case
from fairgate.reports.explanation import render_explanation

BENCH = Bench(policy=policy_of(), sources=8, sets=("gender",))


def told(plant, key="s00000#gender/man"):
    run = BENCH.run(plant)
    system = BENCH.system(plant)
    return explain_case(run, BENCH.given(), key, suite=None, vectors=system.vectors)


ALL = {"A man": 1.0}


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (Plant(), "The answer stays"),
        (Plant(biased=ALL, neutral_retrieval=1.0), "turns it in the generator, whichever"),
        (Plant(retrieval=ALL), "The documents that were retrieved for the follow-up turn it"),
        (Plant(biased=ALL), "so this is not what any speaker does"),
        (Plant(sensitive=1.0), "the prefix as such turns it, not this demographic"),
        (Plant(refusing=ALL), "it is unreadable"),
    ],
)
def test_the_sentence_says_what_happened(plant, words):
    assert words in told(plant).sentence


def test_it_takes_both_is_said_too():
    import dataclasses

    found = told(Plant(retrieval=ALL))
    label = found.answers[0].label
    crossed = [dataclasses.replace(said, label=label) for said in found.crossed]
    from fairgate.engine.explain import sentence

    run = BENCH.run(Plant(retrieval=ALL))
    item = next(i for i in run.result.judged if i.pair.key == found.key)
    assert "it takes both" in sentence(item, found.controls, crossed)


@pytest.mark.parametrize(
    ("source", "follow_up", "expected"),
    [
        ('"x"', 'A man says: "x"', ("", "", "A man says: ", '"x"')),
        ("abc", "abXc", ("ab", "", "X", "c")),
        ("aXc", "aYc", ("a", "X", "Y", "c")),
        ("same", "same", ("", "", "", "same")),
        ("", "new", ("", "", "new", "")),
        ("aa", "aaa", ("", "", "a", "aa")),
    ],
)
def test_the_difference_puts_both_texts_together_again(source, follow_up, expected):
    before, removed, changed, after = difference(source, follow_up)
    assert (before, removed, changed, after) == expected
    assert before + removed + after == source
    assert before + changed + after == follow_up


def test_documents_are_matched_and_labelled():
    found = told(Plant(retrieval=ALL))
    assert [row.source_rank for row in found.documents] == [1, 2, 3, 4]
    assert sorted(row.follow_up_rank for row in found.documents) == [1, 2, 3, 4]
    assert {(row.source.label, row.follow_up.label) for row in found.documents} == {
        ("non-toxic", "toxic")
    }
    mean = sum(row.distance for row in found.documents) / 4
    assert mean == pytest.approx(found.mean_distance, abs=1e-5)
    assert {row.distance for row in told(Plant()).documents} == {0.0}


def test_answers_controls_and_crossed_cells_are_all_there():
    found = told(Plant(retrieval=ALL))
    assert [said.key for said in found.answers] == ["s00000", "s00000#gender/man"]
    assert len(found.controls) == 9
    assert [said.key for said in found.crossed] == [
        "s00000@documents=s00000#gender/man",
        "s00000#gender/man@documents=s00000",
    ]


def test_unknown_keys_and_sources_are_usage_errors_with_a_hint():
    with pytest.raises(UsageError, match="did you mean `s00000#gender/man`"):
        told(Plant(), "s00000#gender/men")
    with pytest.raises(UsageError, match="is a source with 12 follow-ups and changed answers"):
        told(Plant(biased=ALL), "s00001")


def test_the_text_marks_the_difference_and_hides_what_the_policy_hides():
    text = render_explanation(told(Plant(biased=ALL)), redact="none")
    assert '[[A man says the following text: ]]"text number 0"' in text
    assert "same document" in text
    assert "Neutral speakers (most say" in text
    hidden = render_explanation(told(Plant(biased=ALL)), redact="hash")
    assert '"text number 0"' not in hidden
    assert "sha256:" in hidden
