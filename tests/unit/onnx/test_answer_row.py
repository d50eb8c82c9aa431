import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairgate.domain.executions import Decoding
from fairgate.onnx.answer_row import LabelTokens, LabelTrace, choose_token, token_probabilities
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer

VOCABULARY = [" ", "pos", "neg", " pos", " ne", "itive", "gative", "utral", ".", "The", " Ne"]


def encode(text):
    """Split greedily by the longest known token; unknown letters share token 0."""
    tokens = []
    while text:
        known = [piece for piece in VOCABULARY if text.startswith(piece)]
        piece = max(known, key=len) if known else text[0]
        tokens.append(VOCABULARY.index(piece) if known else 0)
        text = text[len(piece) :]
    return tokens


def said(labels, steps):
    """Return the margin after steps of (token text, {token text: probability})."""
    trace = LabelTrace(LabelTokens.of(labels, lambda text: {tuple(encode(text))}))
    text = ""
    for token, probabilities in steps:
        left = (1.0 - sum(probabilities.values())) / (len(VOCABULARY) - len(probabilities))
        row = np.array([probabilities.get(piece, left) for piece in VOCABULARY])
        text += token
        trace.add(np.log(row), VOCABULARY.index(token), len(text))
    return trace.margin(text)


def test_labels_that_differ_in_their_first_token_are_compared_there():
    margin = said(
        ("positive", "negative"),
        [(" pos", {" pos": 0.6, " ne": 0.3}), ("itive", {"itive": 0.9}), (".", {".": 0.9})],
    )
    rest = 0.1 / 9  # each of the nine other tokens, among them the variants without a space
    assert margin == pytest.approx(math.log(0.6 + rest) - math.log(0.3 + 2 * rest), abs=0.02)


def test_labels_that_share_a_token_are_compared_where_they_part():
    steps = [(" ne", {" ne": 0.9}), ("gative", {"gative": 0.5, "utral": 0.4}), (".", {".": 0.9})]
    assert said(("negative", "neutral"), steps) == pytest.approx(math.log(0.5 / 0.4), abs=1e-4)


def test_a_label_said_late_is_compared_at_its_own_token():
    label = [(" pos", {" pos": 0.6, " ne": 0.3}), ("itive", {"itive": 0.9}), (".", {".": 0.9})]
    late = said(("positive", "negative"), [("The", {"The": 0.99}), *label])
    assert late == said(("positive", "negative"), label)


def test_the_label_that_was_said_may_be_the_less_probable_one():
    steps = [(" pos", {" pos": 0.1, " ne": 0.8}), ("itive", {"itive": 0.9}), (".", {})]
    assert said(("positive", "negative"), steps) < 0


def dummy_prefix_folder(tmp_path, scheme):
    """Return a folder with a tokenizer that puts a space before every text, as Llama 2's does."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    letters = sorted(set('PosNegpnitvautralx :(*"\n▁'))
    pieces = [("<unk>", 0.0), *((letter, -9.0) for letter in letters)]
    pieces += [
        (f"{space}{word}", -2.0)
        for word in ("Pos", "Neg", "pos", "neg", "itive", "ative")
        for space in ("▁", "")
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    if scheme == "normalizer":
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    (tmp_path / "model.onnx").write_bytes(b"")
    return ModelFolder.find(tmp_path)


@pytest.mark.parametrize("scheme", ["normalizer", "always", "first", "never"])
def test_a_label_after_a_line_end_is_compared_under_a_tokenizer_with_a_dummy_prefix(
    tmp_path, scheme
):
    prompts = PromptTokenizer(dummy_prefix_folder(tmp_path, scheme))
    vocabulary = prompts._tokenizer.backend
    trace = LabelTrace(LabelTokens.of(("positive", "negative"), prompts.splits))
    text = ""
    # The answer is a line end and then the label, without a space; "Neg" was almost as likely.
    for token, likely in (
        ("\n", {"\n": 0.9}),
        ("Pos", {"Pos": 0.45, "Neg": 0.41}),
        ("itive", {"itive": 0.9}),
    ):
        row = np.full(vocabulary.get_vocab_size(), 1e-12)
        for piece, probability in likely.items():
            row[vocabulary.token_to_id(piece)] = probability
        text += token
        trace.add(np.log(row / row.sum()), vocabulary.token_to_id(token), len(text))
    assert trace.margin(text) == pytest.approx(math.log(0.45 / 0.41), abs=1e-3)


logits = arrays(
    np.float32, st.integers(1, 40), elements=st.floats(-30, 30, width=32, allow_nan=False)
)
knobs = st.builds(
    Decoding,
    temperature=st.sampled_from([0.0, 0.1, 1.0, 2.5]),
    top_p=st.sampled_from([0.05, 0.5, 0.9, 1.0]),
    top_k=st.sampled_from([0, 1, 3, 50]),
)


@example(np.array([0.0, 3e-27], np.float32), Decoding(temperature=0.1, top_p=0.05))
@given(logits, knobs)
def test_probabilities_sum_to_one_and_keep_the_most_probable_token(scores, decoding):
    probabilities = token_probabilities(scores, decoding)
    assert probabilities.sum() == pytest.approx(1.0)
    assert probabilities[scores.argmax()] > 0.0
    assert (probabilities >= 0.0).all()


@given(logits, knobs, st.integers(0, 1000))
def test_equal_seeds_choose_equal_tokens_and_only_kept_ones(scores, decoding, seed):
    token = choose_token(scores, decoding, np.random.default_rng(seed))
    assert token == choose_token(scores, decoding, np.random.default_rng(seed))
    assert token_probabilities(scores, decoding)[token] > 0.0


def test_greedy_takes_the_first_maximum_and_draws_nothing_and_sampling_one_number_per_token():
    first, second = np.random.default_rng(5), np.random.default_rng(5)
    assert choose_token(np.array([0.0, 2.0, 2.0]), Decoding(), first) == 1
    assert first.bit_generator.state == second.bit_generator.state
    choose_token(np.zeros(9), Decoding(temperature=1.0, top_p=0.9), first)
    second.random()
    assert first.bit_generator.state == second.bit_generator.state


@pytest.mark.parametrize(
    ("knobs", "kept"),
    [
        ({"top_p": 0.75}, [0.625, 0.375, 0.0, 0.0]),
        # The set must reach the mass: where one token alone does, no second one is kept.
        ({"top_p": 0.45}, [1.0, 0.0, 0.0, 0.0]),
        # Among the two most probable tokens the first has 5/8 of the mass: enough for top_p 0.6.
        ({"top_p": 0.6, "top_k": 2}, [1.0, 0.0, 0.0, 0.0]),
    ],
)
def test_top_p_keeps_the_smallest_set_that_reaches_the_mass_after_top_k(knobs, kept):
    scores = np.log([0.5, 0.3, 0.15, 0.05])
    found = token_probabilities(scores, Decoding(temperature=1.0, **knobs))
    assert found == pytest.approx(kept)
