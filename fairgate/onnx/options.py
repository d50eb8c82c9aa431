"""Texts that could follow a prompt, and their log-probabilities: what they share is read once.

The tokens of options form a tree behind the prompt. A *context* is a path through it without its
last token, of which no logits are needed; a context that another one begins with is read as a part
of that one. So the labels of an answer cost nothing beside the prompt where each is one token, and
further forms (`- positive`, `The sentiment is positive`) the tokens of their beginnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from fairgate.domain.degrees import Degrees
from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Execution

if TYPE_CHECKING:
    from fairgate.onnx.decoder_session import Cache, Logits
    from fairgate.onnx.prompt_blocks import PromptBatch, Read

TokenIds = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """Tokens that are read, and the tokens that options have behind each of the last ones."""

    tokens: list[int]
    start: int
    """After how many of them logits are read first: at least 1."""
    following: tuple[TokenIds, ...]
    """By position from there on: what options go on with."""

    def read(self, logits: npt.NDArray[Any]) -> list[dict[int, float]]:
        """Return the log-probabilities (nats) of what follows each position.

        `logits` `[positions or more, vocabulary]`. Raises ModelError where they are not finite.
        """
        positions = zip(logits, self.following, strict=False)
        return [_log_probabilities(own, tokens) for own, tokens in positions]


@dataclass(frozen=True, slots=True)
class OptionTokens:
    """The options of one prompt as paths through the contexts that are read for them."""

    tokens: tuple[TokenIds, ...]
    """Of each option: its tokens behind what all begin with."""
    contexts: tuple[Context, ...]
    """The longest ones, in the order of their tokens."""
    context_indices: tuple[int, ...]
    """Of each option: which of the contexts it is read in."""

    @classmethod
    def of(cls, prompt: Sequence[int], *whole: Sequence[int]) -> Self:
        """Take the tokens of the prompt, and those of prompt and option together, per option."""
        start = max(1, min((_common(prompt, tokens) for tokens in whole), default=0))
        before = list(whole[0][:start]) if whole else []
        tokens = tuple(tuple(option[start:]) for option in whole)
        # In this order those that begin with a context stand directly behind it.
        paths = sorted({option[:-1] for option in tokens if option})
        longest = [
            path
            for number, path in enumerate(paths, 1)
            if number == len(paths) or paths[number][: len(path)] != path
        ]
        context_indices = tuple(
            next((n for n, path in enumerate(longest) if path[: len(option) - 1] == option[:-1]), 0)
            for option in tokens
        )
        following = [[set[int]() for _ in range(len(path) + 1)] for path in longest]
        for option, number in zip(tokens, context_indices, strict=True):
            for position, token in enumerate(option):
                following[number][position].add(token)
        contexts = tuple(
            Context([*before, *path], start, tuple(tuple(sorted(choices)) for choices in behind))
            for path, behind in zip(longest, following, strict=True)
        )
        return cls(tokens, contexts, context_indices)

    @property
    def looked_up(self) -> set[int]:
        """Return all tokens whose log-probabilities are looked up."""
        return {token for option in self.tokens for token in option}

    def summed(self, read: Sequence[Sequence[dict[int, float]]]) -> list[float]:
        """Return each option's log-probability, by what was read of each context."""
        return [
            sum(read[number][position][token] for position, token in enumerate(option))
            for option, number in zip(self.tokens, self.context_indices, strict=True)
        ]


NO_OPTIONS = OptionTokens((), (), ())


class ScoredForms:
    """Forms that are scored while answers are generated; answers wait for their degrees."""

    def __init__(
        self, forms: Mapping[int, Sequence[tuple[str, str]]], tokens: Sequence[OptionTokens]
    ) -> None:
        """Take the forms by the position of their request, and the tokens of all requests."""
        self._forms = forms
        self._tokens = tokens
        self._contexts = [
            (position, number, context)
            for position in forms
            for number, context in enumerate(tokens[position].contexts)
        ]
        self._read: dict[int, dict[int, list[dict[int, float]]]] = {form: {} for form in forms}
        self._waiting: dict[int, Execution] = {}

    @property
    def rows(self) -> list[Read]:
        """The contexts, as they are read."""
        return [(context.tokens, context.start) for _, _, context in self._contexts]

    def watching(self, batch: PromptBatch, first: int) -> PromptBatch:
        """Return the batch as one that hands over what it reads of contexts: rows from `first`."""

        def prefill() -> tuple[Logits, Cache]:
            logits, cache = batch.prefill()
            for own, row in zip(logits, batch.row_indices, strict=False):
                if row >= first:
                    position, number, context = self._contexts[row - first]
                    self._read[position][number] = context.read(own)
            return logits, cache

        return batch._replace(prefill=prefill) if self._contexts else batch

    def completed(
        self, answers: Iterable[tuple[int, Execution]]
    ) -> Iterator[tuple[int, Execution]]:
        """Yield answers by position, each as soon as its forms are scored, too."""
        for position, answer in answers:
            if position not in self._forms:
                yield position, answer
                continue
            self._waiting[position] = answer
            yield from self._ready()
        yield from self._ready()

    def _ready(self) -> Iterator[tuple[int, Execution]]:
        for position in list(self._waiting):
            options, read = self._tokens[position], self._read[position]
            if len(read) == len(options.contexts):
                nats = options.summed([read[number] for number in range(len(read))])
                labels = [label for label, _ in self._forms[position]]
                degrees = Degrees.summed(labels, nats)
                yield position, self._waiting.pop(position)._replace(degrees=degrees)


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the number of tokens that two sequences begin with in common."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _log_probabilities(logits: npt.NDArray[Any], tokens: TokenIds) -> dict[int, float]:
    scores = logits.astype(np.float64)
    top = scores.max()
    if not np.isfinite(top):
        raise ModelError("the decoder returned logits that are not finite; export it in fp32.")
    total = top + np.log(np.exp(scores - top).sum())
    return {token: float(scores[token] - total) for token in tokens}
