"""What is looked for before a slow pattern never keeps that pattern from matching.

Every look is compared with the pattern alone, on all labelled answers, their halves, and answers
that are made of several of them.
"""

import random
import re
from collections.abc import Iterator

import pytest
from fakes.answer_phrasings import DECIDING, PHRASINGS

from fairgate.policy.definition_files import unknown_wordings
from fairgate.relations.oracles import (
    mentions,
    negation,
    phrases,
    reading_patterns,
    statements,
    text,
    wrappers,
)
from fairgate.relations.oracles.choice import choice_stop
from fairgate.relations.oracles.phrases import readable_part

_JOINTS = (" ", "\n", ". ", ", ", "; ", " - ", "... ", "! ")


def _answers() -> Iterator[str]:
    plain = [phrasing.text for phrasing in (*PHRASINGS, *DECIDING)]
    yield from plain
    yield from (answer[: len(answer) // 2] for answer in plain)
    rng = random.Random(7)
    for _ in range(1500):
        yield rng.choice(_JOINTS).join(rng.sample(plain, rng.randint(2, 5)))


ANSWERS = list(_answers())
FOLDED = [readable_part(answer) for answer in ANSWERS]


def _places(pattern: re.Pattern[str], plain: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(plain)]


@pytest.mark.parametrize("name", ["UNKNOWN_SAID", "UNKNOWN_STRONG"])
def test_words_for_unknown_begin_with_the_letters_that_are_looked_for(name: str) -> None:
    pattern = getattr(reading_patterns, name)
    assert pattern.pattern.count(reading_patterns.UNKNOWN_BEGINS) == 1
    slow = re.compile(pattern.pattern.replace(reading_patterns.UNKNOWN_BEGINS, r"(?=\w)"))
    wrong = [plain for plain in FOLDED if _places(pattern, plain) != _places(slow, plain)]
    assert not wrong


@pytest.mark.parametrize("name", ["UNKNOWN_BEHIND", "UNKNOWN_WHOLE"])
def test_words_for_unknown_stand_behind_what_the_search_looks_for(name: str) -> None:
    pattern = getattr(reading_patterns, name)
    plain_ones = [p for p in FOLDED if p.isascii() and ("n't" not in p or "BEHIND" in name)]
    places = {plain: _places(reading_patterns.UNKNOWN_SAID, plain) for plain in plain_ones}
    assert sum(map(bool, places.values())) > 100
    wrong = [
        plain
        for plain, spans in places.items()
        if [start for start, _ in _places(pattern, f" {plain}")] != [start for start, _ in spans]
    ]
    assert not wrong


class _Anything:
    """Holds whatever is looked for."""

    def __contains__(self, sign: str) -> bool:
        return True


def test_no_look_changes_what_an_answer_says(monkeypatch: pytest.MonkeyPatch) -> None:
    stops = [(p.stop, p.text) for p in (*PHRASINGS, *DECIDING) if p.stop is not None]
    chooses = choice_stop(("The grandfather", "The grandson", "Unknown"), unknown_wordings())
    pairs = [*stops, *((chooses, answer) for answer in ANSWERS[len(stops) :])]

    def outcomes() -> list[statements.Statement]:
        for cached in (mentions.said_part, statements.outcome):
            cached.cache_clear()
        readings = []
        for stop, answer in pairs:
            own, _ = phrases.said_part(readable_part(answer), stop.phrases)
            readings.append(statements.outcome(own, stop, is_open=False))
        return readings

    quick = outcomes()
    monkeypatch.setattr(phrases, "_APART", frozenset())
    monkeypatch.setattr(mentions, "_QUOTING", re.compile(""))
    monkeypatch.setattr(negation, "_may_deny", lambda _context, unspaced: True)
    monkeypatch.setattr(negation, "_EXCHANGE_ENDS", "")
    monkeypatch.setattr(statements, "_TAKING_BACK", _Anything())
    monkeypatch.setattr(statements, "_AFFIRMING", _Anything())
    monkeypatch.setattr(
        statements._Unknown,
        "within",
        lambda unknown, start, end: reading_patterns.UNKNOWN_SAID.search(unknown._own, start, end),
    )
    slow = outcomes()
    assert [pair for pair, a, b in zip(pairs, quick, slow, strict=True) if a != b] == []


def test_sentences_end_where_the_plain_pattern_says() -> None:
    slow = re.compile(r"[!?]+|(?<!\.)\.++(?=[\"'”’»)\]]*\s)|[。｡]|\n")
    wrong = [
        plain
        for plain in FOLDED
        if _places(reading_patterns.SENTENCE_END, plain) != _places(slow, plain)
    ]
    assert not wrong


@pytest.mark.parametrize("name", ["LETTER_CUED", "LETTER_JUDGED", "LETTER_FITS", "LETTER_STATED"])
def test_every_letter_that_counts_is_one_that_is_looked_for(name: str) -> None:
    pattern = getattr(reading_patterns, name)
    alone = reading_patterns.LETTER_ALONE
    letters = [(p, m.start(m.lastindex or 1)) for p in FOLDED for m in pattern.finditer(p)]
    assert letters
    assert not [plain[at - 40 : at + 20] for plain, at in letters if not alone.match(plain, at)]
    fitting = reading_patterns.LETTERS_THAT_FIT
    if name == "LETTER_FITS":
        plain_ones = [p for p, _ in letters if p.isascii()]
        assert all(any(word in plain for word in fitting) for plain in plain_ones)


def test_a_sentence_before_the_label_denies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [
        (plain, match.start())
        for plain in FOLDED
        for match in re.finditer(r"(?<![^\W_])(?:positive|neutral|toxic|yes|no|the \w+)", plain)
    ]

    def denials() -> list[tuple[negation.Negation, str]]:
        return [
            (negation.negation_before(plain, at, unspaced=unspaced), plain)
            for plain, at in places
            for unspaced in (False, True)
        ]

    quick = denials()
    monkeypatch.setattr(negation, "_sentence_begin", lambda _text, begin, _start: begin)
    assert quick == denials()
    assert len({denial for denial, _ in quick}) == len(negation.Negation)


def test_only_what_may_be_a_wrapper_is_looked_at_as_an_unfinished_one() -> None:
    texts = [plain[:length] for plain in FOLDED for length in {len(plain), len(plain) * 2 // 3}]
    unfinished = wrappers._UNFINISHED
    wrong = [
        plain
        for plain in texts
        if wrappers.may_be_unfinished(plain) < (unfinished.search(plain[-130:]) is not None)
    ]
    assert not wrong


def test_folded_text_holds_no_space_that_would_be_replaced() -> None:
    texts = [*ANSWERS, "a\u00a0b", " a", "a ", "a\x1cb", "a\u2003b", "a  b", "a\n b", ""]
    assert not [answer for answer in texts if re.search(r"\s{2,}|[^\S \n]", text.fold(answer))]


def test_what_something_is_said_instead_of_ends_in_a_word_that_is_looked_for() -> None:
    before = (
        "rather than|instead of|far from|free from|anything but|all but|other than|au lieu de|"
        "statt|anstatt|en lugar de|en vez de|invece di|em vez de|in plaats van"
    )
    fillers = ("", " being", " a", " an", " the", " just", " only", " simply", " clearly")
    texts = [f"it is {words}{word}{sign}" for words in before.split("|") for word in fillers
             for sign in (" ", ' "', " **(", "\n")]  # fmt: skip
    assert not [plain for plain in texts if not negation.exchanged_before(plain, len(plain))]
