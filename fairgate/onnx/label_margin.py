"""How clearly a model preferred the label it chose over the best other label.

Definition. A label has variants: with and without a leading space, in lower case, capitalised and
upper case, each split into tokens as it is at the beginning of an answer, after a line end and
after punctuation. Where the answer has a label from its token t_0 on, compare
with every other label at the first token t_j at which they part: the first j where t_j continues
no variant of the other label that began t_0 … t_{j-1}. There a label's probability is the sum
over the distinct next tokens of its variants that began so (for the chosen label, t_j included);
tokens that could begin either label count for neither.
The margin is the smallest difference of log-probabilities, said minus other, in nats, from the
model's own softmax (temperature 1, nothing cut off). Other labels that never part, because one
is a prefix of the answer's tokens, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.label import label_place

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTokens:
    """The token sequences that can express each label."""

    variants: dict[str, frozenset[Tokens]]
    """By label, lower case."""
    tracked: npt.NDArray[np.int64]
    """All tokens of all variants, ascending: the log-probabilities worth remembering."""

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
        tokens = {one for forms in variants.values() for form in forms for one in form}
        return cls(variants=variants, tracked=np.array(sorted(tokens), dtype=np.int64))


@dataclass(slots=True)
class LabelTrace:
    """What has to be remembered of each step of one answer to compute its margin."""

    labels: LabelTokens
    stop: Stop | None = None
    """What ends the answer: from where it is read, and what it may repeat."""
    steps: list[tuple[int, dict[int, float]]] = field(default_factory=list)
    """The token taken, and the log-probabilities of the tracked tokens and of that one."""
    ends: list[int] = field(default_factory=list)
    """Length of the answer's text after each step."""

    def add(self, logits: npt.NDArray[Any], token: int, text_length: int) -> None:
        """Store one step."""
        scores = logits.astype(np.float64)
        top = scores.max()
        total = top + np.log(np.exp(scores - top).sum())
        places = self.labels.tracked
        known = dict(zip(places.tolist(), (scores[places] - total).tolist(), strict=True))
        known[token] = float(scores[token] - total)
        self.steps.append((token, known))
        self.ends.append(text_length)

    def margin(self, text: str) -> float | None:
        """Return the margin of the first label in `text`, to 4 decimals; None if undefined."""
        names = tuple(self.labels.variants)
        known = self.stop or Stop(phrases=names)
        found = label_place(text, replace(known, phrases=names, choice=False))
        if found is None:
            return None
        chosen, place = found
        begin = next((step for step, end in enumerate(self.ends) if end > place), None)
        if begin is None:
            return None
        margins = [self._difference(chosen, other, begin) for other in names if other != chosen]
        finite = [one for one in margins if one is not None and np.isfinite(one)]
        return round(min(finite), 4) if finite else None

    def _difference(self, chosen: str, other: str, begin: int) -> float | None:
        """Return log p(chosen) - log p(other) where they first differ; None if they never do."""
        prefix: Tokens = ()
        for token, known in self.steps[begin:]:
            theirs = _next_tokens(self.labels.variants[other], prefix)
            if not theirs:
                return None
            if token not in theirs:
                own = _next_tokens(self.labels.variants[chosen], prefix)
                ours, rivals = (own - theirs) | {token}, theirs - own
                return _log_sum(known, ours) - _log_sum(known, rivals) if rivals else None
            prefix = (*prefix, token)
        return None


def _next_tokens(variants: frozenset[Tokens], prefix: Tokens) -> frozenset[int]:
    """Return the tokens that continue those variants that began with `prefix`."""
    size = len(prefix)
    return frozenset(form[size] for form in variants if form[:size] == prefix and len(form) > size)


def _log_sum(known: dict[int, float], tokens: frozenset[int]) -> float:
    return float(np.logaddexp.reduce([known[token] for token in sorted(tokens)]))
