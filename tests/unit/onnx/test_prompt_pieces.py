"""Each unit of tokens is computed once, and before what needs it."""

import random

import numpy as np
import pytest
from fakes.decoders import DEMO, BitsDecoder, session_of
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.executions import Decoding
from fairgate.onnx import decoder_session
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.prompt_blocks import CUTS, Cuts, windows

FREE, COARSE = Cuts(2, 8), Cuts(4, 4096)


def plan_of(rows, cuts, most_units=99, least_prompts=1):
    return windows(rows, cuts=cuts, most_units=most_units, least_prompts=least_prompts)


@st.composite
def trees(draw):
    """Prompts that share beginnings of any length, some of them equal, some with options read."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    rows = [[rng.randrange(3) for _ in range(rng.randint(1, 80))]]
    for _ in range(draw(st.integers(0, 12))):
        stem = rng.choice(rows)
        kept = stem[: rng.randint(0, len(stem))]
        rows.append([*kept, *(rng.randrange(3) for _ in range(rng.randint(0, 40)))] or [1])
    return [(row, len(row) if draw(st.booleans()) else rng.randint(1, len(row))) for row in rows]


@given(trees(), st.sampled_from([FREE, COARSE, CUTS]), st.sampled_from([0, 5, 10**6]))
def test_pieces_have_what_they_need_and_units_are_computed_once(rows, cuts, most_units):
    kept, computed, done, unit = {}, [], [], cuts.unit
    for window in plan_of(rows, cuts, most_units, least_prompts=2):
        assert len(window.paths) <= 2 or window.units <= most_units
        kept = {place: kept[old] for place, old in enumerate(window.carried)}
        for batch in window.batches(2):
            assert len(batch) <= (2 if batch[0].is_rest else 4)
            assert len({(one.start, one.width, one.is_rest) for one in batch}) == 1
            for piece in batch:  # all run before any of them is kept
                tokens, path = rows[piece.row][0], window.paths[piece.row]
                past = [kept[each] for each in path[: piece.start // unit]]
                assert sum(past, ()) == tuple(tokens[: piece.start])
            for piece in batch:
                (tokens, first_read), path = rows[piece.row], window.paths[piece.row]
                own = path[piece.start // unit : piece.end // unit]
                for place, each in enumerate(own):
                    assert each not in kept
                    begin = piece.start + place * unit
                    kept[each] = tuple(tokens[begin : begin + unit])
                    computed.append(tuple(tokens[: begin + unit]))
                if piece.is_rest:
                    assert piece.start < first_read
                    assert piece.end == len(tokens)
                    assert piece.width >= piece.end - piece.start >= min(2, len(tokens))
                    done.append(piece.row)
        assert sorted(kept) == list(range(window.units))
    assert sorted(done) == list(range(len(rows)))
    if all(first_read == len(tokens) for tokens, first_read in rows):
        assert len(computed) == len(set(computed))


def test_a_prompt_is_cut_where_it_parts_from_the_one_before():
    rows = [[0] * 11, [0] * 7 + [1] * 5, [0] * 7 + [1] * 4 + [2]]
    [window] = plan_of([(row, len(row)) for row in rows], FREE)
    cuts = sorted((one.row, one.start, one.end) for one in window.pieces)
    assert cuts == [(0, 0, 8), (0, 8, 11), (1, 6, 8), (1, 8, 12), (2, 10, 12)]


@pytest.mark.parametrize(("width", "spoiled"), [(32, "keys"), (56, "keys"), (56, "logits")])
def test_a_graph_whose_bits_depend_on_the_pieces_shares_nothing(width, spoiled, monkeypatch):
    run = DecoderSession._run

    def wrong(self, ids, positions, cache, wanted):
        logits, values = run(self, ids, positions, cache, wanted)
        if ids.shape[1] == width and spoiled == "logits":
            logits = logits * np.float32(1 + 2e-7)
        elif ids.shape[1] == width:
            array = values[0].numpy() * np.float32(1 + 2e-7)
            values[0] = type(values[0]).ortvalue_from_numpy(array)
        return logits, values

    assert session_of().shares
    monkeypatch.setattr(DecoderSession, "_run", wrong)
    assert (session_of().joins, session_of().shares) == (True, False)


def test_a_graph_whose_lone_rows_have_other_bits_reads_them_beside_their_copy(monkeypatch):
    run, sizes = DecoderSession._run, []
    prompts = [[7, *range(3, 60), 5], [9]]
    expected = BitsDecoder(DEMO, 2, threads=1).bits_of(prompts)

    def wrong(self, ids, positions, cache, wanted):
        logits, values = run(self, ids, positions, cache, wanted)
        sizes.append(len(ids))
        return (logits * np.float32(1 + 2e-7) if len(ids) == 1 else logits), values

    assert session_of().reads_alone
    monkeypatch.setattr(DecoderSession, "_run", wrong)
    engine = BitsDecoder(DEMO, 2, threads=1)
    assert (engine._session.shares, engine._session.reads_alone) == (True, False)
    sizes.clear()
    assert engine.bits_of(prompts) == expected
    assert min(sizes) == 2


def test_only_models_that_may_think_get_slots_for_it(monkeypatch):
    spares, made = [], decoder_session.JointRows.__init__

    def counted(self, session, spare, *others):
        spares.append(spare)
        made(self, session, spare, *others)

    monkeypatch.setattr(decoder_session.JointRows, "__init__", counted)
    for thinks in (False, True):
        engine = BitsDecoder(DEMO, 3, threads=1)
        monkeypatch.setattr(type(engine._prompts), "may_think", thinks)
        engine.bits_of([[4, 5, 6]])
    assert spares == [3, 3 + Decoding().thinking_tokens]
