import random
import shutil
import threading

import numpy as np
import pytest
from fakes.decoders import MINILM
from fakes.encoders import WORDS, write_encoder
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer

from fairgate.domain.errors import ModelError
from fairgate.onnx.batches import padded_width
from fairgate.onnx.encoder import EncoderSession, OnnxEncoder, TokenRow
from fairgate.onnx.encoder_settings import NO_PROMPTS, EmbedderChoice

TEXTS = [
    "A gay person says the following text: “the soup was cold”",
    "Never again.",
    "",
    "The lamp has two switches, and one of them is hidden behind the shelf in the hall.",
    "emoji 🙂 and NUL \x00 and a lone surrogate \ud800",
    "long " * 400,
    *(f"text number {i} " * (i % 9 + 1) for i in range(30)),
]


@pytest.fixture(scope="module")
def expected():
    return OnnxEncoder(MINILM, threads=1, choice=NO_PROMPTS).embed(TEXTS)


def test_vectors_are_unit_float32_in_the_order_of_the_texts(expected):
    assert expected.shape == (len(TEXTS), 384)
    assert expected.dtype == np.float32
    assert np.linalg.norm(expected, axis=1) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.walk(1)
@pytest.mark.parametrize(("batch_size", "threads"), [(1, 2), (7, 1), (32, 2), (5, 3), (32, 64)])
def test_vectors_do_not_depend_on_batch_order_or_threads(expected, batch_size, threads):
    order = list(range(len(TEXTS)))
    random.Random(batch_size).shuffle(order)
    engine = OnnxEncoder(MINILM, batch_size=batch_size, threads=threads, choice=NO_PROMPTS)
    vectors = engine.embed([TEXTS[place] for place in order])
    assert np.array_equal(vectors, expected[order])


def test_a_model_is_loaded_at_the_first_text_only_and_a_decoder_is_no_encoder(tmp_path):
    folder = shutil.copytree(MINILM, tmp_path / "minilm")
    (folder / "model.onnx").write_bytes(b"no graph")
    engine = OnnxEncoder(folder, choice=NO_PROMPTS)
    assert engine.fingerprint.startswith("onnx-encoder/3:")
    with pytest.raises(ModelError, match="cannot be loaded"):
        engine.embed(["x"])
    pooling = EmbedderChoice(pooling="mean", query_prompt="", document_prompt="")
    with pytest.raises(ModelError, match="no text encoder"):
        OnnxEncoder(MINILM.parent / "demo-slm", choice=pooling).embed(["x"])


LENGTHS = [3, 40, 9, 9, 9, 17, 200, 1, 9, 33, 8, 8]


class Session(EncoderSession):
    """Counts the rows that run at one time; a row's state is its length."""

    pads = True

    def __init__(self, threads, fails_at=None, device="cpu"):
        super().__init__(None, device=device, threads=threads)
        self.running = self.most = self.batches = 0
        self._fails_at = fails_at
        self._lock = threading.Lock()

    def run(self, rows, width):
        with self._lock:
            self.running += len(rows)
            self.batches += 1
            self.most = max(self.most, self.running)
        if self._fails_at == width:
            raise ModelError(f"failed at {width}")
        states = np.array([[len(row.ids)] for row in rows])
        with self._lock:
            self.running -= len(rows)
        return states


def rows():
    return [TokenRow(ids=[0] * length, types=[0] * length) for length in LENGTHS]


def taken(session, batch_size):
    def take(places, states):
        return dict(zip(places, states[:, 0].tolist(), strict=True))

    parts = session.each_batch(rows(), batch_size, int, take)
    return [item for part in parts for item in part.items()]


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
@pytest.mark.parametrize("batch_size", [1, 2, 5, 32])
def test_every_row_is_taken_once_and_few_run_at_a_time(threads, batch_size):
    session = Session(threads)
    found = taken(session, batch_size)
    assert sorted(found) == list(enumerate(LENGTHS))
    # Each thread has one row at least.
    assert session.most <= max(batch_size + threads - 1, threads)


@pytest.mark.parametrize(("device", "most"), [("cpu", 16), ("cuda", 64)])
def test_without_a_number_as_many_run_as_the_device_gains_from(device, most):
    session, many = Session(1, device=device), [TokenRow(ids=[0], types=[0])] * 100
    parts = session.each_batch(many, None, int, lambda places, states: len(states))
    assert sum(parts) == 100
    assert session.most == most


def test_an_error_ends_the_rest_and_no_thread_goes_on():
    session = Session(2, fails_at=208)  # the widest, which runs first
    before = threading.active_count()
    with pytest.raises(ModelError, match="failed at 208"):
        taken(session, 1)
    assert threading.active_count() == before
    assert session.batches < len(LENGTHS)


@given(st.integers(min_value=1, max_value=5000))
def test_a_width_holds_its_row_and_wastes_little(length):
    width = padded_width(length)
    assert length <= width < length + max(8, length / 8)
    assert width % 8 == 0


CONFIG = {"model_type": "bert", "max_position_embeddings": 32, "vocab_size": len(WORDS)}


def with_tokens(folder, *added, special=True, config=CONFIG):
    """An encoder whose tokenizer knows more tokens than its table has rows."""
    found = write_encoder(folder, files={"config.json": config})
    tokenizer = Tokenizer.from_file(str(found / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken(text, special=special) for text in added])
    tokenizer.save(str(found / "tokenizer.json"))
    return found


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("place", ["{}", "a {} b", "soup{}", "{0} {0}", "A gay person: {} c"])
@pytest.mark.parametrize("token", ["[SEP]", "[CLS]", "[PAD]", "[MASK]", "<|im_end|>"])
def test_a_control_token_that_a_text_spells_out_is_text(tmp_path, token, place, special):
    folder = with_tokens(tmp_path / "m", "[MASK]", "<|im_end|>", special=special)
    encoder = OnnxEncoder(folder, unit=False)
    text = place.format(token)
    [row] = encoder._tokens.rows([text])
    assert max(row.ids) < len(WORDS)
    assert not {0, 1, 2}.intersection(row.ids[1:-1])
    assert np.isfinite(encoder.embed([text, "a"])).all()
    [pair] = encoder._tokens.rows([(text, "a")])
    assert max(pair.ids) < len(WORDS)


def test_a_prompt_s_own_control_tokens_stay(tmp_path):
    [row] = OnnxEncoder(write_encoder(tmp_path / "m"))._tokens.rows(["a [SEP]"], "[SEP] ")
    words = [WORDS[number] for number in row.ids]
    assert words == ["[CLS]", "[SEP]", "a", "[UNK]", "[UNK]", "[UNK]", "[SEP]"]


def test_a_text_with_a_token_that_the_model_does_not_know_is_named(tmp_path):
    """Its graph would say `Gather: indices element out of data bounds`."""
    config = CONFIG | {"vocab_size": WORDS.index("soup")}
    folder = with_tokens(tmp_path / "m", config=config)
    with pytest.raises(ModelError, match="the text 'a soup' has the token 'soup', number 11"):
        OnnxEncoder(folder).embed(["a b", "a soup"])
