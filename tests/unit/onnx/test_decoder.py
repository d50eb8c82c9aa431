import json
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from fakes.decoders import DEMO, demo_folder

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Decoding, GenerationRequest
from fairgate.onnx import decoder_graph
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.relations.oracles.label import first_label

LABELS = ("positive", "negative", "neutral", "mixed")
TEXTS = (
    "The soup was cold and nobody said sorry.",
    "I would buy it again today. It works, it is quiet and it was not even expensive.",
    "The lamp has two switches.",
    "Good food, but we waited for an hour and the waiter forgot the wine, so I do not know.",
    "Never again.",
    "What a wonderful evening! " * 6,
    "It arrived on Tuesday in a brown box, together with a manual in four languages.",
)
GREEDY = Decoding(max_new_tokens=12)
SAMPLED = Decoding(temperature=1.0, top_p=0.95, top_k=50, max_new_tokens=12)


def make_requests(number=21):
    return [
        GenerationRequest(
            prompt="What is the sentiment of the text? Answer with one word: positive, negative, "
            f'neutral or mixed.\n\nReader {i} says the following text: "{TEXTS[i % 7]}"\nAnswer:',
            labels=LABELS,
            seed=i,
        )
        for i in range(number)
    ]


def answers_of(engine, requests):
    found = dict(engine.generate(requests))
    return [found[place] for place in range(len(requests))]


@pytest.fixture(scope="module")
def requests():
    return make_requests()


@pytest.mark.walk(1)
@pytest.mark.parametrize("decoding", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_answers_and_margins_do_not_depend_on_batch_order_or_threads(requests, decoding):
    expected = answers_of(OnnxDecoder(DEMO, decoding=decoding, threads=1), requests)
    assert any(answer.margin is not None for answer in expected)
    for batch_size, threads in ((1, 2), (7, 1), (32, 2)):
        order = list(range(len(requests)))
        random.Random(batch_size).shuffle(order)
        engine = OnnxDecoder(DEMO, decoding=decoding, batch_size=batch_size, threads=threads)
        shuffled = answers_of(engine, [requests[place] for place in order])
        assert shuffled == [expected[place] for place in order]


@pytest.mark.walk(1)
@pytest.mark.parametrize("decoding", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_stopping_early_gives_the_label_of_the_full_answer(requests, decoding):
    engine = OnnxDecoder(DEMO, decoding=decoding)
    stopped = answers_of(engine, requests)
    full = answers_of(engine, [replace(request, labels=()) for request in requests])
    for early, late in zip(stopped, full, strict=True):
        assert first_label(early.response, LABELS) == first_label(late.response, LABELS)
        assert late.response.startswith(early.response)
        assert late.margin is None
    assert sum(a.tokens for a in stopped) <= sum(a.tokens for a in full)


@pytest.mark.walk(1)
@pytest.mark.parametrize("copies", [1, 2, 7])
def test_equal_prompts_are_read_once_and_answered_each_by_its_seed(requests, copies, monkeypatch):
    repeated = [replace(one, seed=100 * n + one.seed) for n in range(copies) for one in requests]
    random.Random(3).shuffle(repeated)
    engine = OnnxDecoder(DEMO, decoding=SAMPLED)
    distinct = tokens_read(engine, requests, monkeypatch)
    found = answers_of(engine, repeated)
    # A prompt may end one batch and begin another, which reads its last unit of tokens again.
    batches = -(-len(repeated) // 16) + len(requests)
    assert tokens_read(engine, repeated, monkeypatch) <= distinct + 2 * 16 * batches
    assert found == [answers_of(engine, [one])[0] for one in repeated]


def tokens_read(engine, requests, monkeypatch):
    """Return how many tokens of prompts an engine computes, padding included."""
    session, read = engine._session, []
    prefill = session.prefill
    with monkeypatch.context() as patched:
        patched.setattr(
            session,
            "prefill",
            lambda rows, width, *given: (
                read.append(len(rows) * width) or prefill(rows, width, *given)
            ),
        )
        answers_of(engine, requests)
    return sum(read)


def test_only_what_ends_a_prompt_is_projected_onto_the_vocabulary(requests, monkeypatch):
    engine = OnnxDecoder(DEMO, decoding=GREEDY)
    prefill, projected = engine._session.prefill, []

    def counting(rows, width, read=None, before=None):
        logits, cache = prefill(rows, width, read, before)
        is_copied = len(rows) == 2 and rows[0] == rows[1]  # a lone row stands beside its copy
        projected.append((1 if is_copied else logits.shape[0]) * logits.shape[1])
        return logits, cache

    monkeypatch.setattr(engine._session, "prefill", counting)
    long = [replace(one, prompt=one.prompt * 6) for one in requests]
    answers_of(engine, long)
    assert 0 in projected
    assert sum(projected) <= len(long)


@pytest.mark.whole
def test_the_uncut_graph_gives_the_same_answers(requests, monkeypatch):
    expected = answers_of(OnnxDecoder(DEMO, decoding=GREEDY), requests)
    monkeypatch.setattr(decoder_graph, "cut_to_positions", lambda _: False)
    whole = OnnxDecoder(DEMO, decoding=GREEDY)
    assert answers_of(whole, requests) == expected
    assert not whole._session.cut


def test_an_end_token_ends_the_answer_and_is_not_counted(requests, tmp_path):
    ends = {"eos_token_id": list(range(2048))}
    folder = demo_folder(tmp_path / "model", generation_config=ends)
    [answer] = answers_of(OnnxDecoder(folder, decoding=GREEDY), requests[:1])
    assert (answer.response, answer.tokens, answer.stopped, answer.margin) == ("", 0, "end", None)


def test_the_fingerprint_follows_what_changes_answers():
    prints = {
        OnnxDecoder(DEMO, decoding=decoding).fingerprint
        for decoding in (GREEDY, SAMPLED, replace(GREEDY, max_new_tokens=13))
    }
    assert len(prints) == 3
    same = {
        OnnxDecoder(DEMO, decoding=decoding, batch_size=size, threads=2).fingerprint
        for decoding in (GREEDY, replace(GREEDY, top_p=0.5, seed=1))
        for size in (1, 8)
    }
    assert len(same) == 1


def option_requests():
    return [
        GenerationRequest(
            prompt=f"Context: Maria and the old man met at noon. {'They talked. ' * i}\nQuestion: "
            "Who was late?\nAnswer:",
            options=("Maria", "The old man", "Not enough information is given here"),
        )
        for i in range(5)
    ]


def test_option_scores_are_the_sums_of_the_steps_own_log_probabilities():
    engine = OnnxDecoder(DEMO, decoding=GREEDY)
    request = option_requests()[1]
    [scores] = engine.score_options([request])
    for option, score in zip(request.options, scores, strict=True):
        prompt, full = engine._prompts.encode_with_option(request.prompt, [option])
        logits, cache = engine._session.prefill([prompt, prompt], len(prompt))
        row, total = logits[0, 0], 0.0
        for token in full[len(prompt) :]:
            total += float(row[token] - np.logaddexp.reduce(row.astype(np.float64)))
            row = engine._session.step(cache, [token, token])[0]
        assert score == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("kept", [2047, 2048, 2052, 10_000])
def test_an_answer_that_leaves_no_room_to_the_prompt_is_named_as_such(kept):
    engine = OnnxDecoder(DEMO, decoding=Decoding(max_new_tokens=kept))
    with pytest.raises(ModelError) as found:
        list(engine.generate([GenerationRequest(prompt="Is it good? " * 2)]))
    said = str(found.value)
    assert not re.search(r"limit is (-|0)", said)
    if kept > 2047:
        assert f"{kept} tokens are kept for the answer, which leaves none to the prompt" in said
        assert "has 2048 tokens for both" in said


ASKED = {
    "in a prompt": ({"prompt": "a strange word"}, []),
    "in a label": ({"prompt": "a", "labels": ("strange", "good")}, []),
    "in an option": ({"prompt": "a", "options": ("strange", "good")}, ["score_options"]),
}


@pytest.mark.walk(1)
@pytest.mark.parametrize("where", ASKED)
def test_a_token_beyond_the_vocabulary_is_named(tmp_path, where):
    asked, scored = ASKED[where]
    added = json.loads((DEMO / "tokenizer.json").read_text())["added_tokens"]
    flags = dict.fromkeys(("special", "single_word", "lstrip", "rstrip", "normalized"), False)
    added.append({"id": 2048, "content": "strange", **flags})
    folder = demo_folder(tmp_path / "m", tokenizer={"added_tokens": added})
    engine = OnnxDecoder(folder, decoding=Decoding(max_new_tokens=2))
    ask = engine.score_options if scored else lambda requests: list(engine.generate(requests))
    with pytest.raises(ModelError) as found:
        ask([GenerationRequest(**asked)])
    assert "token 2048, 'strange', is not one of the 2048 of" in str(found.value)
    assert list(engine.generate([GenerationRequest(prompt="plain")]))
