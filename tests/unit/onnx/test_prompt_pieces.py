"""Each unit of tokens is computed once, and before what needs it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgate.onnx.prompt_blocks import Cuts, Prompt, windows

FREE, COARSE, FIXED = (Cuts(grain=g, length=n) for g, n in ((2, 8), (4, 4096), (4, 4)))


def prompt(tokens, first_read=None, slots=None):
    return Prompt(
        tokens=tokens,
        first_read=len(tokens) if first_read is None else first_read,
        slots=len(tokens) + 3 if slots is None else slots,
    )


@st.composite
def trees(draw):
    """Prompts that share beginnings of any length, some of them equal, some with options read."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    rows = [[rng.randrange(3) for _ in range(rng.randint(1, 30))]]
    for _ in range(draw(st.integers(0, 12))):
        stem = rng.choice(rows)
        kept = stem[: rng.randint(0, len(stem))]
        rows.append([*kept, *(rng.randrange(3) for _ in range(rng.randint(0, 20)))] or [1])
    read = [len(row) if draw(st.booleans()) else rng.randint(1, len(row)) for row in rows]
    spare = rng.randint(0, 5)
    return [prompt(row, first, len(row) + spare) for row, first in zip(rows, read, strict=True)]


def ran(prompts, cuts, most_units, least_prompts, rows=3):
    """Run a plan on tokens instead of a model; return the units computed to be kept."""
    kept, computed, done = {}, [], []
    plan = windows(prompts, cuts, most_units=most_units, least_prompts=least_prompts)
    for window in plan:
        assert len(window.paths) <= least_prompts or window.units <= most_units
        kept = {place: kept[unit] for place, unit in enumerate(window.carried)}
        for batch in window.batches(rows, 2):
            assert len(batch) <= (2 if batch[0].is_last else rows)
            assert len({(one.start, one.width, one.is_last) for one in batch}) == 1
            for piece in batch:
                one, path = prompts[piece.place], window.paths[piece.place]
                first = piece.start // cuts.grain
                past = [kept[unit] for unit in path[:first]]
                assert sum(past, ()) == tuple(one.tokens[: piece.start])
                assert piece.end - piece.start <= piece.width
            for piece in batch:
                one, path = prompts[piece.place], window.paths[piece.place]
                own = path[piece.start // cuts.grain : piece.end // cuts.grain]
                for place, unit in enumerate(own):
                    assert unit not in kept
                    begin = piece.start + place * cuts.grain
                    kept[unit] = tuple(one.tokens[begin : begin + cuts.grain])
                    computed.append(tuple(one.tokens[: begin + cuts.grain]))
                if piece.is_last:
                    assert piece.start < one.first_read
                    assert (piece.end, piece.start + piece.width) == (len(one.tokens), one.slots)
                    done.append(piece.place)
        assert sorted(kept) == list(range(window.units))
    assert sorted(done) == list(range(len(prompts)))
    return computed


@settings(max_examples=300, deadline=None)
@given(trees(), st.sampled_from([FREE, COARSE, FIXED]), st.sampled_from([0, 5, 10**6]))
def test_pieces_have_what_they_need_and_units_are_computed_once(prompts, cuts, most_units):
    computed = ran(prompts, cuts, most_units, least_prompts=2)
    alike = all(one.first_read == len(one.tokens) for one in prompts)
    assert not alike or len(computed) == len(set(computed))


@settings(max_examples=100, deadline=None)
@given(trees(), st.randoms())
def test_cuts_of_blocks_depend_on_no_other_prompt(prompts, rng):
    def pieces(chosen):
        found = {}
        for window in windows(chosen, FIXED, most_units=7, least_prompts=2):
            for one in window.pieces:
                key = (tuple(chosen[one.place].tokens), one.start, one.is_last)
                found.setdefault(key, set()).add((one.width, one.end))
        return found

    everything = pieces(prompts)
    part = rng.sample(prompts, rng.randint(1, len(prompts)))
    for (tokens, start, is_last), widths in pieces(part).items():
        assert not is_last or widths <= everything[tokens, start, is_last]
        assert is_last or {(4, start + 4)} == widths


@pytest.mark.parametrize(
    ("length", "slots", "begins"), [(17, 20, 16), (17, 17, 14), (2, 2, 0), (1, 1, 0)]
)
def test_a_last_piece_is_wider_than_one_token_where_its_prompt_is(length, slots, begins):
    rows = [prompt([1] * length, slots=slots) for _ in range(2)]
    [window] = windows(rows, FREE, most_units=99, least_prompts=1)
    last = [one for one in window.pieces if one.is_last]
    assert max(one.start for one in last) == begins
    assert all(one.width > 1 or length == 1 for one in last)


def test_a_prompt_is_cut_where_it_parts_from_the_one_before():
    rows = [prompt([0] * 11), prompt([0] * 7 + [1] * 5), prompt([0] * 7 + [1] * 4 + [2])]
    [window] = windows(rows, FREE, most_units=99, least_prompts=1)
    cuts = sorted((one.place, one.start, one.end) for one in window.pieces)
    assert cuts == [(0, 0, 8), (0, 8, 11), (1, 6, 8), (1, 8, 12), (2, 10, 12)]
