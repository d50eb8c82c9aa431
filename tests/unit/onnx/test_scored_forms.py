"""Forms scored beside an answer: no bit of either depends on the other, or on how they were run."""

import pytest
from fakes.decoders import DEMO

from fairgate.domain.degrees import Degrees
from fairgate.domain.executions import Decoding, GenerationRequest, Stop
from fairgate.onnx import prompt_blocks
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession

LABELS = ("positive", "negative", "neutral")
FORMS = tuple(
    (label, prefix + word)
    for prefix in ("", "- ", "The sentiment of the text is ")
    for label in LABELS
    for word in (label, label.capitalize())
)
DECODING = Decoding(max_new_tokens=12)


def requests(forms=FORMS):
    """Prompts of unlike lengths, two of them equal, and one without forms."""
    texts = [f"A person says: {'it was fine. ' * n}What is the sentiment?" for n in (0, 1, 5, 9, 5)]
    stop = Stop(phrases=LABELS)
    asked = [
        GenerationRequest(prompt=text, labels=LABELS, stop=stop, seed=n, forms=forms)
        for n, text in enumerate(texts)
    ]
    return [*asked, GenerationRequest(prompt=texts[2] + " Answer:", labels=LABELS, stop=stop)]


def answered(asked, **options):
    engine = OnnxDecoder(DEMO, decoding=DECODING, **options)
    found = dict(engine.generate(asked))
    return [found[position] for position in range(len(asked))]


@pytest.fixture(scope="module")
def alone():
    return [answered([each], threads=1)[0] for each in requests()]


def test_degrees_are_those_of_scoring_alone_and_the_answer_that_without_them(alone):
    plain = answered(requests(forms=()), threads=1)
    texts = tuple(text for _, text in FORMS)
    scored = OnnxDecoder(DEMO, decoding=DECODING).score_options(
        [GenerationRequest(prompt=each.prompt, options=texts) for each in requests()]
    )
    for own, without, nats, request in zip(alone, plain, scored, requests(), strict=True):
        assert (own.response, own.margin, own.tokens) == (
            without.response,
            without.margin,
            without.tokens,
        )
        expected = Degrees.summed([label for label, _ in FORMS], nats) if request.forms else None
        assert own.degrees == expected
        assert without.degrees is None
    assert all(0 < one.degrees.mass <= 1 for one in alone[:-1])


WAYS = [
    (batch_size, kept_bytes, threads, is_reversed)
    for batch_size in (1, 3, 32)
    for kept_bytes, threads in ((0, 1), (10**6, 2), (2**28, 2))
    for is_reversed in (False, True)
]


@pytest.mark.parametrize(
    "ways", [WAYS[::5], pytest.param(WAYS, marks=pytest.mark.whole)], ids=["some", "all"]
)
@pytest.mark.parametrize("joins", [True, False], ids=["joint rows", "batches"])
def test_no_bit_depends_on_batches_orders_cuts_or_threads(alone, joins, ways, monkeypatch):
    if not joins:
        start = DecoderSession.__init__

        def apart(self, *given, **options):
            start(self, *given, **options)
            self.joins = False

        monkeypatch.setattr(DecoderSession, "__init__", apart)
    wrong = []
    for batch_size, kept_bytes, threads, is_reversed in ways:
        monkeypatch.setattr(prompt_blocks, "KEPT_BYTES", kept_bytes)
        step = -1 if is_reversed else 1
        answers = answered(requests()[::step], batch_size=batch_size, threads=threads)
        if answers != alone[::step]:
            wrong.append((batch_size, kept_bytes, threads, is_reversed))
    assert not wrong
