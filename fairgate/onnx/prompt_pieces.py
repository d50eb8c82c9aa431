"""In which pieces prompts are read, so that what they have in common is read once.

In the order of their tokens prompts that begin alike stand side by side: what a prompt has in
common with any before it, it has in common with the last one. A prompt is cut there, at a multiple
of `grain` tokens, and at multiples of `length`, so that pieces of many prompts have the same place
and width and run together. The tree of prefixes is RadixAttention's: Zheng et al., SGLang:
Efficient Execution of Structured Language Model Programs, NeurIPS 2024, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is read: tokens, and how many slots they take in the cache."""

    tokens: list[int]
    first_read: int
    """Logits are read after so many tokens and after each further one; 1 or more."""
    slots: int
    """Tokens and padding; a function of tokens and `first_read` alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Where prompts may be cut, and where they are."""

    grain: int
    """Tokens: a cut is at a multiple, and keys and values are kept in units of so many."""
    length: int
    """Tokens, a multiple of `grain`: a piece ends at the next multiple or with its prompt."""

    @property
    def are_fixed(self) -> bool:
        """Whether a prompt's cuts are the same whatever other prompts there are."""
        return self.grain == self.length

    def last(self, prompt: Prompt) -> int:
        """Return the last place where a prompt may be cut: logits are read behind it."""
        if self.are_fixed:
            return (prompt.first_read - 1) // self.grain * self.grain
        # Of one token by itself attention would take kernels of another order of sums.
        furthest = max(0, min(prompt.first_read - 1, prompt.slots - 2))
        return furthest // self.grain * self.grain


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens `start` to `end` of a prompt, which run at once."""

    place: int
    """Of the prompt among those that are read."""
    start: int
    end: int
    width: int
    """With padding, which only the last piece of a prompt has."""
    is_last: bool


@dataclass(slots=True, kw_only=True)
class Window:
    """Prompts whose keys and values are kept at the same time."""

    carried: list[int]
    """Units of the window before it, which are the first units of this one."""
    units: int
    paths: dict[int, list[int]] = field(default_factory=dict)
    """By prompt: the units of its tokens from the first on, as far as they are kept."""
    pieces: list[Piece] = field(default_factory=list)

    def new_units(self, number: int) -> range:
        """Return so many units that nothing is kept in."""
        self.units += max(0, number)
        return range(self.units - max(0, number), self.units)

    def batches(self, rows: int, last_rows: int) -> Iterator[list[Piece]]:
        """Yield pieces that run together, after those whose keys and values they need.

        At most `last_rows` last pieces run together, and `rows` others.
        """
        alike: dict[tuple[int, int, bool], list[Piece]] = {}
        for piece in self.pieces:
            alike.setdefault((piece.start, piece.width, piece.is_last), []).append(piece)
        for (_, _, is_last), pieces in sorted(alike.items()):
            most = last_rows if is_last else rows
            for start in range(0, len(pieces), most):
                yield pieces[start : start + most]


def windows(
    prompts: Sequence[Prompt], cuts: Cuts, *, most_units: int, least_prompts: int
) -> Iterator[Window]:
    """Yield what is read one after the other, so that each unit of tokens is computed once.

    A window has at most `most_units` units, or `least_prompts` prompts.
    """
    window = Window(carried=[], units=0)
    path: list[int] = []
    before: Sequence[int] = ()
    for place in sorted(range(len(prompts)), key=lambda place: prompts[place].tokens):
        prompt, last = prompts[place], cuts.last(prompts[place])
        shared = min(_common(before, prompt.tokens), last) // cuts.grain
        if cuts.are_fixed:
            shared = min(shared, len(path))
        path += window.new_units(shared - len(path))  # in the last piece of the prompt before
        path = path[:shared]
        further = len(prompt.tokens) // cuts.grain - shared  # with what the next one may share
        if window.units + further > most_units and len(window.paths) >= least_prompts:
            yield window
            window = Window(carried=path, units=shared)
            path = list(range(shared))
        path += window.new_units(_cut(window, place, prompt, shared * cuts.grain, cuts))
        window.paths[place] = path
        before = prompt.tokens
    if window.paths:
        yield window


def _cut(window: Window, place: int, prompt: Prompt, start: int, cuts: Cuts) -> int:
    """Cut a prompt's tokens from `start` on; return how many units stand before its last piece."""
    next_cut = start - start % cuts.length + cuts.length
    ends: list[int] = [start, *range(next_cut, cuts.last(prompt) + 1, cuts.length)]
    for begin, end in pairwise(ends):
        window.pieces.append(
            Piece(place=place, start=begin, end=end, width=end - begin, is_last=False)
        )
    window.pieces.append(
        Piece(
            place=place,
            start=ends[-1],
            end=len(prompt.tokens),
            width=prompt.slots - ends[-1],
            is_last=True,
        )
    )
    return (ends[-1] - start) // cuts.grain


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))
