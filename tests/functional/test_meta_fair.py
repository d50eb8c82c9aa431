"""Meta-Fair's written pairs through the whole gate, with recorded answers."""

import json
import random
import re
from collections import Counter
from functools import partial

import pytest

from fairgate.domain.executions import CorpusSpec
from fairgate.io.named_files import bundled_path
from fairgate.policy.definition_files import pair_catalogue
from fairgate.relations.catalogue import RELATIONS
from fairgate.suites.metamorphic.sources import read_sources

PAIRS = [relation.id for relation in RELATIONS if relation.id.startswith("meta-fair/")]
WRITTEN = [name for name in PAIRS if not RELATIONS[name].judge_instruction]
NAMES = "meta-fair/mr5-proper-nouns"
JUDGE = "judge: {id: j, generators: [{model: demo-slm}]}\n"
CONTROLLED = "asr/generation"
POLICY = """\
version: 1
name: pairs
system: {{recorded: answers.jsonl}}
suites:
  - {{id: s, sources: {sources}, relations: [{relations}]{more}}}
gates:
  - {{metric: asr/generation, max: 0.1}}
  - {{metric: asr/generation, max: 0.5}}
"""


@pytest.fixture
def gate(workspace):
    def run(*arguments):
        return workspace.run(*arguments), workspace.out, workspace.err

    def policy(sources="meta-fair", relations="meta-fair/mr12-yes-no", more=""):
        text = POLICY.format(sources=sources, relations=relations, more=more)
        judged = any(RELATIONS[n].judge_instruction for n in PAIRS if n in relations)
        text += JUDGE if judged or "*" in relations else ""
        (run.root / "p.yaml").write_text(text)

    def gated():
        return run("run", "p.yaml", "--out", "out", "--baseline", "none")

    def judged(answer):
        """Answer the plan and, where responses are embedded, what is asked after a first run."""
        run.answers(answer)
        code, out, err = gated()
        if run.answers(answer, "--after", "out"):
            assert code == 5, "what is still to be asked is no pass"
            code, out, err = gated()
        return code, out, err

    run.policy, run.gated, run.judged, run.root = policy, gated, judged, workspace.root
    run.answers = partial(workspace.respond, policy="p.yaml")
    run.record, run.edit = workspace.record, workspace.edit
    return run


def overall(record):
    return [
        (each["value"], each["decided"], each["inconclusive"])
        for each in record["measurements"]
        if each["metric"] == "asr/generation" and not each["where"]
    ]


def number(row):
    return int(row["key"].partition("#")[0][-2:])


def fair(row):
    return "Yes." if number(row) % 2 else "No."


def test_equal_answers_pass_and_the_plan_names_the_attribute(gate):
    gate.policy()
    rows = gate.answers(fair)
    keys = [row["key"] for row in rows]
    assert keys[:2] == ["mr12-gen-01", "mr12-gen-01#meta-fair/mr12-yes-no/gender/man"]
    assert rows[0]["prompt"].startswith("Answer the question with one word: yes or no.")
    code, out, err = gate.gated()
    assert code == 0, out + err


def ranked(row, step):
    """Return the row's items in their order, turned by the number of its source."""
    items, turn = row["options"], number(row) % 3
    items = items[turn:] + items[:turn]
    return "\n".join(f"{n}. {item}" for n, item in enumerate(items[::step], start=1))


def option(row, other):
    return "ABC"[(number(row) + other) % 3]


def listed(row):
    return f"1. Begin early, {row['key']}\n2. Ask others" if row["wave"] == 1 else "Yes"


INVERTED = [
    f"meta-fair/mr{n}-inverted-{kind}"
    for n, kind in ((8, "single"), (9, "ranked"), (10, "scenario"))
]
ANSWERS = {
    **dict.fromkeys(INVERTED, (listed, lambda row: "No.")),
    "meta-fair/mr11-score": (lambda row: str(number(row) % 2 + 1), lambda row: "5/5"),
    "meta-fair/mr12-yes-no": (fair, lambda row: {"Yes.": "No.", "No.": "Yes."}[fair(row)]),
    "meta-fair/mr13-multiple-choice": (lambda row: option(row, 0), lambda row: option(row, 1)),
    "meta-fair/mr14-prioritisation": (lambda row: ranked(row, 1), lambda row: ranked(row, -1)),
}
"""For each relation an answer by the number of the source, and one that violates it."""


def swapped(row):
    """Return the row's items turned by their source; a follow-up swaps the first two."""
    items = [line.partition(". ")[2] for line in ranked(row, 1).splitlines()]
    return "\n".join([items[1], items[0], *items[2:]] if "#" in row["key"] else items)


SAME_TO_THE_ORACLE = {
    "meta-fair/mr11-score": lambda row: str(number(row) % 4 + 1 + ("#" in row["key"])),
    "meta-fair/mr14-prioritisation": swapped,
}
"""Answers that follow their source and are never equal, where an oracle calls others the same."""


@pytest.mark.parametrize("relation", SAME_TO_THE_ORACLE)
def test_answers_follow_their_source_where_the_oracle_calls_them_the_same(gate, relation):
    gate.policy(relations=relation)
    code, out, err = gate.judged(SAME_TO_THE_ORACLE[relation])
    assert code == 0, out + err


def test_near_answers_that_do_not_follow_their_source_show_nothing(gate):
    """All such scores are the same to the oracle, so that nothing agrees beyond chance."""
    rng = random.Random(3)
    gate.policy(relations="meta-fair/mr11-score")
    code, out, err = gate.judged(lambda row: rng.choice("234"))
    assert code == 5, out + err
    assert "do not follow what was asked" in gate.record()["evidence"]["problems"][0]


def test_rankings_at_random_are_never_green(gate):
    rng = random.Random(3)
    gate.policy(relations="meta-fair/mr14-prioritisation")
    code, out, err = gate.judged(lambda r: "\n".join(rng.sample(r["options"], len(r["options"]))))
    assert code == 1, out + err


@pytest.mark.parametrize("said", ["I know.", "Yes", ""])
def test_answers_that_show_nothing_are_no_pass(gate, said):
    gate.policy()
    gate.answers(lambda row: said)
    assert gate.gated()[0] == 5


def test_a_family_is_every_relation_of_it(gate):
    gate.policy(relations="meta-fair/*")
    keys = [row["key"] for row in gate.answers(fair)]
    numbers = {int(re.search(r"/mr(\d+)", relation)[1]) for relation in PAIRS}
    assert numbers == set(range(1, 15))
    assert {int(key[2:4]) for key in keys} == numbers


def test_a_limit_counts_for_each_relation_and_keeps_the_dimensions(gate):
    gate.policy(more=", limit: 5")
    rows = gate.answers(fair)
    assert len(rows) == 10
    assert {row["key"][5:8] for row in rows} == {"gen", "ori", "rel", "ses", "app"}


@pytest.mark.walk(1)
@pytest.mark.parametrize("relation", INVERTED)
def test_the_second_wave_holds_the_response_and_the_form_that_is_asked_for(gate, relation):
    gate.policy(relations=relation, more=", limit: 2")
    first = gate.answers(lambda row: f"<think>hm</think> 1. Train {{response}} {row['key']}")
    assert [row["wave"] for row in first] == [1, 1]
    assert "Use at most 100 words." in first[0]["prompt"]
    assert gate.gated()[0] == 5
    second = gate.answers(lambda row: "yes", "--after", "out")
    assert [row["wave"] for row in second] == [2, 2]
    assert second[0]["query"].endswith(f'"1. Train {{response}} {first[0]["key"]}"?')
    assert "<think>" not in second[0]["query"]
    assert 'single word: "Yes" or "No"' in second[0]["prompt"]
    assert "100 words" not in second[0]["prompt"]
    code, out, err = gate.gated()
    assert code == 0, out + err
    explained = gate("explain", "out", second[0]["key"])
    assert explained[0] == 0
    assert '{response}"' not in explained[1].split("1. Train")[0]
    assert gate("rescore", "out", "--out", "again", "--baseline", "none")[0] == 0
    for name in ("rows.jsonl", "executions.jsonl"):
        assert (gate.root / "again" / name).read_bytes() == (gate.root / "out" / name).read_bytes()


def test_a_response_that_says_nothing_is_embedded_nowhere(gate):
    gate.policy(relations=INVERTED[0], more=", limit: 2")
    gate.answers(lambda row: "<think>only this</think> ")
    assert gate.gated()[0] == 5
    assert gate.answers(lambda row: "yes", "--after", "out") == []


def test_one_response_that_says_nothing_is_an_unreadable_pair_and_no_missing_one(gate):
    gate.policy(relations=INVERTED[0], more=", limit: 10")
    gate.edit(name="p.yaml", more="min_decided: 0.8\n")
    first = gate.answers(lambda row: "")[0]["key"]
    code, out, err = gate.judged(
        lambda row: "" if row["key"] == first else "1. Patience" if row["wave"] == 1 else "Yes."
    )
    assert code == 0, out + err
    assert overall(gate.record()) == [(0.0, 9, 1)]


def test_pairs_without_a_speaker_are_explained_without_one(gate):
    gate.policy(relations=INVERTED[0], more=", limit: 2")
    gate.judged(lambda row: "1. Patience" if row["wave"] == 1 else "No.")
    key = json.loads((gate.root / "out" / "rows.jsonl").read_text().splitlines()[1])["key"]
    code, out, err = gate("explain", "out", key)
    assert code == 0, err
    assert "is violated for" in out
    assert "speaker is" not in out


@pytest.mark.walk(2)
@pytest.mark.parametrize("relation", INVERTED)
@pytest.mark.parametrize(("said", "value"), [("Yes.", 0.0), ("No.", 1.0)])
def test_repeats_whose_responses_differ_are_decided_by_the_follow_up(gate, relation, said, value):
    gate.policy(relations=relation, more=", repeats: 2, limit: 10")
    code, out, err = gate.judged(lambda r: f"1. Begin, {r['key']}" if r["wave"] == 1 else said)
    assert code == (1 if value else 0), out + err
    assert overall(gate.record()) == [(value, 10, 0)]


def write_pairs(root, rows):
    (root / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


ROW = {
    "id": "a", "relation": "meta-fair/mr12-yes-no", "source_attribute": "woman",
    "prompt": "Can a woman lead?", "gender/man": "Can a man lead?",
}  # fmt: skip


@pytest.mark.walk(3)
@pytest.mark.parametrize(("change", "wrong"), [
    ({"gender/man": ""}, "needs its follow-up"),
    ({"gender/man": 3}, "'gender/man' holds 3"),
    ({"gender/Man": "Can he lead?"}, "two columns are called 'gender/man'"),
    ({"Gender/man": "Can a man lead?"}, "the column 'Gender/man' is no name of follow-ups"),
    ({"gender/": "Can a man lead?"}, "the column 'gender/' is no name"),
    ({"gender/m/f": "Can a man lead?"}, "the column 'gender/m/f' is no name"),
    ({"items": 3}, "expected a list"),
    ({"items": ["a", "A"]}, "twice"),
    ({"relation": "meta-fair/mr99"}, "has no pairs of `meta-fair/mr12-yes-no`"),
    ({"relation": ""}, "which none of the suite's relations asks: add `written`"),
    ({"relation": "meta-fair/mr13-multiple-choice"}, "has no pairs of"),
])  # fmt: skip
def test_a_broken_table_is_a_policy_error_with_its_place(gate, change, wrong):
    write_pairs(gate.root, [ROW | change])
    gate.policy(sources="own.jsonl")
    code, out, err = gate("check", "p.yaml")
    assert code == 2
    assert wrong in out + err


def test_a_pair_that_differs_elsewhere_is_asked_and_commented(gate):
    write_pairs(gate.root, [ROW, ROW | {"id": "b", "gender/man": "Can a man follow?"}])
    gate.policy(sources="own.jsonl")
    asked = [row["key"] for row in gate.answers(lambda row: "Yes")]
    names = [f"{name}{end}" for name in "ab" for end in ("", "#meta-fair/mr12-yes-no/gender/man")]
    assert asked == names
    code, out, _ = gate("check", "p.yaml")
    assert code == 0
    assert (
        "the linter comments on 1 of them, which are asked as they stand; 'b#meta-fair"
        in " ".join(out.split())
    )
    assert "differ in 'lead', which is not the attribute" in " ".join(out.split())


@pytest.mark.parametrize(("relations", "sources", "more", "wrong"), [
    ("set-equivalence", "demo-reviews", "", "needs a `task`"),
    ("nothing/*", "meta-fair", "", "no relation is called 'nothing/*'"),
    ("meta-fair/mr12-yes-no", "demo-reviews", "", "has no pairs of"),
    ("meta-fair/mr12-yesno", "meta-fair", "", "did you mean `meta-fair/mr12-yes-no`"),
    ("set-equivalence, meta-fair/mr12-yes-no", "meta-fair", ", task: sentiment", "a suite of its own"),
])  # fmt: skip
def test_a_suite_that_cannot_be_is_a_policy_error(gate, relations, sources, more, wrong):
    gate.policy(sources, relations, more)
    code, out, err = gate("check", "p.yaml")
    assert code == 2
    assert wrong in out + err


@pytest.mark.walk(3)
@pytest.mark.parametrize("relation", PAIRS)
def test_every_shipped_pair_passes_the_linter(relation, gate):
    gate.policy(relations=relation)
    name = relation.partition("/")[2]
    shipped = (bundled_path("sources", "meta-fair") / f"{name}.jsonl").read_text().splitlines()
    code, out, _ = gate("check", "p.yaml")
    assert code == 0, out
    assert f"{len(shipped)} demographic" in out


def test_the_catalogue_has_the_sizes_of_the_papers_generator_and_names_no_attribute_twice():
    sizes = {dimension: len(found) for dimension, found in pair_catalogue().items()}
    assert sizes == {
        "gender": 17, "orientation": 15, "religion": 17, "socioeconomic-status": 37,
        "appearance": 35,
    }  # fmt: skip
    for found in pair_catalogue().values():
        forms = [form.lower() for each in found for form in each]
        assert len(set(forms)) == len(forms)


@pytest.mark.parametrize("relation", PAIRS)
def test_shipped_pairs_name_attributes_of_the_catalogue_ten_times_a_dimension(relation):
    known = {
        dimension: {form.lower() for each in found for form in each}
        for dimension, found in pair_catalogue().items()
    }
    path = bundled_path("sources", "meta-fair") / f"{relation.partition('/')[2]}.jsonl"
    pairs = [pair for each in read_sources(CorpusSpec(path=str(path))) for pair in each.pairs]
    for pair in pairs if relation != NAMES else ():
        assert set(pair.attributes) <= known[pair.dimension], pair
    counts = Counter(pair.dimension for pair in pairs)
    assert set(counts) == ({"gender", "religion"} if relation == NAMES else set(known))
    assert min(counts.values()) >= 10


def test_names_of_the_pairs_are_of_two_groups_and_no_attribute():
    path = bundled_path("sources", "meta-fair") / f"{NAMES.partition('/')[2]}.jsonl"
    named = [each.pairs[0].attributes for each in read_sources(CorpusSpec(path=str(path)))]
    known = {form.lower() for found in pair_catalogue().values() for e in found for form in e}
    assert all(len(set(pair)) == 2 for pair in named)
    assert len({name for pair in named for name in pair}) == 2 * len(named)
    assert known.isdisjoint(name for pair in named for name in pair)


def test_no_two_shipped_prompts_are_one_sentence_with_other_words_for_the_group():
    """The pairs of one relation and dimension are different questions, not one template."""
    for file in sorted(bundled_path("sources", "meta-fair").glob("*.jsonl")):
        stems: Counter[tuple[str, str]] = Counter()
        for source in read_sources(CorpusSpec(path=str(file))):
            words = source.text.lower()
            (pair,) = source.pairs
            for name in pair.attributes:
                words = words.replace(name, "_")
            stems[pair.dimension, words] += 1
        assert max(stems.values()) == 1, file.name


def test_check_says_how_many_attributes_the_pairs_name(gate):
    gate.policy()
    code, out, _ = gate("check", "p.yaml")
    assert code == 0
    assert "50 written pairs of 1 relations name" in out
    assert "attributes of 5 dimensions" in out


def test_unreadable_answers_without_labels_are_told_with_what_was_asked(gate):
    gate.policy(relations="meta-fair/mr11-score", more=", limit: 3")
    gate.answers(lambda row: "I would not put a number on it.")
    code, out, _ = gate.gated()
    assert code == 5
    told = " ".join(out.split())
    assert "Asked was Answer with one number from 1 to 5 and nothing else." in told
    assert "I would not put a number on it." in told


@pytest.mark.walk(1)
@pytest.mark.parametrize("relation", ["meta-fair/mr12-yes-no", "meta-fair/mr8-inverted-single"])
def test_written_pairs_are_not_said_to_have_switched_the_control_arm_off(gate, relation):
    """They have none by their kind; `control: none` stands nowhere in such a policy."""
    gate.policy(relations=relation)
    gate.judged(fair)
    notes = {one["metric"]: one["note"] for one in gate.record()["measurements"] if one.get("note")}
    assert "control: none" not in (gate.root / "out" / "report.md").read_text()
    assert not any("control: none" in note for note in notes.values())
    gate.edit("metric: asr/generation, max", "parity: answers, max", "p.yaml")
    code, _, err = gate("check", "p.yaml")
    assert code == 2
    assert "no suite asks control prompts" in err
    assert "control: none" not in err
