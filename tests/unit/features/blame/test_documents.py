"""A mixture of two corpora has the documents of either version; the smallest part is found."""

from fakes.corpus import ListCorpus
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.executions import CorpusDocument
from fairgate.features.blame.documents import VersionedCorpus, smallest_part

TEXTS = st.lists(st.sampled_from(["man", "woman", "bread", "rain", "7", "says"]), min_size=1).map(
    " ".join
)
CORPUS = st.lists(st.tuples(st.integers(0, 30), TEXTS), max_size=14, unique_by=lambda d: d[0])


def documents(rows):
    return [CorpusDocument(id=f"d{n:02}", text=f"{text} id{n}") for n, text in sorted(rows)]


def versions(before, after, *, has_ids=True):
    return VersionedCorpus(ListCorpus(before, "a"), ListCorpus(after, "b"), has_ids=has_ids)


def applied(before, after, reverted):
    """Return the mixture's documents, written out: HEAD's with some as they were."""
    found, old = ({d.id: d for d in version} for version in (after, before))
    for each in reverted:
        found.pop(each.id, None)
        if each.kind != "added":
            found[each.id] = old[each.id]
    return found


@given(before=CORPUS, after=CORPUS, data=st.data())
def test_a_mixture_has_the_documents_of_both_versions_in_the_later_ones_order(before, after, data):
    before, after = documents(before), documents(after)
    corpus = versions(before, after)
    reverted = [each for each in corpus.changed if data.draw(st.booleans())]
    mixture = corpus.with_reverted(reverted)
    assert {d.id: d for d in mixture.all} == applied(before, after, reverted)
    places = [n for d in mixture.all for n, e in enumerate(after) if e.id == d.id]
    assert places == sorted(places)
    assert len(mixture.all) == len({d.id for d in mixture.all})
    other = [each for each in corpus.changed if data.draw(st.booleans())]
    is_same = corpus.with_reverted(other).fingerprint == mixture.fingerprint
    assert is_same == (other == reverted)


def test_rows_that_an_inserted_one_moves_are_no_change():
    before = [CorpusDocument(id=str(n), text=f"text {n}") for n in range(1, 6)]
    texts = ["text 1", "new", "text 2", "text 3", "text 5"]
    after = [CorpusDocument(id=str(n), text=text) for n, text in enumerate(texts, start=1)]
    corpus = versions(before, after, has_ids=False)
    assert [(each.kind, each.id) for each in corpus.changed] == [("added", "2"), ("removed", "4")]
    # The removed row has a number that another one has at HEAD.
    assert [d.id for d in corpus.with_reverted(corpus.changed).all] == ["1", "3", "4", "5", "4'"]


def test_an_edit_keeps_its_id_and_its_place():
    before = [CorpusDocument(id="x", text="old"), CorpusDocument(id="y", text="other")]
    after = [CorpusDocument(id="x", text="new"), CorpusDocument(id="y", text="other")]
    corpus = versions(before, after)
    (change,) = corpus.changed
    assert (change.kind, change.id) == ("edited", "x")
    assert corpus.with_reverted([change]).all == before
    assert corpus.with_reverted([]).all == after


@given(n=st.integers(1, 60), data=st.data())
def test_the_smallest_part_has_all_that_is_needed_and_nothing_else(n, data):
    needed = data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=5))
    assert smallest_part(range(n), lambda part: needed <= {*part}) == sorted(needed)
