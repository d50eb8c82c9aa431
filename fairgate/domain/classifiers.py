"""Text classifiers: what reads the tone of an answer that is no label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

TONES = ("happy", "sad", "angry", "fear", "surprise", "neutral")
"""The tones of GenFair (P3, section V-B3), and none of them."""
SENTIMENTS = ("positive", "negative", "neutral")


@dataclass(frozen=True, slots=True)
class Classified:
    """What a classifier says of one text."""

    label: str
    margin: float
    """Nats between the label and the next best one, rounded to 4 decimals; 0 or more."""


class Classifier(Protocol):
    """Texts to one of a few labels. A text's label depends on nothing but the text."""

    @property
    def fingerprint(self) -> str:
        """Identify everything that can change a label: files, label map, device."""
        ...

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Return what each text is, in order. Raises ModelError."""
        ...
