"""Edits of words that the catalogue of attributes does not know: one run of few words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairgate.relations.edit_kinds import EditKind
from fairgate.relations.mentions import Item, Mention

FUNCTION_WORDS = frozenset(
    """a an the who and or of to in on at for with by from as is are was were be been has have had
    do does did not will would can may i you he she it we they my your his her its our their this
    that what how why when where there here""".split()  # noqa: SIM905 (reads better so)
)
LONGEST = 3
"""Most words of an attribute that the catalogue does not know."""


def unknown_attribute_faults(
    kind: EditKind, one: Sequence[Item], other: Sequence[Item]
) -> Iterator[str]:
    """Yield why two texts with the same known attributes are not one edit of an unknown one."""
    before, after = _words(one), _words(other)
    head = common_beginning(before, after)
    tail = common_beginning(before[head:][::-1], after[head:][::-1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if kind is EditKind.PERMUTE:
        yield from _permutation_faults(old, new)
        return
    allowed = {
        EditKind.REMOVE_ONE: bool(old) and not new,
        EditKind.SUBSTITUTE_ONE: bool(old) and bool(new),
        EditKind.NEGATE_ONE: bool(old)
        and [word.removeprefix("non-") for word in new if word != "not"] == old,
    }
    plain = [word.lower() for word in (*old, *new)]
    if not allowed.get(kind, False) or max(len(old), len(new)) > LONGEST:
        yield "no attribute of the source is edited"
    elif not all(word[:1].isalnum() for word in plain) or FUNCTION_WORDS & set(plain) - {"not"}:
        yield "words are edited that are no attribute"


def _permutation_faults(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    before, after = ([word.lower() for word in run if word != ","] for run in (old, new))
    if sorted(before) != sorted(after) or before == after:
        yield "the words are not the same in another order"
    if len(before) > 2 * LONGEST or FUNCTION_WORDS & set(before):
        yield "more than attributes change their places"


def _words(items: Sequence[Item]) -> list[str]:
    """Return all words, those of mentions included, without articles, which agree."""
    row: list[str] = []
    for item in items:
        row += item.words.split() if isinstance(item, Mention) else [item.text]
    return [word for word in row if word.lower() not in {"a", "an"}]


def common_beginning(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two rows have in common from their beginning, whatever the case."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a.lower() != b.lower():
            break
        length += 1
    return length
