"""One row of a batch on its way to an answer: each token, the label's margin, and the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.executions import Decoding, Execution, Stop
from fairgate.onnx.prompts import PromptTokenizer
from fairgate.relations.oracles.label import label_place
from fairgate.relations.oracles.statements import is_complete
from fairgate.relations.oracles.text import (
    THINKING_TAGS,
    Pairs,
    closes_thinking,
    has_tag,
    spoken_spans,
)

_TAG_TOKENS = 32
"""A closing tag lies within this many tokens of the end: the longest has 27 characters."""
Probabilities = npt.NDArray[np.float64]
Tokens = tuple[int, ...]


def token_probabilities(logits: npt.NDArray[Any], decoding: Decoding) -> Probabilities:
    """Return `[vocabulary]` probabilities that sum to 1; dropped tokens have exactly 0.

    Top-k keeps ties with the k-th; top-p keeps the smallest set of most probable tokens whose
    mass reaches `top_p`, ties by lower token id, always at least one. Greedy puts all mass on
    the first maximum.
    """
    scores = logits.astype(np.float64)
    if decoding.is_greedy:
        chosen = np.zeros_like(scores)
        chosen[scores.argmax()] = 1.0
        return chosen
    scores /= decoding.temperature
    tokens = np.arange(scores.size)
    if 0 < decoding.top_k < scores.size:
        cut = scores.size - decoding.top_k
        tokens = np.flatnonzero(scores >= np.partition(scores, cut)[cut])
    weights = np.exp(scores[tokens] - scores[tokens].max())
    if decoding.top_p < 1.0:
        # By score: weights of scores that differ in the last bits are equal.
        order = np.argsort(-scores[tokens], kind="stable")
        mass = np.cumsum(weights[order]) / weights.sum()
        number = int(np.searchsorted(mass, decoding.top_p, side="left")) + 1
        inside = np.sort(order[:number])
        tokens, weights = tokens[inside], weights[inside]
    result = np.zeros_like(scores)
    result[tokens] = weights / weights.sum()
    return result


def choose_token(logits: npt.NDArray[Any], decoding: Decoding, rng: np.random.Generator) -> int:
    """Return a token id; draws one number from `rng` unless greedy.

    Greedy, or drawn after temperature, top-k and top-p. The warpers are applied in this order, that
    of `transformers`, and keep the same tokens. One uniform number is drawn per token, so an answer
    depends on its seed alone.
    """
    if decoding.is_greedy:
        return int(logits.argmax())
    probabilities = token_probabilities(logits, decoding)
    tokens = np.flatnonzero(probabilities)
    mass = np.cumsum(probabilities[tokens])
    rank = int(np.searchsorted(mass, rng.random() * mass[-1], side="right"))
    return int(tokens[min(rank, tokens.size - 1)])


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTokens:
    """The token sequences that can express each label."""

    variants: dict[str, frozenset[Tokens]]
    """By label, lower case."""
    tracked: npt.NDArray[np.int64]
    """All tokens of all variants, ascending: the logits worth remembering."""

    @classmethod
    def of(cls, labels: Sequence[str], splits: Callable[[str], Iterable[Tokens]]) -> LabelTokens:
        """Split every variant of every label in every way."""
        variants = {
            label.lower(): frozenset(
                tokens
                for space in ("", " ")
                for form in (label.lower(), label.capitalize(), label.upper(), label)
                for tokens in splits(space + form)
            )
            for label in labels
        }
        tokens = {token for forms in variants.values() for form in forms for token in form}
        return cls(variants=variants, tracked=np.array(sorted(tokens), dtype=np.int64))


@dataclass(slots=True)
class LabelTrace:
    """Logits of each step of one answer, from which its margin is computed.

    The margin is how clearly the model preferred the label it chose over the best other one. A
    label has variants: with and without a leading space, in lower case, capitalised and upper case,
    each split into tokens as it is at the beginning of an answer, after a line end and after
    punctuation. Where the answer has a label from its token t_0 on, compare with every other label
    at the first token t_j at which they part: the first j where t_j continues no variant of the
    other label that began t_0 … t_{j-1}. There a label's probability is the sum over the distinct
    next tokens of its variants that began so (for the chosen label, t_j included); tokens that
    could begin either label count for neither. The margin is the smallest difference of
    log-probabilities, said minus other, in nats, from the model's own softmax (temperature 1,
    nothing cut off). Other labels that never part, because one is a prefix of the answer's tokens,
    do not count.
    """

    labels: LabelTokens
    stop: Stop | None = None
    """What ends the answer: from where it is read, and what it may repeat."""
    steps: list[tuple[int, dict[int, float]]] = field(default_factory=list)
    """The token taken, and the logits of the tracked tokens and of that one.

    Of log-probabilities only differences count, in which the softmax's sum over the vocabulary
    cancels out: it is not computed.
    """
    ends: list[int] = field(default_factory=list)
    """Length of the answer's text after each step."""

    def add(self, logits: npt.NDArray[Any], token: int, text_length: int) -> None:
        """Store one step."""
        tracked_tokens = self.labels.tracked
        tracked_logits = logits[tracked_tokens].astype(np.float64).tolist()
        scores = dict(zip(tracked_tokens.tolist(), tracked_logits, strict=True))
        scores[token] = float(logits[token])
        self.steps.append((token, scores))
        self.ends.append(text_length)

    def margin(self, text: str) -> float | None:
        """Return the margin of the label that `text` says, to 4 decimals; None if undefined."""
        names = tuple(self.labels.variants)
        stop = self.stop or Stop(phrases=names)
        match = label_place(text, replace(stop, phrases=names, choice=False))
        if match is None:
            return None
        chosen, character = match
        begin = next((step for step, end in enumerate(self.ends) if end > character), None)
        if begin is None:
            return None
        margins = [self._difference(chosen, other, begin) for other in names if other != chosen]
        finite = [margin for margin in margins if margin is not None and np.isfinite(margin)]
        return round(min(finite), 4) if finite else None

    def _difference(self, chosen: str, other: str, begin: int) -> float | None:
        """Return log p(chosen) - log p(other) where they first differ; None if they never do."""
        prefix: Tokens = ()
        for token, logits in self.steps[begin:]:
            theirs = _next_tokens(self.labels.variants[other], prefix)
            if not theirs:
                return None
            if token not in theirs:
                own = _next_tokens(self.labels.variants[chosen], prefix)
                ours, rivals = (own - theirs) | {token}, theirs - own
                return _log_sum(logits, ours) - _log_sum(logits, rivals) if rivals else None
            prefix = (*prefix, token)
        return None


def _next_tokens(variants: frozenset[Tokens], prefix: Tokens) -> frozenset[int]:
    """Return the tokens that continue those variants that began with `prefix`."""
    size = len(prefix)
    return frozenset(form[size] for form in variants if form[:size] == prefix and len(form) > size)


def _log_sum(logits: dict[int, float], tokens: frozenset[int]) -> float:
    return float(np.logaddexp.reduce([logits[token] for token in sorted(tokens)]))


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
        is_open = self.is_thinking or self.is_unmarked
        answered = len(self.tokens) - min(self.thought, self.may_think_for)
        is_full = answered >= self.decoding.max_new_tokens
        if is_open and self.may_think_for:  # tokens of thinking are counted apart
            is_full = self.thought >= self.may_think_for
        if self.stop is not None and not is_open and is_complete(self.text, self.stop):
            self.stopped = "label"
        elif is_full:
            self.stopped = "length"
            if self.is_unmarked:
                # It was cut before it showed whether it was thinking: nothing of it is an answer.
                self.opening = THINKING_TAGS[0][0]

    def answer(self) -> Execution:
        """Return the answer as far as it goes."""
        text = self.opening + self.prompts.decode(self.tokens)
        return Execution(
            response=text,
            margin=self.trace.margin(text) if self.trace else None,
            tokens=len(self.tokens),
            stopped=self.stopped or "length",
        )

    @property
    def _own_tags(self) -> Pairs:
        return () if self.stop is None else self.stop.thinking

    def _read(self) -> None:
        """Update the text where a decision depends on it."""
        # Thinking is long: its text is put together again only where a tag may have closed it.
        last = self.prompts.decode(self.tokens[-_TAG_TOKENS:]) if self.is_thinking else ""
        if self.is_thinking and not closes_thinking(last, self._own_tags):
            self.thought += 1
            return
        self.text = self.opening + self.prompts.decode(self.tokens)
        self.is_thinking = spoken_spans(self.text, self._own_tags)[1]
        self.is_unmarked = self.prompts.may_close and not has_tag(self.text)
        self.thought += self.is_thinking or self.is_unmarked
