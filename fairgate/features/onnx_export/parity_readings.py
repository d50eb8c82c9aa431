"""The answers of both sides of an export to the same prompts, in numbers that fit into memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.features.onnx_export.parity_prompts import ParityPrompt
from fairgate.onnx.decoder_session import DecoderSession

Logits = npt.NDArray[np.float64]
LogitsAfter = Callable[[Sequence[int], int], Logits]
STEPS = 8
LONG_STEPS = 3
"""Fewer along a long prompt: the original reads it anew for each."""
STEP_PROMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A model's answer to one prompt."""

    label: int | None
    """Place of the label whose first token is likeliest; None where no label has one of its own."""
    log_probability: float
    """Of the prompt's last tokens, summed, in nats."""
    tokens: int
    """How many tokens that are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The original's greedy answer to one prompt."""

    prompt: list[int]
    logits: Logits
    """`[steps, vocabulary]`"""
    tokens: list[int]
    """The answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """All that is asked of the original; it can leave memory afterwards."""

    readings: list[Reading]
    steps: list[Steps]


def read(logits: Logits, prompt: ParityPrompt) -> Reading:
    """Return the reading from the logits after each token from `read_from - 1` to the last."""
    wanted = np.asarray(prompt.tokens[prompt.read_from :], dtype=np.int64)
    rows = logits[:-1]
    top = rows.max(axis=1, keepdims=True)
    totals = top[:, 0] + np.log(np.exp(rows - top).sum(axis=1))
    log_probabilities = rows[np.arange(len(wanted)), wanted] - totals
    best = [max((float(logits[-1, one]) for one in own), default=-np.inf) for own in prompt.starts]
    return Reading(
        label=int(np.argmax(best)) if np.isfinite(best).any() else None,
        log_probability=float(log_probabilities.sum()),
        tokens=len(wanted),
    )


def exported_readings(session: DecoderSession, prompts: Sequence[ParityPrompt]) -> list[Reading]:
    """Return the exported graph's answers."""
    found = []
    for prompt in prompts:
        places = np.arange(prompt.read_from - 1, len(prompt.tokens), dtype=np.int64)
        rows = [prompt.tokens] * 2  # a lone row would take other kernels
        logits, _ = session.prefill(rows, len(prompt.tokens), np.stack([places] * 2))
        found.append(read(logits[0].astype(np.float64), prompt))
    return found


def exported_steps(
    session: DecoderSession, reference: Steps, context: int | None
) -> Iterator[Logits]:
    """Yield the exported graph's logits along the original's own greedy answer.

    The prompt is padded as the gate pads it, and is batched with a shorter one.
    """
    tokens, steps = reference.prompt, len(reference.tokens)
    widest = None if context is None else context - steps
    pads = session.pads
    width = session.reach.width(len(tokens), steps, widest) if pads else len(tokens)
    first, cache = session.prefill([tokens, tokens[: -3 if pads else None] or tokens], width)
    found = first[0, 0]
    for token in reference.tokens:
        yield found.astype(np.float64)
        found = session.step(cache, [token, token])[0]


def ask_original(
    model: str, revision: str | None, prompts: Sequence[ParityPrompt], long: Sequence[int]
) -> Original:
    """Return the original's answers, in torch, in fp32; it is out of memory afterwards.

    `long` is a further prompt to answer, none where it is empty.
    """
    found = _ask(_logits_of(model, revision), prompts, long)
    gc.collect()
    return found


def _ask(after: LogitsAfter, prompts: Sequence[ParityPrompt], long: Sequence[int]) -> Original:
    steps = [_greedy(after, one.tokens, STEPS) for one in prompts[-STEP_PROMPTS:]]
    return Original(
        readings=[read(after(one.tokens, one.read_from - 1), one) for one in prompts],
        steps=[*steps, _greedy(after, long, LONG_STEPS)] if long else steps,
    )


def _logits_of(model: str, revision: str | None) -> LogitsAfter:
    """Return a function that gives the original's logits after each token from a place on."""
    import torch
    from transformers import AutoModelForCausalLM

    original: Any = AutoModelForCausalLM.from_pretrained(
        model, revision=revision or "main", trust_remote_code=False, dtype=torch.float32
    ).eval()

    def after(tokens: Sequence[int], start: int) -> Logits:
        with torch.inference_mode():
            rows = original(torch.tensor([list(tokens)]), use_cache=False).logits[0, start:]
        return np.asarray(rows.double().numpy())

    return after


def _greedy(after: LogitsAfter, prompt: Sequence[int], steps: int) -> Steps:
    tokens, rows = list(prompt), []
    for _ in range(steps):
        rows.append(after(tokens, -1)[0])
        tokens.append(int(rows[-1].argmax()))
    return Steps(prompt=list(prompt), logits=np.stack(rows), tokens=tokens[len(prompt) :])
