"""A mixture of two corpora ranks as an index over it would, and the smallest part is found."""

from fakes.blamed import WordRetriever
from fakes.corpus import ListCorpus
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.executions import CorpusDocument
from fairgate.features.blame.documents import Mixture, UnionCorpus, UnionSearch, smallest_part

TEXTS = st.lists(st.sampled_from(["man", "woman", "bread", "rain", "7", "says"]), min_size=1).map(
    " ".join
)
CORPUS = st.lists(st.tuples(st.integers(0, 30), TEXTS), max_size=14, unique_by=lambda d: d[0])
QUERIES = ["a man says 7", "woman bread", "rain", "nothing"]


def documents(rows):
    return [CorpusDocument(id=f"d{n:02}", text=f"{text} id{n}") for n, text in sorted(rows)]


def search_of(before, after, *, has_ids=True):
    union = UnionCorpus(ListCorpus(before, "a"), ListCorpus(after, "b"), has_ids=has_ids)
    return UnionSearch(union, WordRetriever(union))


def applied(before, after, reverted):
    """Return the mixture's documents, written out: HEAD's with some as they were."""
    found, old = ({d.id: d for d in version} for version in (after, before))
    for each in reverted:
        found.pop(each.id, None)
        if each.kind != "added":
            found[each.id] = old[each.id]
    return [found[id_] for id_ in sorted(found)]


@given(before=CORPUS, after=CORPUS, depth=st.integers(1, 5), data=st.data())
def test_a_mixture_ranks_as_an_index_over_it(before, after, depth, data):
    before, after = documents(before), documents(after)
    search = search_of(before, after)
    reverted = [each for each in search.union.changed if data.draw(st.booleans())]
    mixture = Mixture(search, reverted)
    expected = applied(before, after, reverted)
    assert mixture.size == len(expected)
    slow = WordRetriever(ListCorpus(expected)).retrieve(QUERIES, depth)
    found = mixture.retrieve(QUERIES, depth)
    assert [[d.score for d in each] for each in found] == [[d.score for d in each] for each in slow]
    every = {(d.id, d.text) for d in expected}
    assert {(d.id.removesuffix(" (BASE)"), d.text) for each in found for d in each} <= every


def test_rows_that_an_inserted_one_moves_are_no_change():
    before = [CorpusDocument(id=str(n), text=f"text {n}") for n in range(1, 6)]
    texts = ["text 1", "new", "text 2", "text 3", "text 5"]
    after = [CorpusDocument(id=str(n), text=text) for n, text in enumerate(texts, start=1)]
    kinds = [(each.kind, each.id) for each in search_of(before, after, has_ids=False).union.changed]
    assert kinds == [("added", "2"), ("removed", "4")]


def test_an_edit_keeps_its_id_and_a_hostile_id_does_not_collide():
    before = [CorpusDocument(id="x", text="old"), CorpusDocument(id="x (BASE)", text="other")]
    after = [CorpusDocument(id="x", text="new"), CorpusDocument(id="x (BASE)", text="other")]
    search = search_of(before, after)
    (change,) = search.union.changed
    assert (change.kind, change.id) == ("edited", "x")
    found = Mixture(search, [change]).retrieve(["old new"], 2)[0]
    assert [(d.id, d.text) for d in found] == [("x", "old"), ("x (BASE)", "other")]
    assert Mixture(search, []).retrieve(["old new"], 2)[0][0].text == "new"


@given(n=st.integers(1, 60), data=st.data())
def test_the_smallest_part_has_all_that_is_needed_and_nothing_else(n, data):
    needed = data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=5))
    assert smallest_part(range(n), lambda part: needed <= {*part}) == sorted(needed)
