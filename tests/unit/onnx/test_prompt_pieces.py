"""Each block of tokens is computed once, and before what needs it."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairgate.onnx import prompt_blocks
from fairgate.onnx.prompt_blocks import windows

SIZE, SPARE = 4, 3


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch):
    monkeypatch.setattr(prompt_blocks, "BLOCK", SIZE)


@st.composite
def trees(draw):
    """Prompts that share beginnings of any length, some of them equal, some with options read."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    rows = [[rng.randrange(3) for _ in range(rng.randint(1, 30))]]
    for _ in range(draw(st.integers(0, 12))):
        stem = rng.choice(rows)
        kept = stem[: rng.randint(0, len(stem))]
        rows.append([*kept, *(rng.randrange(3) for _ in range(rng.randint(0, 20)))] or [1])
    return [(row, len(row) if draw(st.booleans()) else rng.randint(1, len(row))) for row in rows]


def planned(rows, most_blocks, least_prompts):
    plan = {"most_blocks": most_blocks, "least_prompts": least_prompts}
    return windows(rows, lambda _, rest: rest + SPARE, **plan)


def computed_of(rows, most_blocks, least_prompts):
    """Run a plan on tokens instead of a model; return the blocks computed to be kept."""
    kept, computed, done = {}, [], []
    for window in planned(rows, most_blocks, least_prompts):
        assert len(window.paths) <= least_prompts or window.blocks <= most_blocks
        kept = {place: kept[block] for place, block in enumerate(window.carried)}
        for batch in window.batches(2):
            assert len(batch) <= (2 if batch[0].is_rest else 4)
            assert len({(one.start, one.width, one.is_rest) for one in batch}) == 1
            for piece in batch:
                tokens, first_read = rows[piece.place]
                before = [kept[one] for one in window.paths[piece.place][: piece.start // SIZE]]
                assert sum(before, ()) == tuple(tokens[: piece.start])
                if piece.is_rest:
                    assert piece.start < first_read
                    assert (piece.end, piece.width) == (
                        len(tokens),
                        piece.end - piece.start + SPARE,
                    )
                    done.append(piece.place)
                else:
                    block = window.paths[piece.place][piece.start // SIZE]
                    assert block not in kept
                    kept[block] = tuple(tokens[piece.start : piece.end])
                    computed.append(tuple(tokens[: piece.end]))
        assert sorted(kept) == list(range(window.blocks))
    assert sorted(done) == list(range(len(rows)))
    return computed


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees(), st.sampled_from([0, 5, 10**6]))
def test_pieces_have_what_they_need_and_blocks_are_computed_once(rows, most_blocks):
    computed = computed_of(rows, most_blocks, least_prompts=2)
    alike = all(first_read == len(tokens) for tokens, first_read in rows)
    assert not alike or len(computed) == len(set(computed))


def test_a_prompt_is_read_from_the_block_on_in_which_it_parts_from_the_one_before():
    rows = [([0] * 11, 11), ([0] * 7 + [1] * 5, 12), ([0] * 9 + [2], 10)]
    [window] = planned(rows, 99, 1)
    cuts = sorted((one.place, one.start, one.end) for one in window.pieces)
    assert cuts == [(0, 0, 4), (0, 4, 8), (0, 8, 11), (1, 4, 8), (1, 8, 12), (2, 8, 10)]
