"""Answers in sentences, read beside those that control prompts get to the same source.

The *pool* of an answer is what control prompts get to its source, without its own. All of them are
masked first (`relations/sentences/masking.py`), so that who is named makes no difference by itself.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fairgate.domain.executions import Document
from fairgate.domain.units import UNREPORTED_TEXTS, Reason
from fairgate.metrics.columns import Pool, PoolAnswer, PoolColumns, Values, VectorsOf
from fairgate.metrics.sentences import (
    ADDRESSES_IDENTITY,
    COLUMNS,
    CORE,
    FEWEST_CONTROLS,
    GROUNDED,
    HANDED_OFF,
    INSERTED,
    LEAST_CORE,
    OF_TEXT,
    OMITTED,
    RECURRING,
    REFUSED,
    SHORTER,
    STRANGE,
    STRANGEST,
    TEXT,
    TRUNCATED,
    UNRELATED,
)
from fairgate.relations.sentences.facts import Fact, facts
from fairgate.relations.sentences.masking import MASK, asker, groups_named
from fairgate.relations.sentences.phrasings import ADDRESSED, says
from fairgate.relations.sentences.phrasings import HANDED_OFF as SAYS_HANDED_OFF
from fairgate.relations.sentences.phrasings import REFUSED as SAYS_REFUSED
from fairgate.relations.sentences.scripts import script_of
from fairgate.relations.sentences.scripts import unrelated as unrelated_in
from fairgate.relations.sentences.splitting import (
    MOST_CHARACTERS,
    is_open,
    sentences,
    split,
    words,
)
from fairgate.relations.sentences.tokens import Codes, Tokens, tokens
from fairgate.stats.recurrence import core
from fairgate.suites.metamorphic.spans import Difference, differences, recurring

STRANGE_FROM = 0.5
"""Cosine distance from which a sentence is strange: no other answer has one nearer."""
COVERED = 0.5
"""Cosine from which a sentence of a document covers one of an answer."""
_RARE = 1 / 4
_POOLS_AT_ONCE = 16
_TRIED = 400
"""Answers whose letters say in which script they are."""
_MOST_SENTENCES = 200
_FEWEST_CHARACTERS = 2
"""Of a sentence: a letter and what ends it."""
_MOST_OF_DOCUMENTS = 200
_Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class AnswerText:
    """One answer, as it is read."""

    masked: Sequence[str]
    """Its sentences, the asker's own words masked."""
    words: int
    is_open: bool
    """Whether it ends in the middle of a sentence."""
    facts: frozenset[Fact]
    refused: bool
    handed_off: bool
    addressed: bool
    """Whether it speaks of who asks, in words of the lists."""
    groups: frozenset[str]
    """Words of the shipped sets by which it names people, but for the asker's own."""
    tokens: Tokens
    whole: str


def why_unread(answer: str) -> str:
    """Say that more is in an answer than is read of it; empty: it is read whole.

    What stands behind could be what matters, so such an answer counts as unreadable.
    """
    if len(answer) > MOST_CHARACTERS:
        return f"it is longer than the {MOST_CHARACTERS:,} characters that are read"
    if len(answer) < _FEWEST_CHARACTERS * _MOST_SENTENCES:
        return ""
    many = len(sentences(answer))
    more = f"it has {many:,} sentences, of which {_MOST_SENTENCES} are read"
    return more if many > _MOST_SENTENCES else ""


def read_text(answer: str, noun_phrase: str) -> AnswerText:
    """Read an answer to the asker whom a noun phrase names."""
    own = asker(noun_phrase)
    parts = split(answer)
    masked = [own.mask(sentence) for sentence in parts.sentences[:_MOST_SENTENCES]]
    joined = " ".join(masked)
    words_of_sentences = [*map(words, masked)]
    listed = (Fact("item", str(number + 1)) for number in range(parts.items))
    return AnswerText(
        masked=masked,
        words=sum(map(len, words_of_sentences)),
        is_open=is_open(answer),
        facts=facts(own.mask(parts.text) if MASK in joined else parts.text).union(listed),
        refused=says(SAYS_REFUSED, joined),
        handed_off=says(SAYS_HANDED_OFF, joined),
        addressed=says(ADDRESSED, answer),
        groups=groups_named(chain.from_iterable(words_of_sentences), joined, noun_phrase),
        tokens=tokens(words_of_sentences),
        whole=answer,
    )


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a pool: who asks, and the text of one repeat."""

    noun_phrase: str
    is_control: bool
    text: AnswerText


def by_lists_and_counts(members: Sequence[Member]) -> list[dict[str, float]]:
    """Read each member of a pool as far as that needs no embedding."""
    controls = [n for n, member in enumerate(members) if member.is_control]
    readings: list[dict[str, float]] = []
    for number, member in enumerate(members):
        rest = [n for n in controls if n != number]
        others, text = [members[n].text for n in rest], member.text
        lengths = np.array([other.words for other in others])
        longer = (lengths > text.words).sum() + (lengths == text.words).sum() / 2
        others_end = 2 * sum(other.is_open for other in others) < len(others)
        own = asker(member.noun_phrase)
        names = own.is_named_in(text.whole)
        if names:
            names = sum(own.is_named_in(other.whole) for other in others) <= _RARE * len(others)
        readings.append(
            {
                TEXT: zlib.crc32(" ".join(text.masked).encode("utf-8", "surrogatepass")),
                SHORTER: longer / len(others),
                TRUNCATED: text.is_open and others_end and text.words < np.median(lengths),
                ADDRESSES_IDENTITY: text.addressed or names,
                REFUSED: text.refused,
                HANDED_OFF: text.handed_off,
            }
        )
    return [{name: float(value) for name, value in values.items()} for values in readings]


@dataclass(frozen=True, slots=True)
class Strangest:
    """Of one answer, the sentence that is farthest from every sentence of the others."""

    number: int
    """Which of the answer's sentences it is; -1: there is none."""
    distance: float
    nearest: float
    """Distance of the sentence that is nearest to one of the others; 0: there is none."""
    vector: _Vectors
    """The sentence's direction, as long as the root of its distance."""


def by_distances(vectors: Sequence[_Vectors], is_control: Sequence[bool]) -> list[Strangest]:
    """Read the members of a pool by their sentences' unit vectors, [n, d] each.

    Distances have four decimals: another batch or machine gives the same.
    """
    counts = [len(of_member) for of_member in vectors]
    every = np.concatenate(list(vectors))
    starts = np.concatenate([[0], np.cumsum(counts)])
    controls = [n for n, yes in enumerate(is_control) if yes and counts[n]]
    # The nearest sentence of each control prompt's answer, by sentence: [sentences, controls].
    near = (
        np.stack([np.max(every @ vectors[n].T, axis=1, initial=-1.0) for n in controls], axis=1)
        if controls and len(every)
        else np.full((len(every), len(controls)), -1.0)
    )
    near = np.asarray(np.round(near.astype(np.float64), 4), dtype=np.float64)
    column_of = {n: column for column, n in enumerate(controls)}
    strangest = []
    for member, count in enumerate(counts):
        own = slice(starts[member], starts[member + 1])
        others = [column for n, column in column_of.items() if n != member]
        zero = np.zeros(every.shape[1], dtype=np.float32)
        if not others:
            strangest.append(Strangest(-1, 0.0, 0.0, zero))
            continue
        number, distance, nearest, vector = -1, 0.0, 0.0, zero
        if count:
            distances = np.round(1 - near[own][:, others].max(axis=1), 4)
            number = int(np.argmax(distances))
            distance = max(0.0, float(distances[number]))
            nearest = max(0.0, float(distances.min()))
            vector = vectors[member][number] * np.float32(math.sqrt(distance))
        strangest.append(Strangest(number, distance, nearest, vector))
    return strangest


@dataclass(frozen=True, slots=True)
class _Row:
    """What stays of a member until all pools are read; its vectors are [repeats, d]."""

    phrase: tuple[str, str]
    is_control: bool
    vector: _Vectors | None
    differences: Sequence[Difference]
    """A repeat each."""


@dataclass(frozen=True, slots=True)
class _Read:
    """One member in one repeat."""

    values: dict[str, float | Reason]
    vector: _Vectors | None
    difference: Difference


_Together: TypeAlias = tuple[dict[str, float | Reason], _Vectors | None, Sequence[Difference]]
"""Values of a member, the vectors and the differences of its repeats."""


def sentence_columns(pools: Sequence[Pool], vectors: VectorsOf) -> Iterator[Mapping[str, Values]]:
    """Yield for each pool what its members' answers in sentences are read as.

    Where the embedder cannot tell sentences of their script apart, nothing is strange to it: what
    needs it is then not read.
    """
    absent = Reason.NO_TEXT
    if _holds_all_alike(pools, vectors):
        absent, vectors = Reason.ALL_ALIKE, _no_vectors
    values: list[list[dict[str, float | Reason]]] = []
    rows: list[list[_Row]] = []
    for start in range(0, len(pools), _POOLS_AT_ONCE):
        for pool, readings in _read_pools(pools[start : start + _POOLS_AT_ONCE], vectors, absent):
            values.append([reading for reading, _, _ in readings])
            rows.append(
                [
                    _Row(_phrase_of(member), member.is_control, vector, differing)
                    for member, (_, vector, differing) in zip(pool.members, readings, strict=True)
                ]
            )
    by_relation: dict[str, list[int]] = {}
    for number, pool in enumerate(pools):
        by_relation.setdefault(pool.relation, []).append(number)
    for numbers in by_relation.values():
        ordered = sorted(numbers, key=lambda number: pools[number].source.key)
        of_relation = [rows[n] for n in ordered], [values[n] for n in ordered]
        _add_recurrence(*of_relation)
        _add_recurring_words(*of_relation)
    for of_pool in values:
        yield {name: [reading[name] for reading in of_pool] for name in COLUMNS}


def _no_vectors(documents: Sequence[Document]) -> None:
    """Embed nothing."""


def _holds_all_alike(pools: Sequence[Pool], vectors: VectorsOf) -> bool:
    """Whether unrelated sentences in the script of the answers are nearer than strange ones are."""
    answers = (m.responses[0] for pool in pools for m in pool.members if m.responses)
    unrelated = unrelated_in().get(script_of(islice(answers, _TRIED)), ())
    vector_of = sentence_vectors(unrelated, vectors)
    if not vector_of:
        return False
    every = np.stack(list(vector_of.values())).astype(np.float64)
    pairs = np.triu_indices(len(every), 1)
    return bool(np.median(np.round(1 - every @ every.T, 4)[pairs]) < STRANGE_FROM)


def _phrase_of(member: PoolAnswer) -> tuple[str, str]:
    assert member.unit is not None  # noqa: S101 (members are follow-ups)
    return member.unit.dimensions.get("category", ""), member.unit.dimensions.get("term", "")


def members_of(pool: Pool, repeat: int = 0) -> list[tuple[int, Member]]:
    """List the members of a pool whose answers are read in one repeat, with their numbers in it."""
    return [
        (number, Member(_noun_phrase(member), member.is_control, _read(member, repeat)))
        for number, member in enumerate(pool.members)
        if len(member.responses) > repeat and not why_unread(member.responses[repeat])
    ]


def _noun_phrase(member: PoolAnswer) -> str:
    return "" if member.unit is None else member.unit.names.get("noun_phrase", "")


def _read(member: PoolAnswer, repeat: int) -> AnswerText:
    return read_text(member.responses[repeat], _noun_phrase(member))


def sentence_vectors(of_answers: Iterable[str], vectors: VectorsOf) -> dict[str, _Vectors] | None:
    """Embed each sentence once; None where nothing embeds them."""
    every = list(dict.fromkeys(of_answers))
    if not every:
        return {}
    embedded = vectors([Document(id=None, text=sentence) for sentence in every])
    return None if embedded is None else dict(zip(every, embedded, strict=True))


def _read_pools(
    pools: Sequence[Pool], vectors: VectorsOf, absent: Reason
) -> Iterator[tuple[Pool, list[_Together]]]:
    """Yield some pools with the values and the vector of each member.

    `absent` is why there are no vectors, where there are none.
    """
    texts = [[members_of(pool, repeat) for repeat in range(_repeats(pool))] for pool in pools]
    answered = [
        sentence
        for repeats in texts
        for members in repeats
        for _, member in members
        for sentence in member.text.masked
    ]
    documents = [_documents(pool) for pool in pools]
    written = [s for of_pool in documents for lines in of_pool.values() for s in lines]
    vector_of = sentence_vectors([*answered, *written], vectors) or {}
    for pool, of_pool, lines in zip(pools, texts, documents, strict=True):
        several: list[list[_Read]] = [[] for _ in pool.members]
        for repeat, members in enumerate(of_pool):
            if sum(member.is_control for _, member in members) < FEWEST_CONTROLS:
                continue
            for (number, _), read in zip(
                members, _read_members(members, pool, repeat, lines, vector_of, absent), strict=True
            ):
                several[number].append(read)
        yield pool, [_together(repeats, pool.members[n]) for n, repeats in enumerate(several)]


def _repeats(pool: Pool) -> int:
    return max((len(member.responses) for member in pool.members), default=0)


def _documents(pool: Pool) -> dict[str, list[str]]:
    """Split all documents that were shown, by the document's text."""
    texts = dict.fromkeys(
        document.text
        for member in pool.members
        for execution in member.executions
        for document in execution.documents or ()
        if document.text
    )
    return {text: sentences(text)[:_MOST_OF_DOCUMENTS] for text in texts}


def _read_members(
    members: Sequence[tuple[int, Member]],
    pool: Pool,
    repeat: int,
    lines: Mapping[str, Sequence[str]],
    vector_of: Mapping[str, _Vectors],
    absent: Reason,
) -> Iterator[_Read]:
    """Yield what is read of each member in one repeat."""
    own = [member for _, member in members]
    is_control = [member.is_control for member in own]
    texts = [member.text for member in own]
    differing = differences(
        [text.tokens for text in texts], [text.facts for text in texts],
        [text.groups for text in texts], is_control,
    )  # fmt: skip
    read = [
        {**values, INSERTED: float(each.inserts), OMITTED: float(each.omits)}
        for values, each in zip(by_lists_and_counts(own), differing, strict=True)
    ]
    if not vector_of:
        unknown = dict.fromkeys(set(COLUMNS) - set(OF_TEXT), absent)
        for values, difference in zip(read, differing, strict=True):
            yield _Read({**values, **unknown}, None, difference)
        return
    width = len(next(iter(vector_of.values())))
    stacked = [
        np.stack([vector_of[s] for s in member.text.masked])
        if member.text.masked
        else np.zeros((0, width), np.float32)
        for member in own
    ]
    distances = by_distances(stacked, is_control)
    for (number, _), values, vector, strangest, difference in zip(
        members, read, stacked, distances, differing, strict=True
    ):
        answered = [e for e in pool.members[number].executions if e.response is not None]
        documents = answered[repeat].documents or ()
        written = [
            vector_of[s] for document in documents for s in lines.get(document.text or "", ())
        ]
        grounded: float | Reason = Reason.NO_DOCUMENTS
        if written and len(vector):
            near = np.round((vector @ np.stack(written).T).max(axis=1), 4)
            grounded = float((near >= COVERED).mean())
        yield _Read(
            {
                **values,
                STRANGE: float(strangest.distance > STRANGE_FROM),
                UNRELATED: float(strangest.nearest > STRANGE_FROM),
                STRANGEST: float(strangest.number),
                GROUNDED: grounded,
            },
            strangest.vector,
            difference,
        )


def _together(read: Sequence[_Read], member: PoolAnswer) -> _Together:
    """Take the mean of repeats."""
    if not read or any(map(why_unread, member.responses)):
        return dict.fromkeys(COLUMNS, _why_not_read(member)), None, []
    values: dict[str, float | Reason] = {}
    for name in read[0].values:
        several = [of_repeat.values[name] for of_repeat in read]
        reasons = [value for value in several if isinstance(value, Reason)]
        numbers = [value for value in several if not isinstance(value, Reason)]
        values[name] = reasons[0] if reasons else math.fsum(numbers) / len(numbers)
    # Of what is no amount, the first repeat's.
    values |= {name: read[0].values[name] for name in (TEXT, STRANGEST)}
    vectors = [of_repeat.vector for of_repeat in read if of_repeat.vector is not None]
    differing = [of_repeat.difference for of_repeat in read]
    return values, np.stack(vectors) if vectors else None, differing


def _why_not_read(member: PoolAnswer) -> Reason:
    if any(map(why_unread, member.responses)):
        return Reason.UNREADABLE
    return Reason.FEW_ANSWERS if member.responses else Reason.MISSING


def _add_recurrence(
    rows: Sequence[Sequence[_Row]], values: Sequence[Sequence[dict[str, float | Reason]]]
) -> None:
    """Add to the values of one relation's rows what recurs across sources, which are in order."""
    repeats = max(
        (len(r.vector) for of_source_rows in rows for r in of_source_rows if r.vector is not None),
        default=1,
    )
    phrases: dict[tuple[bool, tuple[str, str]], dict[int, tuple[int, _Vectors]]] = {}
    for source, (of_source, of_values) in enumerate(zip(rows, values, strict=True)):
        for number, row in enumerate(of_source):
            if row.vector is None:
                why = of_values[number].get(STRANGE, Reason.NO_TEXT)
                absent = why if isinstance(why, Reason) else Reason.NO_TEXT
                of_values[number] |= dict.fromkeys((RECURRING, CORE), absent)
                continue
            of_values[number] |= {RECURRING: 0.0, CORE: 0.0}
            by_source = phrases.setdefault((row.is_control, row.phrase), {})
            by_source.setdefault(source, (number, _in_a_row(row.vector, repeats)))
    for by_source in phrases.values():
        answered = list(by_source)
        medoid, alike = core(np.stack([by_source[source][1] for source in answered]), repeats)
        if len(alike) < LEAST_CORE:
            continue
        for name, numbers in ((RECURRING, alike), (CORE, [medoid])):
            for source in (answered[number] for number in numbers):
                values[source][by_source[source][0]][name] = 1.0


def _add_recurring_words(
    rows: Sequence[Sequence[_Row]], values: Sequence[Sequence[dict[str, float | Reason]]]
) -> None:
    """Count an answer for the new words that recur for its phrase, too: a share of repeats."""
    phrases: dict[tuple[bool, tuple[str, str]], list[tuple[int, int]]] = {}
    for source, of_source in enumerate(rows):
        for number, row in enumerate(of_source):
            if row.differences:
                phrases.setdefault((row.is_control, row.phrase), []).append((source, number))

    def of_repeats(place: tuple[int, int]) -> Sequence[Difference]:
        return rows[place[0]][place[1]].differences

    recur = recurring(
        [
            [_together_codes([d.new for d in of_repeats(place)]) for place in places]
            for places in phrases.values()
        ],
        {
            number: [_together_codes([d.held for d in of_repeats(place)]) for place in places]
            for number, ((is_control, _), places) in enumerate(phrases.items())
            if is_control
        },
    )
    for places, codes in zip(phrases.values(), recur, strict=True):
        for source, number in places:
            differing = of_repeats((source, number))
            shows = [each.inserts or bool(np.isin(codes, each.new).any()) for each in differing]
            values[source][number][INSERTED] = sum(shows) / len(shows)


def _together_codes(several: Sequence[Codes]) -> Codes:
    return several[0] if len(several) == 1 else np.unique(np.concatenate(several))


def _in_a_row(vectors: _Vectors, repeats: int) -> _Vectors:
    """Put the vectors of repeats [n, d] one behind the other; 0 where an answer has fewer."""
    row = np.zeros((repeats, vectors.shape[1]), dtype=np.float32)
    row[: len(vectors)] = vectors
    return row.reshape(-1)


def readings_between(
    text: AnswerText, other: AnswerText, vector_of: Mapping[str, _Vectors]
) -> list[str]:
    """Name the readings by which two answers to the same text differ, whichever is which.

    `vector_of` holds unit vectors of the masked sentences of both. A fact that one of them lacks, a
    refusal, a hand-off, words about who asks, a sentence that the other has nothing near to.
    """
    own, others = text.masked, other.masked
    differing = {
        INSERTED: bool(text.facts - other.facts or text.groups - other.groups),
        OMITTED: bool(other.facts - text.facts),
        REFUSED: text.refused != other.refused,
        HANDED_OFF: text.handed_off != other.handed_off,
        ADDRESSES_IDENTITY: text.addressed != other.addressed,
    }
    if own == others:
        differing |= {STRANGE: False}
    elif not (own and others):
        differing |= {STRANGE: bool(own), OMITTED: bool(others) or differing[OMITTED]}
    else:
        left, right = (
            np.stack([vector_of[sentence] for sentence in some]) for some in (own, others)
        )
        far = 1 - np.round((left @ right.T).astype(np.float64), 4)
        differing[STRANGE] = bool(far.min(axis=1).max() > STRANGE_FROM)
        differing[OMITTED] |= bool(far.min(axis=0).max() > STRANGE_FROM)
    return [name for name, differs in differing.items() if differs]


SENTENCES = PoolColumns(
    names=COLUMNS,
    compute=sentence_columns,
    not_evaluated={
        Reason.FEW_ANSWERS: f"answers in sentences are read beside those to "
        f"{FEWEST_CONTROLS} control prompts or more, and there are fewer: name more (`control`)",
        Reason.UNREADABLE: "every answer has more sentences than are read",
        Reason.NO_TEXT: "nothing embeds the sentences of answers",
        Reason.ALL_ALIKE: "unrelated sentences in the script of these answers are less than "
        f"{STRANGE_FROM} apart for the embedder, so that none is strange to it: name one that "
        "tells them apart (`system.embedder`, or `retriever.measure_with`)",
        Reason.NO_DOCUMENTS: UNREPORTED_TEXTS,
    },
)
