"""Models that think before they answer: what is read, when generation ends, how much is allowed."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fakes.decoders import DEMO, demo_folder

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Chat, Decoding, GenerationRequest
from fairgate.onnx.attention_settings import Reach
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.prompts import thinking_in
from fairgate.relations.oracles.label import first_label

LABELS = ("positive", "negative", "neutral", "mixed")
PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[answer]"
OPENS = (
    PLAIN
    + "{% if enable_thinking is not defined or enable_thinking %}<think>\n{% else %}<think>\n\n</think>\n\n{% endif %}"
)
MENTIONS = PLAIN + "{# earlier turns lose what stands before </think> #}"
DECODING = Decoding(max_new_tokens=40, thinking_tokens=60)
BEHIND = "It is on it. " * 6
"""Sentences behind a label with which generation ends."""
ANSWERS = [
    (f"It is not bad, maybe negative.</think>\n\npositive. {BEHIND}", "positive"),
    ("negative, negative, negative</think>neutral", "neutral"),
    ("positive", None),
]


class ScriptedSession:
    """A decoder that says to each prompt what it was told to, then its end token for ever."""

    pads = True
    one_by_one = False
    shares = joins = False
    token_bytes = 1
    fills_batches = False
    vocabulary = None
    reach = Reach()

    def __init__(self, scripts, end, reach=Reach()):  # noqa: B008 (frozen)
        self.reach = reach
        self.widths = []
        self._scripts, self._end = list(scripts), end
        self.steps = 0
        self.selects = True

    def prefill(self, rows, width, read=None, before=None):
        self.widths.append((max(map(len, rows)), width))
        scripts = [self._scripts[number % len(self._scripts)] for number, _ in enumerate(rows)]
        cache = [(script, 0) for script in scripts]
        return self._logits(cache)[:, None], cache

    def step(self, cache, tokens):
        self.steps += 1
        cache[:] = [(script, at + 1) for script, at in cache]
        return self._logits(cache)

    def select(self, cache, rows):
        return [cache[row] for row in rows]

    def _logits(self, cache):
        logits = np.zeros((len(cache), 2048 + 8), dtype=np.float32)
        for place, (script, at) in enumerate(cache):
            logits[place, script[at] if at < len(script) else self._end] = 20.0
        return logits


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """Return a function: texts (one a prompt) and a template to the answers of a decoder."""

    def answers(
        texts, template=OPENS, *, decoding=DECODING, chat=None, config=None, labels=LABELS,
        reach=Reach(), more=None,  # noqa: B008 (frozen)
    ):  # fmt: skip
        settings = ({"chat_template": template} if template else {}) | (more or {})
        folder = demo_folder(tmp_path / "model", tokenizer_config=settings, config=config or {})
        engine = OnnxDecoder(folder, decoding=decoding, chat=chat or Chat(), batch_size=len(texts))
        requests = [
            GenerationRequest(prompt=f"good number {n}?", labels=labels) for n in range(len(texts))
        ]
        prompts = engine._prompts.encode([request.prompt for request in requests])
        in_order = sorted(range(len(texts)), key=prompts.__getitem__)  # as the engine takes them
        scripts = [engine._prompts.encode_fragment(texts[n]) for n in in_order]
        answers.session = engine.__dict__["_session"] = ScriptedSession(scripts, 1, reach)
        found = dict(engine.generate(requests))
        return [found[n] for n in range(len(texts))]

    return answers


def thinks(**arguments):
    return Chat(arguments=tuple(arguments.items()))


def test_labels_in_a_thinking_part_that_the_prompt_opened_end_nothing_and_are_not_read(scripted):
    found = scripted([text for text, _ in ANSWERS], chat=thinks(enable_thinking=True))
    for answer, (_, label) in zip(found, ANSWERS, strict=True):
        assert answer.response.startswith("<think>")
        assert first_label(answer.response, LABELS) == label
    assert [answer.stopped for answer in found] == ["label", "end", "end"]
    assert found[0].margin is not None
    assert found[2].margin is None


@pytest.mark.parametrize(
    ("opened", "template", "last"),
    [("<think>", None, None), ("<think>", PLAIN, None), ("<think>", MENTIONS, None),
     ("", MENTIONS, "positive")],
)  # fmt: skip
def test_a_thinking_part_that_the_model_opens_or_only_closes_is_treated_alike(
    scripted, opened, template, last
):
    """Where the template tells of thinking, an answer may turn out to have been one."""
    found = scripted([f"{opened}{text}" for text, _ in ANSWERS], template)
    assert [first_label(one.response, LABELS) for one in found] == ["positive", "neutral", last]


def test_what_was_cut_before_it_told_whether_it_was_thinking_is_no_answer(scripted):
    [answer] = scripted(["positive, " * 100], MENTIONS)
    assert (answer.stopped, first_label(answer.response, LABELS)) == ("length", None)
    assert answer.tokens == DECODING.thinking_tokens


def test_a_model_that_knows_no_thinking_gets_no_tokens_for_it(scripted):
    [answer] = scripted(["<think>" + "so " * 200], PLAIN)
    assert (answer.stopped, answer.tokens) == ("length", DECODING.max_new_tokens)


def test_with_thinking_switched_off_an_answer_ends_with_its_label(scripted):
    [answer] = scripted([f"positive. {BEHIND}{BEHIND}"])
    assert (answer.stopped, first_label(answer.response, LABELS)) == ("label", "positive")
    assert answer.tokens <= 32


@pytest.mark.parametrize("words", [5, 30, 200])
def test_thinking_has_tokens_of_its_own(scripted, words):
    [answer] = scripted(
        ["so " * words + "</think>" + " it" * 3 + f" positive. {BEHIND}{BEHIND}"],
        chat=thinks(enable_thinking=True),
        decoding=replace(DECODING, thinking_tokens=120),
    )
    expected = ("label", "positive") if words < 100 else ("length", None)
    assert (answer.stopped, first_label(answer.response, LABELS)) == expected
    assert words < 100 or answer.tokens == 120


@pytest.mark.parametrize(
    "end",
    [
        {"config": {"max_position_embeddings": 70}}, {"reach": Reach(limit=70, why="?")},
        {"reach": Reach(switch=70)},
    ],
)  # fmt: skip
def test_thinking_never_takes_the_answers_context_or_goes_where_the_graph_is_wrong(scripted, end):
    [answer] = scripted(["so " * 200], chat=thinks(enable_thinking=True), **end)
    assert answer.stopped == "length"
    length, _ = scripted.session.widths[0]
    assert answer.tokens == 70 - length - DECODING.max_new_tokens


@pytest.mark.parametrize("spare", [0, -1])
def test_padding_keeps_clear_of_a_window_that_thinking_could_reach(scripted, spare):
    scripted(["so</think>x"], chat=thinks(enable_thinking=True))
    length, width = scripted.session.widths[0]
    assert length < width
    window = width + DECODING.thinking_tokens + DECODING.max_new_tokens + spare
    reach = Reach(slot_window=window)
    scripted(["so</think>x"], chat=thinks(enable_thinking=True), reach=reach)
    assert scripted.session.widths[0] == (length, length if spare else width)


def test_options_are_not_scored_inside_a_thinking_part(tmp_path):
    folder = demo_folder(tmp_path / "model", tokenizer_config={"chat_template": OPENS})
    request = GenerationRequest(prompt="Who?", options=("Maria", "Jack", "Unknown"))
    engine = OnnxDecoder(folder, decoding=DECODING, chat=thinks(enable_thinking=True))
    with pytest.raises(ModelError, match=r"opens a thinking part.*enable_thinking: false"):
        engine.score_options([request])
    assert len(OnnxDecoder(folder, decoding=DECODING).score_options([request])[0]) == 3


def test_the_fingerprint_follows_the_conversation_and_the_tokens_for_thinking():
    chats = [Chat(), Chat(system="Be brief."), thinks(enable_thinking=True), thinks(x=1)]
    prints = {OnnxDecoder(DEMO, decoding=DECODING, chat=chat).fingerprint for chat in chats}
    more = replace(DECODING, thinking_tokens=61)
    assert len(prints | {OnnxDecoder(DEMO, decoding=more).fingerprint}) == len(chats) + 1


OWN_TAGS = {
    "Gemma": (
        "{{ '<|channel>thought\n' + message.reasoning_content + '\n<channel|>' }}",
        ("<|channel>thought", "<channel|>"),
    ),
    "Qwen": (
        r"{{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content }}",
        ("<think>", "</think>"),
    ),
    "brackets": ('{{ "[PONDER]" ~ message["thinking"]|trim ~ "[/PONDER]" }}', ("[PONDER]", "[/PONDER]")),
    "a call": ("{{ '<plan>' + trim(m.thought) + '</plan>' }}", None),
    "the answer": ("{{ '<said>' + message.content + '</said>' }}", None),
    "no tag": ("{{ 'I think ' + message.thinking + ' so' }}", None),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN_TAGS)
def test_tags_of_thinking_are_those_of_the_template(name):
    source, pair = OWN_TAGS[name]
    assert thinking_in(source) == (() if pair is None else (pair,))


SPECIAL = ["<|channel>", "<channel|>", "[PONDER]", "[/PONDER]", "<|plan>", "<plan|>"]
TEMPLATES = {
    name: PLAIN + "{% if false %}" + OWN_TAGS[name][0] + "{% endif %}" for name in OWN_TAGS
}
BESIDE = {
    "the template's own": (
        "Gemma",
        "<|channel>thought it is negative<channel|>positive",
        "positive",
    ),
    "the prompt opens": ("Gemma", "it is negative<channel|>positive", "positive"),
    "not closed": ("Gemma", "<|channel>thought it is negative", None),
    "another template's": ("brackets", "<|channel>thought it is negative<channel|>positive", None),
    "another's, opened by the prompt": ("brackets", "it is negative<channel|>positive", None),
    "brackets": ("brackets", "[PONDER]negative[/PONDER]positive", "positive"),
    "unknown": ("Gemma", "<|plan>negative<plan|>positive", None),
    "no template": (None, "<|plan>negative<plan|>positive", None),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_control_token_in_an_answer_is_known_or_nothing_is_read(scripted, name):
    """Their tokens are special: they were dropped, and labels read from what stands between."""
    known = json.loads((DEMO / "tokenizer_config.json").read_text())["added_tokens_decoder"]
    for number, text in enumerate(SPECIAL):
        known[str(2048 + number)] = {**known["0"], "content": text, "special": True}
    template, said, label = BESIDE[name]
    found = scripted(
        [said], template and TEMPLATES[template], labels=(), more={"added_tokens_decoder": known}
    )
    assert first_label(found[0].response, LABELS) == label
