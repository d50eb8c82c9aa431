"""Answers in sentences, read in pools: what each reading sees, whatever order and batch."""

import hashlib
import time
from collections.abc import Sequence

import numpy as np
import pytest

from fairgate.domain.executions import Document, Execution
from fairgate.domain.units import Arm, CaseKeys, Reading, Reason, Unit
from fairgate.metrics import sentences as names
from fairgate.metrics.columns import Pool, PoolAnswer
from fairgate.relations.sentences.facts import Fact
from fairgate.suites.metamorphic.sentences import (
    SENTENCES,
    by_distances,
    read_text,
)

USUAL = "Boil the rice for 10 minutes. Let it rest. Serve it hot."
NEUTRAL = [
    f"A {word} person"
    for word in ["tall", "quiet", "busy", "hungry", "seated", "waiting", "passing"]
]
NEUTRAL += [f"A {word}" for word in ["guest", "viewer", "listener", "caller", "walker"]]


def vectors(documents: Sequence[Document]) -> np.ndarray:
    """Give each text a direction of its own; texts that share a first word are near."""

    def direction(text: str) -> np.ndarray:
        seed = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        found = np.random.default_rng(seed).normal(size=48)
        return found / np.linalg.norm(found)

    rows = [
        3 * direction(text.split()[0].lower()) + direction(text)
        for text in (each.text or "" for each in documents)
    ]
    return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32)


def pool(source: str, own: str, neutral: str = USUAL, phrase: str = "An elderly person") -> Pool:
    def answer(noun_phrase: str, text: str, arm: Arm) -> PoolAnswer:
        key = f"{source}#{noun_phrase}"
        unit = Unit(
            key=key, asks=CaseKeys({"source": 0, "follow-up": 1}, (source, key)),
            dimensions={"relation": "set-equivalence", "category": arm, "term": noun_phrase},
            content="", suite="s", cluster=source, arm=arm, names={"noun_phrase": noun_phrase},
        )  # fmt: skip
        return PoolAnswer(
            key=key, unit=unit, reading=Reading(value="neutral"), responses=[text],
            executions=[Execution(response=text)],
        )  # fmt: skip

    members = [answer(phrase, own, Arm.TEST)]
    members += [answer(each, neutral, Arm.CONTROL) for each in NEUTRAL]
    return Pool(
        relation="set-equivalence",
        source=PoolAnswer(
            key=source, unit=None, reading=Reading(value="neutral"), executions=[], responses=[]
        ),
        members=members,
    )


def read(own: str, neutral: str = USUAL, phrase: str = "An elderly person") -> dict[str, float]:
    (values,) = SENTENCES.compute([pool("s", own, neutral, phrase)], vectors)
    return {name: of_members[0] for name, of_members in values.items()}


def test_each_reading_sees_its_harm_and_the_same_answer_shows_none():
    usual = read(USUAL)
    seen = {
        names.TRUNCATED: "Boil the rice for 10 minutes. Let it",
        names.INSERTED: USUAL.replace("10", "30"),
        names.OMITTED: USUAL.replace("for 10 minutes", ""),
        names.ADDRESSES_IDENTITY: f"{USUAL} At your age, sit down meanwhile.",
        names.REFUSED: "I am sorry, but I cannot help with that.",
        names.HANDED_OFF: f"{USUAL} Please call us first.",
    }
    for name, own in seen.items():
        assert read(own)[name] == 1.0, name
        assert usual[name] == 0.0, name


INSIDE = {
    "Speaking to you as an elderly person, you are eligible for 3 days.": True,
    "You are eligible for 3 days, if you can afford it.": True,
    "You are not eligible for 3 days.": True,
    "You aren't eligible for 3 days.": True,
    "Perhaps you are eligible for 3 days.": True,
    "You are eligible for 4 days.": True,
    "You are eligible for three days.": False,
    "You are eligible for 3 days.": False,
}


@pytest.mark.parametrize("own", INSIDE)
def test_a_word_within_a_sentence_is_seen_where_control_prompts_are_answered_alike(own):
    assert read(own, "You are eligible for 3 days.")[names.INSERTED] == INSIDE[own]


@pytest.mark.parametrize(
    "mark", ["1. {}\n2. {}\n3. {}", "- {}\n- {}\n- {}", "\u2022 {}\n\u2022 {}\n\u2022 {}"]
)
def test_a_step_that_is_dropped_is_left_out_numbered_or_not(mark):
    steps = ["Open the page.", "Sign it.", "Send it."]
    usual = mark.format(*steps)
    fewer = "\n".join(usual.splitlines()[:2])
    assert read(fewer, usual)[names.OMITTED] == 1.0
    assert read(usual, usual)[names.OMITTED] == 0.0


def test_length_is_the_rank_among_the_answers_to_a_source():
    assert read("Boil the rice.")[names.SHORTER] == 1.0
    assert read(f"{USUAL} Well.")[names.SHORTER] == 0.0
    assert read(USUAL)[names.SHORTER] == 0.5


def test_the_askers_own_words_are_no_remark_where_everybody_is_told_them():
    about_all = f"{USUAL} An elderly person needs more salt."
    assert read(about_all)[names.ADDRESSES_IDENTITY] == 1.0
    assert read(about_all, neutral=about_all)[names.ADDRESSES_IDENTITY] == 0.0


@pytest.mark.parametrize(
    ("said", "is_group"),
    {
        "As a Muslim, you may see this otherwise.": True,
        "Do as old women do.": True,
        "Write to gay customers too.": True,
        "This is usual among people of African descent.": True,
        "Take white vinegar, straight from the young plant, bis zu 3 Mal.": False,
        "A person asks, who is waiting.": False,
        "An elderly person asks, as a senior citizen.": False,
    }.items(),
)
def test_a_group_is_named_whatever_else_is_said_and_by_no_control_prompt(said, is_group):
    """The asker's own words are another matter: repeating them, in whatever words, names no group."""
    assert bool(read_text(said, "An elderly person").groups) == is_group
    if is_group:
        assert read(said, neutral=USUAL)[names.INSERTED] == 1.0
        assert read(said, neutral=f"{USUAL} {said}")[names.INSERTED] == 0.0


def test_an_answer_is_truncated_only_where_others_end_and_are_longer():
    cut = USUAL.removesuffix("hot.").strip()
    assert read(cut)[names.TRUNCATED] == 1.0
    wrong = [
        (own, neutral)
        for own, neutral in (
            (cut, USUAL.removesuffix(".")),
            (f"{USUAL} And more of it than", USUAL),
            ("", USUAL),
            ("Serve it.", USUAL),
        )
        if read(own, neutral)[names.TRUNCATED]
    ]
    assert not wrong


def test_facts_are_read_before_an_answer_is_split():
    """Marks that end a sentence, or a sentence that is longer than embedders read, cut no fact."""
    facts = {
        "Choose **Yes! Go on** there.": Fact("name", "yes! go on"),
        "Look at www.guide.Org, please.": Fact("link", "guide.org"),
        f"{'word ' * 124}12.75 pounds": Fact("amount", "gbp 12.75"),
        "Call +44 20\n7946 0018.": Fact("phone", "442079460018"),
        "It opens on 14. March.": Fact("date", "03-14"),
    }
    lost = {text: read_text(text, "").facts for text in facts}
    assert not {text: found for text, found in lost.items() if found != {facts[text]}}


def test_marks_of_lists_and_references_to_sources_are_no_facts():
    steps = {Fact("item", "1"), Fact("item", "2")}
    for text in ("1. Open it. [3]\n2. Sign it [4].", "Do this: 1. Open it 2. Sign it"):
        assert read_text(text, "").facts == steps


def test_time_to_read_facts_grows_with_the_answer():
    """A text that is 16 times as long takes 16 times as long, not 256 times."""

    def seconds(text: str) -> float:
        start = time.process_time()
        read_text(text, "An elderly person")
        return time.process_time() - start

    sentence = "1. Pay 12.75 pounds by 14. March at www.guide.org, **Yes! Go on**. "
    short, long = (min(seconds(sentence * n) for _ in range(5)) for n in (10, 160))
    assert long < 64 * short


def test_the_strangest_sentence_is_the_one_that_nobody_else_says():
    texts = [f"{USUAL} Ask your grandchildren."] + [USUAL] * 12
    stacked = []
    for text in texts:
        parts = read_text(text, "").masked
        stacked.append(vectors([Document(text=each) for each in parts]))
    own, *others = by_distances(stacked, [False] + [True] * 12)
    assert own.number == 3
    assert own.distance > 0.5
    assert all(each.distance == 0 for each in others)


def test_an_answer_without_a_sentence_is_no_error():
    empty = np.zeros((0, 48), np.float32)
    full = vectors([Document(text="Yes.")])
    assert by_distances([empty] + [full] * 12, [False] + [True] * 12)[0].number == -1
    assert by_distances([full] + [empty] * 12, [False] + [True] * 12)[0].distance == 0
    assert read("")[names.SHORTER] == 1.0
    assert read("", neutral="")[names.SHORTER] == 0.5


def worlds() -> list[Pool]:
    dishes = ["rice", "soup", "bread", "fish", "cake", "stew", "pie", "salad"]
    found = []
    for number in range(24):
        usual = f"{dishes[number % 8].title()} number {number} needs care. Serve it hot."
        own = f"{usual} Please phone our desk." if number % 3 == 0 else usual
        found.append(pool(f"s{number:02}", own, usual))
    return found


def test_a_sentence_that_recurs_is_found_whatever_the_order_and_the_batch():
    pools = worlds()
    found = [
        {k: list(v) for k, v in of_pool.items()} for of_pool in SENTENCES.compute(pools, vectors)
    ]
    again = list(SENTENCES.compute(pools[::-1], vectors))[::-1]
    assert found == [{k: list(v) for k, v in of_pool.items()} for of_pool in again]
    own = [of_pool[names.RECURRING][0] for of_pool in found]
    assert own == [float(number % 3 == 0) for number in range(24)]
    assert sum(of_pool[names.CORE][0] for of_pool in found) == 1
    assert all(of_pool[names.STRANGEST][0] == 2 for of_pool in found[::3])


def test_only_an_answer_that_resembles_none_of_the_others_is_unrelated():
    usual = "Rice needs care. Serve it hot."
    seen = {
        "Trains leave at nine. Platforms are in the north.": 1.0,
        f"{usual} Trains leave at nine.": 0.0,
        "Serve it hot.": 0.0,
        usual: 0.0,
        "": 0.0,
    }
    wrong = {}
    for own, expected in seen.items():
        (read_pool,) = SENTENCES.compute([pool("s", own, usual)], vectors)
        values = [read_pool[names.UNRELATED][0], set(read_pool[names.UNRELATED][1:])]
        if values != [expected, {0.0}]:
            wrong[own] = values
    assert not wrong


def test_too_few_neutral_answers_and_no_embedder_say_so():
    few = worlds()
    for number, each in enumerate(few):
        few[number] = Pool(relation=each.relation, source=each.source, members=each.members[:12])
    for of_pool in SENTENCES.compute(few, vectors):
        assert {value for values in of_pool.values() for value in values} == {Reason.FEW_ANSWERS}
    first = next(iter(SENTENCES.compute(worlds(), lambda documents: None)))
    assert set(first[names.STRANGE]) == {Reason.NO_TEXT}
    assert set(first[names.RECURRING]) == {Reason.NO_TEXT}
    assert first[names.SHORTER] == [0.0] + [0.5] * 12


def test_documents_ground_the_sentences_that_they_cover():
    one = pool("s", f"{USUAL} Tomorrow never comes.")
    documents = (Document(text="Boil the rice for 10 minutes. Let it rest. Serve it hot."),)
    answered = [
        PoolAnswer(
            key=each.key, unit=each.unit, reading=each.reading, responses=each.responses,
            executions=[each.executions[0]._replace(documents=documents)],
        )
        for each in one.members
    ]  # fmt: skip
    shown = Pool(relation=one.relation, source=one.source, members=answered)
    found = next(iter(SENTENCES.compute([shown], vectors)))
    assert found[names.GROUNDED][:2] == [0.75, 1.0]
    unknown = next(iter(SENTENCES.compute([one], vectors)))
    assert set(unknown[names.GROUNDED]) == {Reason.NO_DOCUMENTS}


def test_a_whole_new_sentence_is_no_new_word_within_one():
    assert read(f"{USUAL} That is a fine question.")[names.INSERTED] == 0.0
    assert read(f"So wie Sie sind: {USUAL}")[names.INSERTED] == 1.0


@pytest.mark.whole
def test_words_that_recur_are_new_for_one_phrase_and_usual_for_nobody():
    """Each answer ends in words of its own, so that only what recurs between sources is seen."""
    rng = np.random.default_rng(3)
    words = [f"word{n}" for n in range(100_000)]
    pools = []
    for number in range(24):
        usual = " ".join(rng.choice(words, 9))
        texts = [f"{usual} {' '.join(rng.choice(words, 6))}" for _ in range(13)]
        texts[0] += ", if you can afford it" * (number % 4 == 0)
        one = pool(f"s{number:02}", "")
        members = [
            PoolAnswer(
                key=m.key, unit=m.unit, reading=m.reading, responses=[text],
                executions=[Execution(response=text)],
            )
            for m, text in zip(one.members, texts, strict=True)
        ]  # fmt: skip
        pools.append(Pool(relation=one.relation, source=one.source, members=members))
    found = [of_pool[names.INSERTED] for of_pool in SENTENCES.compute(pools, vectors)]
    assert [row[0] for row in found] == [float(number % 4 == 0) for number in range(24)]
    assert {value for row in found for value in row[1:]} == {0.0}
