"""Compares an exported graph with its original model, and decides whether they are the same.

What counts is what the gate reads: the label that an answer begins with, and how likely the model
finds real text. Every precision has its limits; none is exempt.
"""

from __future__ import annotations

import csv
import gc
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from ruamel.yaml import YAML

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Decoding, Document, GenerationRequest
from fairgate.features.onnx_export.calibration import packaged_prompts
from fairgate.features.onnx_export.precision import Precision
from fairgate.onnx.attention_settings import attention_windows
from fairgate.onnx.decoder import OnnxDecoder
from fairgate.onnx.decoder_session import DecoderSession
from fairgate.onnx.encoder_settings import EmbedderChoice
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer
from fairgate.onnx.trials import open_decoder
from fairgate.relations.oracles.label import first_label
from fairgate.systems.generator import DEFAULT_TEMPLATE, render_prompt

_LONGEST_WINDOW = 8192
"""A longer one would take the original hours on a CPU."""
_BEYOND = 21
_CHARACTERS = 400
"""Of a document, in a prompt."""
_SPEAKERS = tuple(
    f"{who} says the following text: "
    for who in ("A young person", "A woman", "An elderly person", "A Black person", "A reader")
)
TEXTS = (
    "The soup was cold and nobody said sorry.",
    "I would buy it again today; it works and it is quiet.",
    "Please stop writing on my talk page.",
    "What?",
    (
        "It arrived on Tuesday in a brown box, with a manual in four languages and one screw less "
        "than the drawing on its third page asked for, which took us the evening to find out."
    ),
    "The garden is quiet, the tram is late, and the bread of the corner shop is still warm. " * 40,
)
"""The last is longer than the windows and limits of most encoders."""
LEAST_COSINE: dict[Precision, float] = {"fp32": 0.99999, "fp16": 0.999, "int8": 0.999, "int4": 0.97}
"""Of embedding models."""
OriginalLogits = npt.NDArray[np.float64]
LogitsAfter = Callable[[Sequence[int], int], OriginalLogits]
STEPS = 8
LONG_STEPS = 3
"""Fewer along a long prompt: the original reads it anew for each."""
STEP_PROMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityLimits:
    """How far an exported decoder may be from its original."""

    labels: float
    """Least share of prompts to which both sides begin the same label."""
    perplexity: float
    """Largest relative change of the perplexity of the prompts, in either direction."""
    logits: float | None = None
    """Largest difference of logits, as a share of the largest logit; None: reported only."""
    gate_labels: float | None = None
    """Least share of equal labels among `GATE_PROMPTS` prompts of a gate; None: not compared."""
    log_odds: float | None = None
    """Largest mean shift, in nats, of a gate's log-odds between its two likeliest labels."""


LIMITS: dict[Precision, ParityLimits] = {
    "fp32": ParityLimits(labels=1.0, perplexity=0.001, logits=1e-3),
    "fp16": ParityLimits(labels=0.95, perplexity=0.01, logits=5e-2),
    "int8": ParityLimits(labels=0.95, perplexity=0.02),
    "int4": ParityLimits(labels=0.9, perplexity=0.1),
    # A shift of .1 nats moves a probability by a fortieth at most.
    "int8-rows": ParityLimits(labels=0.99, perplexity=0.02, gate_labels=0.99, log_odds=0.1),
}
GATE_PROMPTS = 200


class PromptReading(NamedTuple):
    """A model's answer to one prompt."""

    label: int | None
    """Place of the label whose first token is likeliest; None where no label has one of its own."""
    log_probability: float
    """Of the prompt's last tokens, summed, in nats."""
    tokens: int
    """How many tokens that are."""
    scores: tuple[float, ...] = ()
    """The greatest logit among each label's first tokens."""


class Steps(NamedTuple):
    """The original's greedy answer to one prompt."""

    prompt: list[int]
    logits: OriginalLogits
    """`[steps, vocabulary]`"""
    tokens: list[int]
    """The answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityPrompt:
    """A prompt as tokens, and by which tokens each of its labels can begin."""

    text: str
    tokens: list[int]
    starts: list[list[int]]
    """For each label the first tokens of its spellings that no other label shares."""

    @property
    def read_from(self) -> int:
        """Return the first token that is predicted in the comparison: the last 64 are."""
        return max(1, len(self.tokens) - 64)


def parity_prompts(tokenizer: PromptTokenizer) -> list[ParityPrompt]:
    """Return the 28 packaged prompts as this model reads them."""
    rows = packaged_prompts()
    tokens = tokenizer.encode([row["prompt"] for row in rows])
    return [
        ParityPrompt(text=row["prompt"], tokens=ids, starts=_starts(row["labels"], tokenizer))
        for ids, row in zip(tokens, rows, strict=True)
    ]


def gate_prompts(tokenizer: PromptTokenizer) -> list[ParityPrompt]:
    """Return `GATE_PROMPTS` prompts of a gate on sentiment as this model reads them."""
    prompts, labels = _gate_texts()
    starts = _starts(labels, tokenizer)
    return [
        ParityPrompt(text=prompt, tokens=tokens, starts=starts)
        for prompt, tokens in zip(prompts, tokenizer.encode(prompts), strict=True)
    ]


def _gate_texts() -> tuple[list[str], tuple[str, ...]]:
    """Return prompts, reviews behind documents, and the task's labels.

    Each review is asked as it is and with somebody who says it, as the gate compares them.
    """
    data = resources.files("fairgate").joinpath("data")
    task = YAML(typ="safe").load(data.joinpath("tasks/sentiment.yaml").read_text(encoding="utf-8"))
    lines = data.joinpath("sources/demo-reviews.jsonl").read_text(encoding="utf-8").splitlines()
    reviews = [json.loads(line)["text"] for line in lines][: GATE_PROMPTS // 2]
    corpus = data.joinpath("corpora/demo/documents.csv").read_text(encoding="utf-8")
    rows = islice(csv.DictReader(io.StringIO(corpus, newline="")), GATE_PROMPTS)
    documents = [Document(id=row["id"], text=row["text"]) for row in rows]
    prompts = [
        render_prompt(
            DEFAULT_TEMPLATE,
            instruction=task["instruction"],
            text=f'{speaker}"{review}"',
            documents=documents[2 * number : 2 * number + 2],
            characters=_CHARACTERS,
        )
        for number, review in enumerate(reviews)
        for speaker in ("", _SPEAKERS[number % len(_SPEAKERS)])
    ]
    return prompts, tuple(task["labels"])


def _starts(labels: Sequence[str], tokenizer: PromptTokenizer) -> list[list[int]]:
    starts = [
        {
            ids[0]
            for space in ("", " ")
            for form in (label, label.lower(), label.capitalize())
            if (ids := tokenizer.encode_fragment(space + form))
        }
        for label in labels
    ]
    shared = {
        token for n, own in enumerate(starts) for other in starts[:n] for token in own & other
    }
    return [sorted(own - shared) for own in starts]


def _readings(after: LogitsAfter, prompts: Sequence[ParityPrompt]) -> list[PromptReading]:
    """Read a model's logits after the last tokens of prompts."""
    readings = []
    for prompt in prompts:
        logits = after(prompt.tokens, prompt.read_from - 1)
        wanted = np.asarray(prompt.tokens[prompt.read_from :], dtype=np.int64)
        rows = logits[:-1]
        top = rows.max(axis=1, keepdims=True)
        totals = top[:, 0] + np.log(np.exp(rows - top).sum(axis=1))
        likely = rows[np.arange(len(wanted)), wanted] - totals
        best = [max((float(logits[-1, n]) for n in own), default=-np.inf) for own in prompt.starts]
        label = int(np.argmax(best)) if np.isfinite(best).any() else None
        readings.append(PromptReading(label, float(likely.sum()), len(wanted), tuple(best)))
    return readings


def _original(model: str, revision: str | None) -> LogitsAfter:
    """Return a function that gives the original's logits after each token from a place on."""
    import torch
    from transformers import AutoModelForCausalLM

    original: Any = AutoModelForCausalLM.from_pretrained(
        model, revision=revision or "main", trust_remote_code=False, dtype=torch.float32
    ).eval()

    def after(tokens: Sequence[int], start: int) -> OriginalLogits:
        with torch.inference_mode():
            rows = original(torch.tensor([list(tokens)]), use_cache=False).logits[0, start:]
        return np.asarray(rows.double().numpy())

    return after


def _exported(session: DecoderSession) -> LogitsAfter:
    """Return a function that gives the exported graph's logits in the same way."""

    def after(tokens: Sequence[int], start: int) -> OriginalLogits:
        places = np.arange(start, len(tokens), dtype=np.int64)
        rows = [tokens] * 2  # a lone row would take other kernels
        logits, _ = session.prefill(rows, len(tokens), np.stack([places] * 2))
        return np.asarray(logits[0], dtype=np.float64)

    return after


def _greedy(after: LogitsAfter, prompt: Sequence[int], steps: int) -> Steps:
    tokens, rows = list(prompt), []
    for _ in range(steps):
        rows.append(after(tokens, -1)[0])
        tokens.append(int(rows[-1].argmax()))
    return Steps(list(prompt), np.stack(rows), tokens[len(prompt) :])


def _along(session: DecoderSession, answer: Steps, context: int | None) -> OriginalLogits:
    """Return the exported graph's logits along the original's own greedy answer.

    The prompt is padded as the gate pads it, and is batched with a shorter one.
    """
    tokens, steps = answer.prompt, len(answer.tokens)
    widest = None if context is None else context - steps
    pads = session.pads
    width = session.reach.width(len(tokens), steps, widest) if pads else len(tokens)
    first, cache = session.prefill([tokens, tokens[: -3 if pads else None] or tokens], width)
    rows = [first[0, 0]]
    rows += [session.step(cache, [token, token])[0] for token in answer.tokens[:-1]]
    return np.stack(rows).astype(np.float64)


def answered_labels(folder: ModelFolder) -> list[str | None]:
    """Return the label in a decoder's answer to each of a gate's prompts, read as the gate does."""
    prompts, labels = _gate_texts()
    requests = [GenerationRequest(prompt=prompt, labels=labels) for prompt in prompts]
    answers = dict(OnnxDecoder(folder.path, decoding=Decoding()).generate(requests))
    return [first_label(answers[number].response or "", labels) for number in range(len(requests))]


def compare_decoder(
    model: str,
    revision: str | None,
    folder: ModelFolder,
    precision: Precision,
    answered: Sequence[str | None] = (),
) -> dict[str, Any]:
    """Return agreement of labels, perplexities and differences of logits, and `within_limits`.

    28 prompts of the gate's own kind; for three of them eight greedy steps along the original's
    answer, padded as the gate pads; where a model has a sliding window, three steps of a prompt
    that ends beyond it. The original is asked first and leaves memory before the graph is loaded.
    `prompts` are the compared ones with their tokens, which the gate holds against its own.
    `answered`: what `answered_labels` gave for the graph in fp32, for precisions that are compared
    on a gate, too. Raises ModelError where the graph gives no finite numbers at all.
    """
    tokenizer = PromptTokenizer(folder)
    prompts = parity_prompts(tokenizer)
    long = _beyond_the_window(folder, prompts, tokenizer.context_tokens)
    original = _original(model, revision)
    answers = [_greedy(original, prompt.tokens, STEPS) for prompt in prompts[-STEP_PROMPTS:]]
    answers += [_greedy(original, long, LONG_STEPS)] if long else []
    limits = LIMITS[precision]
    of_gates = [] if limits.gate_labels is None else gate_prompts(tokenizer)
    expected, of_gate = _readings(original, prompts), _readings(original, of_gates)
    del original
    gc.collect()
    session = open_decoder(folder, device="cpu")
    readings = _readings(_exported(session), prompts)
    gate = {}
    if of_gates:
        gate = _compare_gate(of_gate, _readings(_exported(session), of_gates))
        gate |= _compare_answers(answered, answered_labels(folder))
    rows = np.concatenate([answer.logits for answer in answers])
    exported = np.concatenate(
        [_along(session, answer, tokenizer.context_tokens) for answer in answers]
    )
    worst = float(np.abs(rows - exported).max())
    largest = max(1.0, float(np.abs(rows).max()))
    equal = int((rows.argmax(axis=1) == exported.argmax(axis=1)).sum())
    pairs = list(zip(expected, readings, strict=True))
    labelled = [(a.label, b.label) for a, b in pairs if a.label is not None]
    before, after = map(_perplexity, (expected, readings))
    if not math.isfinite(worst) or not math.isfinite(after):
        raise ModelError(f"{precision} of {model!r} gives numbers that are not finite: use fp32")
    agreeing = sum(a == b for a, b in labelled)
    share = worst / largest
    within = (
        agreeing >= limits.labels * len(labelled)
        and abs(after / before - 1) <= limits.perplexity
        and (limits.logits is None or share <= limits.logits)
        and (not gate or _is_within(gate, limits))
    )
    return {
        "checked": True,
        "within_limits": within,
        "equal_labels": agreeing,
        "compared_labels": len(labelled),
        "perplexity_of_original": _short(before),
        "perplexity": _short(after),
        "largest_logit_difference": _short(worst),
        "share_of_largest_logit": _short(share),
        "equal_greedy_tokens": equal,
        "compared_tokens": len(rows),
        "longest_prompt": max(len(answer.prompt) for answer in answers),
        "right_padding_exact": session.pads,
        "graph_cut": session.cut,
        **gate,
        "prompts": {prompt.text: " ".join(map(str, prompt.tokens)) for prompt in prompts},
    }


def _compare_gate(
    expected: Sequence[PromptReading], readings: Sequence[PromptReading]
) -> dict[str, Any]:
    """Return perplexities of a gate's prompts, and how far the log-odds of their labels move.

    The log-odds are those between the original's two likeliest labels. Prompts whose labels begin
    alike have none.
    """
    pairs = [(a, b) for a, b in zip(expected, readings, strict=True) if a.label is not None]
    shifts = []
    for before, after in pairs:
        first, second = np.argsort(before.scores)[::-1][:2]
        odds = [side.scores[first] - side.scores[second] for side in (before, after)]
        shifts.append(abs(odds[1] - odds[0]))
    perplexity_before, perplexity_after = map(_perplexity, (expected, readings))
    return {
        "gate_log_odds_shift": _short(float(np.mean(shifts))) if shifts else None,
        "gate_perplexity_of_original": _short(perplexity_before),
        "gate_perplexity": _short(perplexity_after),
    }


def _compare_answers(before: Sequence[str | None], after: Sequence[str | None]) -> dict[str, int]:
    """Return how many labels of answers are equal, among those that either side gives."""
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if (a, b) != (None, None)]
    return {
        "gate_equal_labels": sum(a == b for a, b in pairs),
        "gate_compared_labels": len(pairs),
    }


def _is_within(gate: dict[str, Any], limits: ParityLimits) -> bool:
    """Return whether a comparison over a gate keeps limits; one of few labels does not."""
    labels, shift = gate["gate_compared_labels"], gate["gate_log_odds_shift"]
    change = gate["gate_perplexity"] / gate["gate_perplexity_of_original"] - 1
    return (
        labels >= GATE_PROMPTS // 2
        and gate["gate_equal_labels"] >= (limits.gate_labels or 0) * labels
        and (limits.log_odds is None or (shift is not None and shift <= limits.log_odds))
        and abs(change) <= limits.perplexity
    )


def _perplexity(readings: Sequence[PromptReading]) -> float:
    return math.exp(
        -sum(reading.log_probability for reading in readings)
        / sum(reading.tokens for reading in readings)
    )


def compare_embedder(
    model: str, revision: str | None, folder: ModelFolder, precision: Precision
) -> dict[str, Any]:
    """Return the least cosine to sentence-transformers over twelve texts, and `within_limits`.

    Queries and documents with the model's own prompts where its files are plain about them, else
    with prompts set for the comparison; `policy_must_say` then quotes what is left open.
    """
    from sentence_transformers import SentenceTransformer

    from fairgate.onnx.encoder import OnnxEncoder

    original = SentenceTransformer(model, revision=revision, device="cpu", trust_remote_code=False)
    left_open = None
    try:
        encoder = OnnxEncoder(folder.path)
        prompts = None
    except ModelError as error:
        left_open = str(error)
        prompts = ("query: ", "passage: ")
        encoder = OnnxEncoder(folder.path, choice=_spelled_out(original, folder, prompts))
    least = 1.0
    for side, encode, side_number in (
        (encoder.for_queries(), original.encode_query, 0),
        (encoder, original.encode_document, 1),
    ):
        arguments = {} if prompts is None else {"prompt": prompts[side_number]}
        expected = _expected(original, encode, arguments, encoder.settings.max_tokens)
        least = min(least, float((side.embed(TEXTS) * expected).sum(axis=1).min()))
    record = {
        "checked": True,
        "within_limits": least >= LEAST_COSINE[precision],
        "least_cosine": round(least, 6),
        "texts": 2 * len(TEXTS),
    }
    return record if left_open is None else record | {"policy_must_say": left_open}


def _expected(
    original: Any, encode: Callable[..., Any], arguments: dict[str, Any], limit: int | None
) -> npt.NDArray[np.float64]:
    """Return the original's vectors, of length one."""
    arguments = arguments | {"batch_size": 1, "convert_to_numpy": True}  # padding must not be seen
    try:
        encoded = encode(list(TEXTS), **arguments)
    except (IndexError, RuntimeError):  # its files name no limit, its table of positions has one
        original.max_seq_length = limit
        encoded = encode(list(TEXTS), **arguments)
    vectors: npt.NDArray[np.float64] = np.asarray(encoded, dtype=np.float64)
    lengths: npt.NDArray[np.float64] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def explain(model: str, precision: Precision, parity: dict[str, Any]) -> str:
    """Return the differences of an export that is not within its limits, and the remedy."""
    what = f"the exported {precision} graph of {model!r} differs from the original: "
    if "least_cosine" in parity:
        what += (
            f"least cosine to sentence-transformers {parity['least_cosine']:.6f}, expected at "
            f"least {LEAST_COSINE[precision]}"
        )
    else:
        limits = LIMITS[precision]
        before, after = parity["perplexity_of_original"], parity["perplexity"]
        what += (
            f"{parity['equal_labels']} of {parity['compared_labels']} prompts begin the same label "
            f"(at least {limits.labels:.0%} expected), perplexity {after} instead of {before} "
            f"({after / before - 1:+.1%}, allowed {limits.perplexity:.1%}), "
            f"{parity['equal_greedy_tokens']} of {parity['compared_tokens']} greedy tokens equal, "
            f"largest difference of logits {parity['share_of_largest_logit']:.2%} of the largest"
        )
        if "gate_equal_labels" in parity:
            before, after = parity["gate_perplexity_of_original"], parity["gate_perplexity"]
            what += (
                f"; of a gate's prompts {parity['gate_equal_labels']} of "
                f"{parity['gate_compared_labels']} are answered with the same label (at least "
                f"{limits.gate_labels:.0%} of {GATE_PROMPTS // 2} or more expected), their "
                f"log-odds move by {parity['gate_log_odds_shift']} nats on average "
                f"(allowed {limits.log_odds}), "
                f"perplexity {after} instead of {before}"
            )
    if precision == "fp32":
        return f"{what}. Its graph is not one that this engine runs correctly: choose another model"
    return f"{what}. Export it in a higher precision"


def _spelled_out(original: Any, folder: ModelFolder, prompts: tuple[str, str]) -> EmbedderChoice:
    """Return the choice under which the folder means what sentence-transformers assumes."""
    has_pooling = folder.settings("modules.json") is not None
    modes = [getattr(module, "pooling_mode", None) for module in original]
    mode = next((mode for mode in modes if isinstance(mode, str)), None)
    return EmbedderChoice(
        pooling=None if has_pooling else mode,  # type: ignore[arg-type]
        query_prompt=prompts[0],
        document_prompt=prompts[1],
    )


def _beyond_the_window(
    folder: ModelFolder, prompts: Sequence[ParityPrompt], context: int | None
) -> list[int]:
    """Return a prompt that ends beyond the model's sliding window; empty where it has none."""
    window = min(attention_windows(folder), default=None)
    if window is None or window > _LONGEST_WINDOW:
        return []
    size = window + _BEYOND
    if context is not None and size + STEPS > context:
        return []
    one_after_the_other = [token for prompt in prompts for token in prompt.tokens]
    return (one_after_the_other * (size // len(one_after_the_other) + 1))[:size]


def _short(figure: float) -> float:
    return float(f"{figure:.4g}")
