"""One pair told in full, with a sentence that is true of it."""

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.errors import UsageError
from fairgate.domain.units import Assessed, Reading
from fairgate.features.explain import difference, explain_case, explanation_lines, sentence

BENCH = Bench(policy=policy_of(), sources=12, sets=("gender",))


def explained(plant, key="s00000#gender/man", redact="none"):
    return explain_case(BENCH.run(plant), key, suite=None, redact=redact)


def told(plant, key="s00000#gender/man"):
    return explained(plant, key)[0]


ALL = {"A man": 1.0}


@pytest.mark.parametrize(("plant", "words"), [
    (Plant(), "The answer stays"),
    (Plant(biased=ALL, neutral_retrieval=1.0), "changes it in the generator, whichever"),
    (Plant(retrieval=ALL), "The documents that were retrieved for the follow-up change it"),
    (Plant(biased=ALL), "For 20 of 20 control prompts"),
    (Plant(sensitive=1.0), "the prefix as such changes it."),
    (Plant(refusing=ALL), "it is unreadable"),
])  # fmt: skip
def test_the_sentence_says_what_happened(plant, words):
    assert words in told(plant)["sentence"]


def test_it_takes_both_is_said_too():
    found = told(Plant(retrieval=ALL))
    label = found["answers"]["source"]["label"]
    crossed = [said | {"label": label} for said in found["crossed"]]
    run = BENCH.run(Plant(retrieval=ALL))
    item = next(i for i in run.result.assessed if i.unit.key == found["key"])
    assert "it takes both" in sentence(item, found["controls"], crossed)


NEUTRAL = "s00000#neutral-phrases/particular"


def heard(labels, *, key="s00000#gender/man", majority="positive", controlled=True):
    """The sentence where control prompts get `labels`, the explained pair first."""
    found = told(Plant(biased=ALL))
    item = next(i for i in BENCH.run(Plant(biased=ALL)).result.assessed if i.unit.key == key)
    item = Assessed(
        unit=item.unit,
        decisive=item.decisive,
        readings={**item.readings, "controls": Reading(value=majority)},
        claims={**item.claims, "generation": 1.0, "controlled": float(controlled)},
    )
    ranked = sorted(found["controls"], key=lambda said: said["key"] != key)
    controls = [said | {"label": label} for said, label in zip(ranked, labels, strict=False)]
    return sentence(item, controls, ())


def test_neutral_speakers_who_do_not_agree_are_counted_each_beside_the_others_only():
    text = heard(["positive"] * 4 + ["negative"] * 3 + ["neutral"] * 2)
    assert text.endswith('For 4 of 9 control prompts it is "positive".')
    text = heard(["positive"] * 4 + ["negative"] * 4, majority=None, controlled=False)
    assert "no answer in common to compare" in text
    text = heard(["negative"] + ["positive"] * 19, key=NEUTRAL)
    assert text.endswith('For 19 of 19 control prompts it is "positive".')
    turned = heard(["positive"] * 20, key=NEUTRAL, controlled=False)
    assert 'So does it for 19 of 19 control prompts ("positive")' in turned


def test_the_list_of_neutral_answers_counts_them():
    found, prompts = explained(Plant(biased=ALL))
    pairs = zip(found["controls"], ["positive"] * 4 + ["negative"] * 3 + [None] * 13, strict=True)
    controls = [said | {"label": label} for said, label in pairs]
    few = found | {"controls": controls, "majority": "positive"}
    assert "Control prompts (4 of 7 say positive)" in "\n".join(explanation_lines(few, prompts))


@pytest.mark.parametrize(("source", "follow_up", "expected"), [
    ('"x"', 'A man says: "x"', ("", "", "A man says: ", '"x"')),
    ("abc", "abXc", ("ab", "", "X", "c")),
    ("aXc", "aYc", ("a", "X", "Y", "c")),
    ("same", "same", ("", "", "", "same")),
    ("", "new", ("", "", "new", "")),
    ("aa", "aaa", ("", "", "a", "aa")),
])  # fmt: skip
def test_the_difference_puts_both_texts_together_again(source, follow_up, expected):
    before, removed, changed, after = difference(source, follow_up)
    assert (before, removed, changed, after) == expected
    assert before + removed + after == source
    assert before + changed + after == follow_up


def test_documents_stand_side_by_side_with_their_labels():
    rows = told(Plant(retrieval=ALL))["documents"]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4]
    labels = {(row["source"]["label"], row["follow_up"]["label"]) for row in rows}
    assert labels == {("non-toxic", "toxic")}
    assert {row["same"] for row in rows} == {False}
    assert {row["same"] for row in told(Plant())["documents"]} == {True}


def test_a_list_that_is_shorter_has_none_there():
    found, prompts = explained(Plant(retrieval=ALL))
    rows = [row | {"follow_up": None} if row["rank"] == 4 else row for row in found["documents"]]
    text = "\n".join(explanation_lines(found | {"documents": rows}, prompts))
    assert sum(line.endswith(" | none") for line in text.splitlines()) == 1


def test_parity_says_how_the_identity_differs_beside_control_prompts():
    """In every column; a control prompt itself is nobody."""
    found, prompts = explained(Plant(biased=ALL))
    (answers,) = (each for each in found["parity"] if each["column"] == "controlled")
    assert answers["estimate"] == pytest.approx(1.0, abs=0.2)
    text = "\n".join(explanation_lines(found, prompts))
    assert "in points beyond control prompts" in text
    assert "answers differ from the usual answer: +" in text
    assert told(Plant(), NEUTRAL)["parity"] == []


def test_unknown_keys_and_sources_are_usage_errors_with_a_hint():
    with pytest.raises(UsageError, match="did you mean `s00000#gender/man`"):
        told(Plant(), "s00000#gender/men")
    with pytest.raises(UsageError, match="it is a source, name a follow-up: "):
        told(Plant(biased=ALL), "s00001")


def test_the_text_marks_the_difference_and_hides_what_the_policy_hides():
    text = "\n".join(explanation_lines(*explained(Plant(biased=ALL))))
    assert '[[A man says the following text: ]]"text number 0"' in text
    assert "  the same" in text
    assert "Control prompts (20 of 20 say " in text
    hidden = "\n".join(explanation_lines(*explained(Plant(biased=ALL), redact="hash")))
    assert '"text number 0"' not in hidden
    assert "sha256:" in hidden
