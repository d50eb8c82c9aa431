"""No bit of an answer depends on which blocks of prompts were shared, kept or computed again."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pytest
from fakes.decoders import DEMO, TokenDecoder, builder_folder
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx import prompt_blocks, trials
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompt_blocks import BLOCK, PromptBlocks
from fairgate.onnx.trials import RowTrials

RNG = np.random.default_rng(11)


def tokens(size):
    return RNG.integers(3, 1000, size).tolist()


def tree_of_prompts():
    """Prompts that share none, some or all blocks, with every kind of length near a block's end."""
    stem, other, block = tokens(3 * BLOCK), tokens(BLOCK), tokens(BLOCK)
    prompts = [stem[:size] for size in (1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK)]
    prompts += [stem[:size] + tokens(rest) for size in (40, 2 * BLOCK, 90) for rest in (1, 9, 31)]
    # The same tokens in a block after others: the same block it is not.
    prompts += [stem[:BLOCK] + block + [7], other + block + [7], other + block + other + [8, 9]]
    prompts += [tokens(5), tokens(2 * BLOCK + 5), prompts[3]]
    return prompts


PROMPTS = tree_of_prompts()


class Recorder(TokenDecoder):
    """Keeps every bit of the logits of every step."""

    def __init__(self, *given, kept_bytes=prompt_blocks.KEPT_BYTES, freely=True, **options):
        super().__init__(*given, **options)
        self.bits = {}
        self._session.cuts_freely &= freely
        self.kept_bytes = kept_bytes

    def _take(self, row, logits, likeliest):
        self.bits.setdefault(row.position, []).append(logits.tobytes())
        super()._take(row, logits, likeliest)

    def bits_of(self, prompts):
        self.bits.clear()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(prompt_blocks, "KEPT_BYTES", self.kept_bytes)
            self.answers(prompts)
        return [self.bits[place] for place in range(len(prompts))]


@pytest.fixture(scope="module", autouse=True)
def _unwritten_memory_is_no_number():
    """What is read of kept memory before it was written makes logits NaN, which are refused."""

    def unwritten(like, units):
        return np.full((like.shape[0], units, like.shape[2]), np.nan, dtype=like.dtype)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(prompt_blocks, "_empty", unwritten)
        yield


@pytest.fixture(scope="module", params=[True, False], ids=["cut freely", "in blocks"])
def freely(request):
    return request.param


@pytest.fixture(scope="module")
def alone(freely):
    """Each prompt's bits by itself, in an engine that has read nothing before."""
    return [Recorder(DEMO, 3, threads=1, freely=freely).bits_of([prompt])[0] for prompt in PROMPTS]


@pytest.mark.parametrize("kept_bytes", [0, 500_000, 2**28])
@pytest.mark.parametrize(("batch_size", "threads"), [(1, 1), (2, 2), (7, 2), (32, 1)])
def test_no_bit_depends_on_what_is_shared(alone, freely, kept_bytes, batch_size, threads):
    order = random.Random(batch_size).sample(range(len(PROMPTS)), len(PROMPTS))
    limits = {"kept_bytes": kept_bytes, "batch_size": batch_size, "threads": threads}
    engine = Recorder(DEMO, 3, freely=freely, **limits)
    assert engine._session.shares
    assert engine.bits_of([PROMPTS[place] for place in order]) == [alone[n] for n in order]


@pytest.fixture(scope="module")
def engines(freely):
    """Engines of several batch sizes and rooms for what is kept, by both."""
    sizes = [(batch, kept) for batch in (1, 3, 32) for kept in (0, 200_000, 2**28)]
    return {
        (batch, kept): Recorder(
            DEMO, 2, freely=freely, threads=1, batch_size=batch, kept_bytes=kept
        )
        for batch, kept in sizes
    }


@pytest.fixture(scope="module")
def bits_alone(freely):
    """Return a prompt's bits by itself, each computed once."""
    engine, known = Recorder(DEMO, 2, freely=freely, threads=1), {}

    def bits(prompt):
        key = tuple(prompt)
        if key not in known:
            [known[key]] = engine.bits_of([prompt])
        return known[key]

    return bits


@st.composite
def repeated_prefixes(draw):
    """Prompts, some several times, that begin or go on like others, often at multiples of 8."""
    lengths = st.integers(0, 13).map(lambda n: 8 * n) | st.integers(0, 70)
    prompts = []
    for _ in range(draw(st.integers(1, 5))):
        stem = draw(st.sampled_from(prompts)) if prompts else []
        begin = stem[: draw(st.just(len(stem)) | lengths)]
        rest, seed = draw(lengths), draw(st.integers(3, 6))
        prompts.append([*begin, *([seed] * rest)] or [seed])
    times = [draw(st.sampled_from((1, 1, 2, 3))) for _ in prompts]
    every = [one for one, many in zip(prompts, times, strict=True) for _ in range(many)]
    return draw(st.permutations(every))


SHORT, LONG, FURTHER = [5] * 8, [5] * 104, [7] * 20


@settings(max_examples=60, deadline=None)
@given(
    repeated_prefixes(),
    st.sampled_from([1, 3, 32]),
    st.sampled_from([0, 200_000, 2**28]),
)
@example([SHORT, SHORT, SHORT + FURTHER], 32, 2**28)
@example([LONG, LONG, LONG, LONG + FURTHER], 32, 2**28)
@example([LONG, LONG + FURTHER, LONG, LONG + FURTHER, LONG + FURTHER * 2], 3, 2**28)
def test_equal_prompts_that_others_begin_with_change_no_bit(
    engines, bits_alone, prompts, batch_size, kept_bytes
):
    found = engines[batch_size, kept_bytes].bits_of(prompts)
    assert found == [bits_alone(prompt) for prompt in prompts]


def test_an_engine_that_was_stopped_halfway_goes_on_with_the_same_bits(alone, freely):
    engine = Recorder(DEMO, 3, freely=freely, batch_size=4)
    requests = [GenerationRequest(prompt=json.dumps(prompt)) for prompt in PROMPTS]
    answers = engine.generate(requests)
    done = [next(answers)[0] for _ in range(len(PROMPTS) // 2)]
    left = [place for place in range(len(PROMPTS)) if place not in done]
    wanted = [alone[place] for place in left]
    assert engine.bits_of([PROMPTS[place] for place in left]) == wanted, "beside an open iteration"
    answers.close()
    for resumed in (engine, Recorder(DEMO, 3, freely=freely, batch_size=4)):
        assert resumed.bits_of([PROMPTS[place] for place in left]) == wanted


def test_reading_in_pieces_changes_logits_in_the_last_bits_at_most(freely):
    engine = Recorder(DEMO, 1, freely=freely, threads=1)
    rows = [(prompt, len(prompt)) for prompt in PROMPTS if len(prompt) > BLOCK]
    for row in rows:
        [batch] = PromptBlocks(engine._session, 16).batches([row], lambda _, rest: rest + 3)
        logits, cache = batch.prefill()
        whole, _ = engine._session.prefill([row[0], row[0]], len(row[0]))
        assert np.abs(logits[:, :1] - whole).max() <= 1e-5 * np.abs(whole).max()
        assert cache.lengths.tolist() == [len(row[0])] * 2


def test_prompts_that_begin_alike_cost_their_difference(monkeypatch, freely):
    ran, run = [], DecoderSession._run

    def counted(self, ids, *given, **options):
        ran.append(ids.size)
        return run(self, ids, *given, **options)

    monkeypatch.setattr(DecoderSession, "_run", counted)
    stem = tokens(6 * BLOCK)
    prompts = [[*stem, n, *tokens(7)] for n in range(16)]
    engine = Recorder(DEMO, 1, freely=freely)
    assert engine._session.shares
    ran.clear()
    engine.answers(prompts)
    # Where blocks are fixed the lone stem runs beside its own copy.
    copies = 1 if engine._session.cuts_freely else 2
    assert sum(ran) == copies * len(stem) + 16 * 8


def test_scored_options_share_their_prompt_and_no_bit_depends_on_it(monkeypatch):
    requests = [
        GenerationRequest(
            prompt=f"Context: Maria and the old man met at noon. {'They talked. ' * n}\nWho was late?",
            options=("Maria", "The old man", "Not enough information is given here at all " * 6),
        )
        for n in range(0, 24, 2)
    ]
    alone = [
        OnnxDecoder(DEMO, decoding=Decoding(), threads=1).score_options([one])[0]
        for one in requests
    ]
    for batch_size, kept_bytes in ((1, 0), (7, 10**6), (32, 2**28)):
        engine = OnnxDecoder(DEMO, decoding=Decoding(), batch_size=batch_size)
        assert engine._session.shares
        monkeypatch.setattr(prompt_blocks, "KEPT_BYTES", kept_bytes)
        assert engine.score_options(requests[::-1]) == alone[::-1]
    monkeypatch.setattr(DecoderSession, "shares", False)
    whole = OnnxDecoder(DEMO, decoding=Decoding()).score_options(requests)
    assert np.allclose(whole, alone, rtol=1e-5, atol=1e-4)


def test_graphs_that_count_the_tokens_of_rows_share_nothing(tmp_path):
    folder = builder_folder(tmp_path / "builder")
    assert not DecoderSession(ModelFolder.find(folder), device="cpu", threads=1).shares


def test_a_model_with_a_sliding_window_shares_nothing(tmp_path):
    folder = tmp_path / "windowed"
    shutil.copytree(DEMO, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "sliding_window": 64}))
    assert not DecoderSession(ModelFolder.find(folder), device="cpu", threads=1).shares


def spoiled(when, by):
    """Return a `_run` whose logits after something are wrong for some batches."""
    run = DecoderSession._run

    def wrong(self, ids, positions, cache, wanted, **options):
        follows = cache.mask.shape[1] > ids.shape[1]
        logits, values = run(self, ids, positions, cache, wanted, **options)
        return (logits * np.float32(1 + by) if follows and when(ids) else logits), values

    return wrong


@pytest.mark.parametrize(
    ("when", "by"),
    [
        (lambda ids: ids.shape[1] > 1 and ids.shape[0] > 2, 2e-7),
        (lambda ids: ids.shape[1] > 1, 0.1),
    ],
    ids=["depends on the batch by a bit", "is wrong after keys"],
)
def test_a_graph_whose_arithmetic_depends_on_the_split_or_the_batch_shares_nothing(
    when, by, monkeypatch
):
    monkeypatch.setattr(DecoderSession, "_run", spoiled(when, by))
    engine = TokenDecoder(DEMO, 3)
    assert engine._session.pads
    assert not engine._session.shares
    monkeypatch.undo()
    monkeypatch.setattr(DecoderSession, "shares", False)
    assert engine.answers(PROMPTS) == TokenDecoder(DEMO, 3).answers(PROMPTS)


@pytest.mark.parametrize(
    "when",
    [
        lambda ids, start: ids.shape[1] % 32 == 0 and start,
        lambda ids, start: ids.shape[0] == 1 and ids.shape[1] > 11,
        lambda ids, start: start + ids.shape[1] > 80,
    ],
    ids=["of its width", "of its rows", "of its slots"],
)
def test_a_graph_whose_bits_depend_on_the_piece_is_read_in_blocks(when, monkeypatch):
    run = DecoderSession._run

    def wrong(self, ids, positions, cache, wanted, **options):
        logits, values = run(self, ids, positions, cache, wanted, **options)
        if when(ids, cache.mask.shape[1] - ids.shape[1]):
            values[0].numpy()[..., -ids.shape[1] :, :] *= np.float32(1 + 2e-7)
        return logits, values

    monkeypatch.setattr(DecoderSession, "_run", wrong)
    session = DecoderSession(ModelFolder.find(DEMO), device="cpu", threads=1)
    assert session.shares
    assert not session.cuts_freely


def test_nothing_is_tried_where_caches_stay_on_their_device(monkeypatch):
    monkeypatch.setattr(DecoderSession, "selects", False)
    tried = []
    monkeypatch.setattr(RowTrials, "splitting_is_exact", lambda *given: tried.append(given))
    monkeypatch.setattr(trials, "reads_in_any_pieces", lambda *given: tried.append(given))
    session = DecoderSession(ModelFolder.find(DEMO), device="cpu", threads=1)
    assert not session.shares
    assert not tried


def abilities(monkeypatch, **without):
    """Return what trials find on the embedded model where some find nothing."""
    with monkeypatch.context() as patched:
        for name in without:
            patched.setattr(trials, name, lambda *given, **options: False)
        session = DecoderSession(ModelFolder.find(DEMO), device="cpu", threads=1)
    return session.pads, session.shares, session.cuts_freely, session.joins


def test_what_follows_from_stronger_trials_is_what_the_weaker_find(monkeypatch):
    assert abilities(monkeypatch) == (True, True, True, True)
    assert abilities(monkeypatch, steps_jointly=0) == (True, True, True, False)
    assert abilities(monkeypatch, fuses_attention=0) == (True, True, True, True)
    without = {"fuses_attention": 0, "reads_in_any_pieces": 0}
    assert abilities(monkeypatch, **without) == (True, True, False, True)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_row_without_finite_logits_shows_nothing_about_others(number, monkeypatch):
    run = DecoderSession._run

    def wrong(self, *given, **options):
        logits, values = run(self, *given, **options)
        return np.full_like(logits, number), values

    monkeypatch.setattr(DecoderSession, "_run", wrong)
    assert abilities(monkeypatch) == (False, False, False, False)


def test_a_row_that_changes_beside_others_is_refused_though_it_steps_with_them(monkeypatch):
    run = DecoderSession._run

    def wrong(self, ids, *given, **options):
        logits, values = run(self, ids, *given, **options)
        alike = (ids == ids[:1]).all()
        return logits if alike else logits * np.float32(1.1), values

    monkeypatch.setattr(DecoderSession, "_run", wrong)
    with pytest.raises(ModelError, match="depend on what else is in the batch"):
        abilities(monkeypatch)


def test_prompts_that_are_cut_freely_run_without_padding(monkeypatch):
    engine = Recorder(DEMO, 1, threads=1)
    if not (engine._session.cuts_freely and engine._session.joins):
        pytest.skip("bits depend on the piece on this processor")
    widths, prefill = [], engine._session.prefill
    monkeypatch.setattr(
        engine._session,
        "prefill",
        lambda rows, width, *given: widths.append(width) or prefill(rows, width, *given),
    )
    engine.answers([tokens(BLOCK + 3), tokens(5), tokens(1)])
    assert sorted(widths) == [5, BLOCK + 3]  # the widest of a batch decides
    engine.answers([tokens(1)])
    assert widths[2:] == [2]
