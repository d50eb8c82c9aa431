"""No bit of an answer depends on which blocks of prompts were shared, kept or computed again."""

import random

import numpy as np
import pytest
from fakes.decoders import DEMO, BitsDecoder, builder_folder, session_of
from hypothesis import example, given
from hypothesis import strategies as st

from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx import prompt_blocks
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession

BLOCK = 32
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


class Recorder(BitsDecoder):
    """Has so much room for blocks that are kept."""

    def __init__(self, *given, kept_bytes=prompt_blocks.KEPT_BYTES, **options):
        super().__init__(*given, **options)
        self.kept_bytes = kept_bytes

    def bits_of(self, prompts):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(prompt_blocks, "KEPT_BYTES", self.kept_bytes)
            return super().bits_of(prompts)


@pytest.fixture(scope="module", autouse=True)
def _unwritten_memory_is_no_number():
    """What is read of kept memory before it was written makes logits NaN, which are refused."""

    def unwritten(like, units):
        return np.full((like.shape[0], units, like.shape[2]), np.nan, dtype=like.dtype)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(prompt_blocks, "_empty", unwritten)
        yield


@pytest.fixture(scope="module")
def alone():
    """Each prompt's bits by itself, in an engine that has read nothing before."""
    return [Recorder(DEMO, 3, threads=1).bits_of([prompt])[0] for prompt in PROMPTS]


@pytest.mark.walk(1)
@pytest.mark.parametrize("kept_bytes", [0, 500_000, 2**28])
@pytest.mark.parametrize(("batch_size", "threads"), [(1, 1), (7, 2)])
def test_no_bit_depends_on_what_is_shared(alone, kept_bytes, batch_size, threads):
    order = random.Random(batch_size).sample(range(len(PROMPTS)), len(PROMPTS))
    limits = {"kept_bytes": kept_bytes, "batch_size": batch_size, "threads": threads}
    engine = Recorder(DEMO, 3, **limits)
    assert engine._session.shares
    assert engine.bits_of([PROMPTS[place] for place in order]) == [alone[n] for n in order]


@pytest.fixture(scope="module")
def engines():
    """Engines of several batch sizes and rooms for what is kept, by both."""
    sizes = [(batch, kept) for batch in (1, 3, 32) for kept in (0, 200_000, 2**28)]
    return {
        (batch, kept): Recorder(DEMO, 2, threads=1, batch_size=batch, kept_bytes=kept)
        for batch, kept in sizes
    }


@pytest.fixture(scope="module")
def bits_alone():
    """Return a prompt's bits by itself, each computed once."""
    engine, known = Recorder(DEMO, 2, threads=1), {}

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


@pytest.mark.whole
@given(repeated_prefixes(), st.sampled_from([1, 3, 32]), st.sampled_from([0, 200_000, 2**28]))
@example([SHORT, SHORT, SHORT + FURTHER], 32, 2**28)
@example([LONG, LONG, LONG, LONG + FURTHER], 32, 2**28)
@example([LONG, LONG + FURTHER, LONG, LONG + FURTHER, LONG + FURTHER * 2], 3, 2**28)
def test_equal_prompts_that_others_begin_with_change_no_bit(
    engines, bits_alone, prompts, batch_size, kept_bytes
):
    found = engines[batch_size, kept_bytes].bits_of(prompts)
    assert found == [bits_alone(prompt) for prompt in prompts]


def test_prompts_that_begin_alike_cost_their_difference(monkeypatch):
    ran, run = [], DecoderSession._run

    def counted(self, ids, *given, **options):
        ran.append(ids.size)
        return run(self, ids, *given, **options)

    monkeypatch.setattr(DecoderSession, "_run", counted)
    stem = tokens(6 * BLOCK)
    prompts = [[*stem, n, *tokens(7)] for n in range(16)]
    engine = Recorder(DEMO, 1)
    assert engine._session.shares
    ran.clear()
    engine.answers(prompts)
    # The first prompt, with the stem, runs by itself.
    assert sum(ran) == len(prompts[0]) + 15 * 8


@pytest.mark.whole
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
    engine = OnnxDecoder(DEMO, decoding=Decoding())
    engine._session.shares = False
    whole = engine.score_options(requests)
    assert np.allclose(whole, alone, rtol=1e-5, atol=1e-4)


def test_graphs_that_count_the_tokens_of_rows_share_nothing(tmp_path):
    assert not session_of(builder_folder(tmp_path / "builder")).shares


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_row_without_finite_logits_shows_nothing_about_others(number, monkeypatch):
    run = DecoderSession._run

    def wrong(self, *given, **options):
        logits, values = run(self, *given, **options)
        return np.full_like(logits, number), values

    monkeypatch.setattr(DecoderSession, "_run", wrong)
    session = session_of()
    assert (session.pads, session.shares, session.joins) == (False, False, False)
