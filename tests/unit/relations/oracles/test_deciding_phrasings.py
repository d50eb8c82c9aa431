"""The answers that decide the figure: labelled by a person before any rule had read them."""

from collections import Counter

from fakes.answer_phrasings import DECIDING

from fairgate.relations.oracles.choice import is_complete


def test_what_was_read_rightly_at_first_is_read_rightly_whole_and_stopped():
    wrong = []
    for phrasing in DECIDING:
        text, stop = phrasing.generated, phrasing.stop
        cuts = [] if stop is None else [n for n in range(len(text)) if is_complete(text[:n], stop)]
        for part in (phrasing.text, text, *(text[:cut] for cut in cuts)):
            read = phrasing.reading(part)
            if read != phrasing.read and not phrasing.limit:
                wrong.append((phrasing.task, part, phrasing.read, read))
    assert not wrong


def test_the_first_figure_stays_as_measured():
    """A `limit` records the first reading; a rule that reads better removes none and adds none."""
    first = Counter(
        "right" if not one.limit else "unread" if one.limit == "first not read" else "wrong"
        for one in DECIDING
    )
    assert first == {"right": 267, "wrong": 19, "unread": 30}


def test_of_the_others_all_but_one_are_read_rightly_since():
    """Dots behind a label: generation has ended at the first of them."""
    wrong = [one.text for one in DECIDING if one.reading(one.text) != one.read]
    assert wrong == ["positive... wait, no. It's sarcasm, so negative."]
