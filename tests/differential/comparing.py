"""Asks the engine what transformers was asked, step by step, and says how the answers differ."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fakes.decoders import TokenDecoder
from originals import COMPANIONS, PROMPTS, STEPS, Original

from fairgate.domain.errors import ModelError

EXACT_SHARE = 1e-3
"""Largest difference of logits, as a share of the largest, of an answer that is called exact."""
_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_HEADROOM = 1.5
"""Other processors round otherwise: the bound that is printed leaves them room."""


@dataclass(frozen=True)
class Outcome:
    """What became of one model as one kind of graph."""

    answered: int = 0
    """Prompts that were answered; the others were refused."""
    share: float = 0.0
    """Largest difference of logits from transformers', as a share of the largest logit."""
    equal_tokens: bool = False
    refusal: str = ""
    pads: bool = False
    """Whether prompts of unlike lengths share a batch, and what they begin with is read once."""

    @property
    def cell(self) -> str:
        """Return what the table says, without the number of the refusal."""
        if not self.answered:
            return "refused"
        right = "exact" if self.equal_tokens and self.share <= EXACT_SHARE else self._bound()
        return right if not self.refusal else f"{right} for {self.answered} of {len(PROMPTS)}"

    def _bound(self) -> str:
        bound = next((one for one in _BOUNDS if self.share * _HEADROOM <= one), None)
        return (
            "wrong"
            if bound is None
            else f"{bound:.1%}".replace(".0%", " %").replace("%", " %").replace("  ", " ")
        )

    def agrees(self, cell: str) -> bool:
        """Return whether a cell of the documented table still holds."""
        bound = re.match(r"([\d.]+) %", cell)
        if bound is None:
            return cell == self.cell
        return (
            self.share <= float(bound[1]) / 100
            and self.cell.partition(" for ")[2] == cell.partition(" for ")[2]
        )


class _Forced(TokenDecoder):
    """Continues with given tokens whatever it would choose, and keeps every step's logits."""

    def __init__(self, folder):
        super().__init__(folder, STEPS, threads=2)
        self.forced = []
        self.logits = []

    def all_logits(self, prompts, forced, *, batch_size):
        """Return `[prompts, steps, vocabulary]`."""
        self.forced, self.logits = forced, [[] for _ in prompts]
        self._batch.rows = batch_size
        self.answers(prompts)
        return np.stack([np.stack(steps) for steps in self.logits])

    def _take(self, row, logits, likeliest):
        seen = self.logits[row.position]
        seen.append(np.array(logits, dtype=np.float32))
        super()._take(row, logits, likeliest)
        row.last_token = self.forced[row.position][len(seen) - 1]


def compare(folder: Path, truth: Original) -> Outcome:
    """Ask one folder everything, one prompt a batch and in batches of up to 16 with companions.

    What is no float32 graph is asked without padding too. Raises AssertionError where a bit
    depends on the batch, or more than rounding on padding.
    """
    engine = _Forced(folder)
    places, refusal = _answerable(engine, folder)
    if not places:
        return Outcome(refusal=refusal)
    pads = engine._session.pads
    prompts = [PROMPTS[place] for place in places]
    forced = [truth.tokens[place] for place in places]
    alone = engine.all_logits(prompts, forced, batch_size=1)
    beside = [COMPANIONS[place] for place in places]
    together = engine.all_logits([*prompts, *beside], [*forced, *forced], batch_size=16)
    assert np.array_equal(alone, together[: len(places)]), "batches matter"
    expected = truth.logits[places]
    largest = np.abs(expected).max()
    share = float(np.abs(alone - expected).max() / largest)
    if share > EXACT_SHARE and engine._session.pads:
        engine._session.pads = False
        exact_widths = engine.all_logits(prompts, forced, batch_size=16)
        padding = float(np.abs(alone - exact_widths).max() / largest)
        assert padding <= max(2 * EXACT_SHARE, share / 2), f"padding moves logits by {padding:.2g}"
    return Outcome(len(places), share, alone.argmax(axis=2).tolist() == forced, refusal, pads)


def _answerable(engine: _Forced, folder: Path) -> tuple[list[int], str]:
    """Return the prompts that are not refused, and the refusal of the others."""
    try:
        session = engine._session
    except ModelError as error:
        return [], _without_place(str(error), folder)
    places, refusal = [], ""
    for place, prompt in enumerate(PROMPTS):
        try:
            session.reach.check([len(prompt)], STEPS, str(folder))
            places.append(place)
        except ModelError as error:
            refusal = _without_place(str(error), folder)
    return places, refusal


def _without_place(message: str, folder: Path) -> str:
    said = message.replace(str(folder / "model.onnx"), "GRAPH").replace(str(folder), "MODEL")
    said = re.sub(r"^1 of 1 prompts", "N of M prompts", said)
    return re.sub(r"the longest needs \d+", "the longest needs N", said)
