"""One request on its way to an answer: its tokens, whether it thinks, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.executions import Answer, Decoding, Stop
from fairgate.onnx.label_margin import LabelTrace
from fairgate.onnx.prompts import PromptTokenizer
from fairgate.onnx.sampling import choose_token
from fairgate.relations.oracles.stopping import is_complete
from fairgate.relations.oracles.thinking import (
    THINKING_TAGS,
    closes_thinking,
    has_tag,
    spoken_spans,
)

_TAG_TOKENS = 32
"""A closing tag lies in the last so many tokens: the longest has 27 characters."""


@dataclass(slots=True, kw_only=True, eq=False)
class AnswerRow:
    """A row of a batch. It depends on no other row, so that its answer does not either."""

    position: int
    prompt: list[int]
    prompts: PromptTokenizer
    decoding: Decoding
    stop: Stop | None
    rng: np.random.Generator
    trace: LabelTrace | None
    opening: str
    """Tag by which the prompt has opened the answer's thinking; its text begins with it."""
    may_think_for: int
    """Tokens of thinking beside those of the answer."""
    tokens: list[int] = field(default_factory=list)
    last_token: int = 0
    text: str = ""
    is_thinking: bool = False
    is_unmarked: bool = False
    """Whether a closing tag may still mark all of it as thinking."""
    thought: int = 0
    """Tokens of thinking so far."""
    stopped: str | None = None
    is_read: bool = field(init=False)
    """Whether anything but the number of tokens decides when the answer ends."""

    def __post_init__(self) -> None:
        """Tell what does not change from token to token."""
        thinks = bool(self.opening) or self.may_think_for > 0 or self.prompts.may_close
        self.is_read = thinks or self.stop is not None or self.trace is not None

    def take(self, logits: npt.NDArray[Any], likeliest: int) -> None:
        """Choose the next token from finite logits [vocabulary]; `stopped` tells why it ended.

        `likeliest`: the first token with the greatest logit.
        """
        greedy = self.decoding.is_greedy
        token = likeliest if greedy else choose_token(logits, self.decoding, self.rng)
        self.last_token = token
        if token in self.prompts.end_tokens:
            self.stopped = "end"
            return
        self.tokens.append(token)
        if self.is_read:
            self._read()
        if self.trace is not None and not self.is_thinking:
            self.trace.add(logits, token, len(self.text))
        if self._is_complete():
            self.stopped = "label"
        elif self._is_full():
            self.stopped = "length"
            if self.is_unmarked:
                # It was cut before it showed whether it was thinking: nothing of it is an answer.
                self.opening = THINKING_TAGS[0][0]

    def answer(self) -> Answer:
        """Return the answer as far as it goes."""
        text = self.opening + self.prompts.decode(self.tokens)
        return Answer(
            text=text,
            margin=self.trace.margin(text) if self.trace else None,
            tokens=len(self.tokens),
            stopped=self.stopped or "length",
        )

    def _read(self) -> None:
        """Update the text where a decision depends on it."""
        # Thinking is long: its text is put together again only where a tag may have closed it.
        if self.is_thinking and not closes_thinking(
            self.prompts.decode(self.tokens[-_TAG_TOKENS:])
        ):
            self.thought += 1
            return
        self.text = self.opening + self.prompts.decode(self.tokens)
        self.is_thinking = spoken_spans(self.text)[1]
        self.is_unmarked = self.prompts.may_close and not has_tag(self.text)
        self.thought += self.is_thinking or self.is_unmarked

    def _is_complete(self) -> bool:
        if self.stop is None or self.is_thinking or self.is_unmarked:
            return False
        return is_complete(self.text, self.stop)

    def _is_full(self) -> bool:
        """Return whether no further token is allowed; those of thinking are counted apart."""
        if (self.is_thinking or self.is_unmarked) and self.may_think_for:
            return self.thought >= self.may_think_for
        answered = len(self.tokens) - min(self.thought, self.may_think_for)
        return answered >= self.decoding.max_new_tokens
