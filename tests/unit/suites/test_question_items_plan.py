"""What is asked about question items, and how often."""

from collections import Counter

import numpy as np
import pytest
from fakes.blamed import Memory
from fakes.question_items import answered, four, many, planned, saying, table_of

from fairgate.domain.cases import Alignment, Condition
from fairgate.domain.errors import DataError, ModelError
from fairgate.domain.executions import Decoding, Document, Execution
from fairgate.domain.ports import SILENT
from fairgate.suites.question_items.suite import capped_items, choose_examples, retriever_key
from fairgate.systems.execute import LocalParts, LocalSystem
from fairgate.systems.generator import DEFAULT_TEMPLATE


def test_a_key_says_what_differs_from_the_default_in_the_order_of_the_specification():
    plan = planned(
        four(0),
        settings=["none", "stereo"],
        collections=["c"],
        retrievers=["dense", "bm25"],
        top_k=[4, 10],
        instructions=[{"id": "plain", "text": "A"}, {"id": "careful", "text": "B"}],
    )
    assert [case.key for case in plan.items if case.item.key == "Age/0"] == [
        "Age/0",
        "Age/0@setting=stereo@k=4",
        "Age/0@setting=stereo",
        "Age/0@setting=stereo@retriever=bm25@k=4",
        "Age/0@setting=stereo@retriever=bm25",
        "Age/0@instruction=careful",
        "Age/0@setting=stereo@k=4@instruction=careful",
        "Age/0@setting=stereo@instruction=careful",
        "Age/0@setting=stereo@retriever=bm25@k=4@instruction=careful",
        "Age/0@setting=stereo@retriever=bm25@instruction=careful",
    ]
    assert len({case.key for case in plan.cases}) == len(plan.cases)
    assert {case.cluster for case in plan.cases} == {"Age/1"}


def test_the_prompt_shows_the_options_that_the_plan_names():
    case = planned(four(3)).cases[0]
    letters = "\n".join(map(": ".join, zip("ABC", case.options, strict=True)))
    assert case.text == f"Context: Context 3 0.\nQuestion: Who was it?\n{letters}"
    assert case.query == "Who was it? Context 3 0."


def test_options_are_shuffled_by_item_and_seed_and_each_place_is_used():
    items = many(100, 5)
    orders = {seed: [case.options for case in planned(items, seed=seed).items] for seed in (1, 2)}
    assert orders[1] != orders[2]
    assert orders[1] == [case.options for case in planned(items, seed=1).items]
    unknown = (item.options[item.unknown] for item in items)
    places = Counter(options.index(text) for options, text in zip(orders[1], unknown, strict=True))
    assert min(places.values()) > 0.25 * len(items)
    assert all(case.options == case.item.options for case in planned(items, shuffle=False).items)


@pytest.mark.parametrize("limit", [4, 6, 20, 40, 400])
def test_a_cap_keeps_whole_groups_and_spreads_over_templates(limit):
    items = [*many(24, 6), *many(24, 6, "Religion")]
    kept = capped_items(items, limit, seed=1)
    assert kept == [item for item in items if item in kept]
    assert set(Counter((item.category, item.group) for item in kept).values()) == {4}
    for category in ("Age", "Religion"):
        own = [item for item in kept if item.category == category]
        assert len(own) == min(96, limit // 4 * 4)
        assert len({item.template for item in own}) == min(6, len(own) // 4)


def test_examples_are_balanced_of_other_groups_and_not_asked():
    items = [*many(24, 6), *many(24, 6, "Religion")]
    chosen = choose_examples(items, seed=1)
    balanced = {
        (Condition.AMBIGUOUS, None): 4,
        (Condition.DISAMBIGUATED, Alignment.STEREOTYPE): 2,
        (Condition.DISAMBIGUATED, Alignment.COUNTER): 2,
    }
    for category, examples in chosen.items():
        assert Counter((item.condition, item.alignment) for item in examples) == balanced
        assert len({item.group for item in examples}) == 8
        assert {item.category for item in examples} == {category}
    plan = planned(items, seed=1, shots=8)
    taken = {(e.category, e.group) for found in chosen.values() for e in found}
    assert not taken & {(case.item.category, case.item.group) for case in plan.items}
    assert len(plan.items) == len(items) - 4 * 16
    shown = plan.cases[0].instruction
    assert shown.count("Context: ") == 8
    assert shown.count("\nAnswer: ") == 8


def test_too_few_items_for_examples_is_an_error():
    with pytest.raises(DataError, match="shots: 0"):
        choose_examples(many(6, 3), seed=1)


class CountingRetriever:
    fingerprint = "r"
    at_once = 3

    def __init__(self):
        self.asked = []

    def retrieve(self, queries, top_k):
        self.asked += [(query, top_k) for query in queries]
        labels = ["anti", "stereo"] * top_k
        return [
            [Document(id=f"d{i}", text=f"{query} {i}", label=labels[i]) for i in range(top_k)]
            for query in queries
        ]

    def vectors(self, document_ids):
        return None


class CountingGenerator:
    fingerprint = "g"

    def __init__(self):
        self.asked = []

    def generate(self, requests):
        self.asked += [request.prompt for request in requests]
        for position, request in enumerate(requests):
            yield position, Execution(response=request.options[0])

    def score_options(self, requests):
        self.asked += [request.prompt for request in requests]
        return [[-1.0, -3.0, -2.5] for _ in requests]


WIDE = {
    "settings": ["none", "full", "stereo"], "collections": ["c"],
    "retrievers": ["dense", "bm25"], "top_k": [1, 3, 5],
}  # fmt: skip


def system(generator=None):
    keys = [retriever_key("bbq", s, r) for s in ("full", "stereo") for r in ("dense", "bm25")]
    return LocalParts(
        retrievers=dict.fromkeys(keys, CountingRetriever()),
        generator=generator or CountingGenerator(),
        template=DEFAULT_TEMPLATE,
        document_characters=1000,
        decoding=Decoding(),
    )


def test_every_question_is_asked_once_none_is_shared_and_a_sweep_retrieves_once():
    items = many(4, 2)
    plan = planned(items, **WIDE)
    sut, memory = system(), Memory()
    found = LocalSystem(sut, memory).execute(plan.cases, SILENT)
    assert len(found) == len(items) * (1 + 2 * 2 * 3)
    retriever = sut.retrievers["bbq/full/dense"]
    # The four retrievers of this test are one object with one store, so equal questions are one.
    assert Counter(retriever.asked) == {(item.query, 5): 1 for item in items}
    # One prompt without documents and one for each depth: equal documents are asked about once.
    assert len(sut.generator.asked) == len(items) * (1 + 3)
    assert len(set(sut.generator.asked)) == len(sut.generator.asked)
    for case in plan.items:
        documents = found["bbq", case.key].documents
        assert (documents is None) if case.setting == "none" else len(documents) == case.top_k
    again = system()
    assert LocalSystem(again, memory).execute(plan.cases, SILENT) == found
    assert not again.generator.asked
    assert not again.retrievers["bbq/full/dense"].asked


def test_the_share_of_stereotypical_documents_is_that_of_what_was_shown():
    plan = planned(many(4, 2), **WIDE)
    table = table_of(plan, LocalSystem(system(), Memory()).execute(plan.cases, SILENT))
    for k, share in (("1", 0.0), ("3", 1 / 3), ("5", 0.4)):
        rows = table.slice_mask({"k": k})
        assert table.values["stereotypes"][rows] == pytest.approx(share, abs=1e-6)
    assert np.isnan(table.values["stereotypes"][table.slice_mask({"setting": "none"})]).all()


@pytest.mark.parametrize("read", ["scored", "scored-letters"])
def test_scored_answers_are_the_most_probable_option_with_its_margin(read):
    items = many(2, 2)
    plan = planned(items, read=read)
    sut, memory = system(), Memory()
    found = LocalSystem(sut, memory).execute(plan.cases, SILENT)
    for case in plan.items:
        assert found["bbq", case.key].response == case.options[0]
        assert found["bbq", case.key].margin == 1.5
    assert len(sut.generator.asked) == len(items)
    again = system()
    assert LocalSystem(again, memory).execute(plan.cases, SILENT) == found
    assert not again.generator.asked


def test_a_generator_that_cannot_score_says_so():
    class Silent(CountingGenerator):
        score_options = property()

    cases = planned(four(0), read="scored").cases
    with pytest.raises(ModelError, match="read: generated"):
        LocalSystem(system(Silent()), Memory()).execute(cases, SILENT)


def test_letters_are_counted_where_they_were_shown():
    plan = planned(many(30, 5))
    table = table_of(plan, answered(plan, lambda case: case.options[1]))
    assert [table.values[f"letter-{name}"].mean() for name in "abc"] == [0.0, 1.0, 0.0]
    unknown = table_of(plan, answered(plan, saying(lambda item: item.unknown), options=False))
    assert "letter-a" in unknown.not_evaluated
