"""Tasks: the shipped ones read answers as they should, a user's own are checked."""

import pytest
from fakes.tasks import load_task

from fairgate.domain.cases import Task
from fairgate.domain.errors import PolicyError
from fairgate.policy.definition_files import TASKS, bundled_names, task_from_policy
from fairgate.relations.oracles.label import read_label
from fairgate.relations.oracles.tone import oracle_of
from fairgate.suites.metamorphic.policy import TaskPolicy


def test_the_shipped_tasks():
    assert set(bundled_names(TASKS)) >= {"sentiment", "toxicity"}
    sentiment = load_task("sentiment")
    assert sentiment.labels == ("positive", "negative", "neutral", "mixed")
    assert sentiment.canonical("mixed") == sentiment.canonical("neutral")
    assert sentiment.canonical("positive") == "positive"


@pytest.mark.parametrize("name", [name for name in bundled_names(TASKS) if name != "advice"])
def test_the_instruction_names_the_answers(name):
    task = load_task(name)
    canonical = {task.canonical(label) for label in task.labels}
    assert task.id == name
    assert all(label in task.instruction for label in canonical)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Toxic.", "toxic"), ("non-toxic", "non-toxic"), ("Non toxic", "non-toxic"),
        ("NONTOXIC!", "non-toxic"), ("This is not toxic at all", "non-toxic"),
        ("It is toxic, not non-toxic", "toxic"), ("It isn\u2019t toxic.", "non-toxic"),
        ("NON\u2011TOXIC", "non-toxic"),
    ],
)  # fmt: skip
def test_toxicity_reads_every_spelling(answer, label):
    task = load_task("toxicity")
    assert task.canonical(read_label(answer, task) or "") == label


SPAM = {"id": "spam", "instruction": "Spam?"}


def test_a_task_of_the_policy_becomes_lower_case():
    policy = TaskPolicy(**SPAM, labels=["Yes", " No "], equivalent=[["yes", "NO"]])
    expected = Task(**SPAM, labels=("yes", "no"), equivalent=(("yes", "no"),))
    assert task_from_policy(policy, None) == expected


def test_a_task_says_what_a_denied_label_means_and_where_reading_begins():
    meant = {"labels": ["Yes", "No"], "negated": {"Yes": "No"}, "marker": "Answer:"}
    task = task_from_policy(TaskPolicy(**SPAM, **meant), None)
    assert read_label("Yes or no? Answer: not yes", task) == "no"
    assert read_label("Answer: not no", task) is None
    assert read_label("Yes", task) is None


def test_a_task_may_be_read_by_the_studies_rule():
    labels = {"labels": ["Yes", "No"]}
    said, first = (
        task_from_policy(TaskPolicy(**SPAM, **labels, reading=reading), None)
        for reading in ("said", "first-named")
    )
    answer = "It is not yes. It is no."
    assert (read_label(answer, said), read_label(answer, first)) == ("no", "yes")
    assert oracle_of(said).id != oracle_of(first).id
    with pytest.raises(ValueError, match="`reading` is of `labels`"):
        TaskPolicy(**SPAM, judged=True, reading="first-named")


def test_a_users_file_is_read_and_all_its_faults_are_told_at_their_places(tmp_path):
    (tmp_path / "spam.yaml").write_text("id: spam\ninstruction: Spam?\nlabels: ['yes', 'no']\n")
    assert load_task("spam.yaml", folder=tmp_path).labels == ("yes", "no")
    own = "id: t\ninstrction: Spam?\nlabels: [spam, ham, Spam]\nequivalent: [[spam, hm]]\n"
    (tmp_path / "t.yaml").write_text(own)
    with pytest.raises(PolicyError) as caught:
        load_task("t.yaml", folder=tmp_path)
    assert str(caught.value).splitlines() == [
        "t.yaml:2:1: unknown key `instrction`; did you mean `instruction`?",
        "t.yaml:3:21: the label 'spam' is listed twice (case is ignored)",
        "t.yaml:4:21: 'hm' is not among `labels`; did you mean `ham`?",
    ]


LABELS = "id: t\ninstruction: Mood?\nlabels: [good, fine, bad]\nequivalent: [[good, fine]]\norder: "


def test_an_order_has_every_label_or_one_of_its_equals(tmp_path):
    for order in ("[bad, good]", "[Bad, fine]", "[]"):
        (tmp_path / "t.yaml").write_text(LABELS + order)
        task = load_task("t.yaml", folder=tmp_path)
        assert task.ranks == ({"bad": 0, "good": 1} if order != "[]" else {})
    told = {
        "[bad]": "has no place for 'good', 'fine'; name every label, or one of each",
        "[bad, fine, good]": "'good' has the place of 'fine'; name one of them",
        "[bad, goood, good]": "'goood' is not among `labels`; did you mean `good`?",
        "[bad, good, BAD]": "'bad' has the place of 'bad'; name one of them",
    }
    for order, sentence in told.items():
        (tmp_path / "t.yaml").write_text(LABELS + order)
        with pytest.raises(PolicyError) as caught:
            load_task("t.yaml", folder=tmp_path)
        assert str(caught.value).startswith("t.yaml:5:")
        assert sentence in str(caught.value)


def test_an_order_is_of_labels():
    with pytest.raises(ValueError, match="`order` is an order of `labels`"):
        TaskPolicy(**SPAM, judged=True, order=["yes", "no"])


def test_the_shipped_tasks_say_what_is_worse():
    assert load_task("sentiment").ranks == {"negative": 0, "neutral": 1, "positive": 2}
    assert load_task("toxicity").ranks == {"toxic": 0, "non-toxic": 1}
