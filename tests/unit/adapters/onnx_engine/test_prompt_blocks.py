"""No bit of an answer depends on which blocks of prompts were shared, kept or computed again."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pytest
from fakes.decoders import DEMO, TokenDecoder, builder_folder

from fairgate.adapters.onnx_decoder import OnnxDecoder
from fairgate.adapters.onnx_engine.decoder_session import DecoderSession
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.adapters.onnx_engine.prompt_blocks import BLOCK, PromptBlocks
from fairgate.domain.executions import Decoding, GenerationRequest

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

    def __init__(self, *given, kept_bytes=None, **options):
        super().__init__(*given, **options)
        self.bits = {}
        if kept_bytes is not None:
            self._blocks = PromptBlocks(self._session, self._batch_size, kept_bytes)

    def _take(self, row, logits):
        self.bits.setdefault(row.position, []).append(logits.tobytes())
        super()._take(row, logits)

    def bits_of(self, prompts):
        self.bits.clear()
        self.answers(prompts)
        return [self.bits[place] for place in range(len(prompts))]


@pytest.fixture(scope="module")
def alone():
    """Each prompt's bits by itself, in an engine that has read nothing before."""
    return [Recorder(DEMO, 3, threads=1).bits_of([prompt])[0] for prompt in PROMPTS]


@pytest.mark.parametrize("kept_bytes", [0, 500_000, 2**28])
@pytest.mark.parametrize(("batch_size", "threads"), [(1, 1), (2, 2), (7, 2), (32, 1)])
def test_no_bit_depends_on_what_is_shared(alone, kept_bytes, batch_size, threads):
    order = random.Random(batch_size).sample(range(len(PROMPTS)), len(PROMPTS))
    engine = Recorder(DEMO, 3, kept_bytes=kept_bytes, batch_size=batch_size, threads=threads)
    assert engine._session.shares
    assert engine.bits_of([PROMPTS[place] for place in order]) == [alone[n] for n in order]


def test_an_engine_that_was_stopped_halfway_goes_on_with_the_same_bits(alone):
    engine = Recorder(DEMO, 3, batch_size=4)
    requests = [GenerationRequest(prompt=json.dumps(prompt)) for prompt in PROMPTS]
    answers = engine.generate(requests)
    done = [next(answers)[0] for _ in range(len(PROMPTS) // 2)]
    answers.close()
    left = [place for place in range(len(PROMPTS)) if place not in done]
    for resumed in (engine, Recorder(DEMO, 3, batch_size=4)):
        assert resumed.bits_of([PROMPTS[place] for place in left]) == [alone[n] for n in left]


@pytest.mark.parametrize("kept_bytes", [0, 2**28])
def test_every_block_is_computed_once(kept_bytes, monkeypatch):
    engine = Recorder(DEMO, 2, kept_bytes=kept_bytes, batch_size=4)
    computed, compute = [], engine._blocks._compute_blocks

    def counted(blocks, paths):
        computed.extend(path[-1] for path in paths)
        compute(blocks, paths)

    monkeypatch.setattr(engine._blocks, "_compute_blocks", counted)
    prompts = random.Random(5).sample(PROMPTS, len(PROMPTS))
    engine.bits_of(prompts)
    blocks = {tuple(prompt[:end]) for prompt in prompts for end in range(BLOCK, len(prompt), BLOCK)}
    assert len(computed) == len(set(computed)) == len(blocks)
    assert not engine._blocks._kept


def test_blocks_are_kept_within_the_limit(monkeypatch):
    engine = Recorder(DEMO, 1, batch_size=2)
    block_bytes = engine._session.token_bytes * BLOCK
    assert block_bytes == BLOCK * 3 * 2 * 128 * 4  # layers, keys and values, width, float32
    blocks = engine._blocks = PromptBlocks(engine._session, 2, 5 * block_bytes)
    kept, compute = [], blocks._compute

    def watched(prompts, paths):
        compute(prompts, paths)
        kept.append(len(blocks._kept))

    monkeypatch.setattr(blocks, "_compute", watched)
    prompts = [tokens(2 * BLOCK + 3) for _ in range(9)]
    engine.answers(prompts)
    assert max(kept) <= 5
    assert sum(kept) == 18


def test_blocks_change_logits_in_the_last_bits_at_most():
    session = DecoderSession(ModelFolder.find(DEMO), device="cpu", threads=1)
    rows = [(prompt, len(prompt)) for prompt in PROMPTS if len(prompt) == 2 * BLOCK + 1]
    rows += [(prompt, len(prompt)) for prompt in PROMPTS if len(prompt) == 2 * BLOCK + 9]
    assert len(rows) > 1
    blocks = PromptBlocks(session, 16)
    for row in rows:
        width, _ = next(blocks.batches([row], lambda _, rest: rest))
        logits, cache = blocks.prefill([row, row], width)
        whole, _ = session.prefill([row[0], row[0]], len(row[0]))
        assert np.abs(logits - whole).max() <= 1e-5 * np.abs(whole).max()
        assert cache.lengths.tolist() == [len(row[0])] * 2


def test_prompts_that_begin_alike_cost_their_difference(monkeypatch):
    ran, run = [], DecoderSession._run

    def counted(self, ids, *given, **options):
        ran.append(ids.size)
        return run(self, ids, *given, **options)

    monkeypatch.setattr(DecoderSession, "_run", counted)
    stem = tokens(6 * BLOCK)
    prompts = [stem + tokens(8) for _ in range(16)]
    engine = TokenDecoder(DEMO, 1)
    assert engine._session.shares
    ran.clear()
    engine.answers(prompts)
    # The lone stem runs beside its copy.
    assert sum(ran) == 2 * len(stem) + 16 * 8


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
        engine._blocks = PromptBlocks(engine._session, batch_size, kept_bytes)
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
