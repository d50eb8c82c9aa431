"""Classifies texts with any Hugging Face sequence classifier that was exported to ONNX.

The folder holds the graph (output `logits`), `tokenizer.json` and `config.json` with `id2label`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairgate.domain.cases import Classified
from fairgate.domain.errors import DataError, ModelError
from fairgate.domain.wording import listed, quoted, suggestion
from fairgate.onnx.encoder_session import EncoderSession, EncoderTokens, States
from fairgate.onnx.encoder_settings import classifier_settings
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.session import Device

Scores = npt.NDArray[np.float64]


def decided(scores: Scores, groups: Sequence[str]) -> Classified:
    """Return the most probable group of one text's scores (logits), and its margin in nats.

    Labels of one group share its probability. Of equally probable groups the first in the alphabet
    is taken, with a margin of 0.
    """
    logs = scores - np.logaddexp.reduce(scores)
    by_group = {
        name: float(np.logaddexp.reduce([logs[n] for n, each in enumerate(groups) if each == name]))
        for name in sorted(set(groups))
    }
    ranked = sorted(by_group, key=lambda name: -by_group[name])
    margin = by_group[ranked[0]] - by_group[ranked[1]] if len(ranked) > 1 else 0.0
    return Classified(label=ranked[0], margin=round(margin, 4))


class OnnxClassifier:
    """A port `Classifier` over a local folder. Nothing is loaded before the first text.

    Equal texts get equal labels whatever the batch size, the order and the other texts.
    """

    def __init__(
        self,
        model_dir: Path,
        labels: Mapping[str, str],
        allowed: Sequence[str] | None,
        *,
        batch_size: int | None = None,
        threads: int = 0,
        device: Device = "cpu",
    ) -> None:
        """Read the folder's settings; `labels` maps the model's own labels to `allowed` ones.

        `allowed` None allows any. An empty map takes the model's labels as they are (case is
        ignored). Raises ModelError for an incomplete folder, DataError for a map that does not fit.
        """
        self._folder = ModelFolder.find(model_dir)
        self._folder.file("tokenizer.json", "splits texts into tokens")
        self._groups = mapped_labels(_own_labels(self._folder), labels, allowed)
        self._batch_size = batch_size
        self._device: Device = device
        self._session = EncoderSession(
            self._folder, device=device, threads=threads, pooled=True, vector="logits"
        )
        self._tokens = EncoderTokens(self._folder, classifier_settings(self._folder))
        self._known: dict[str, Classified] = {}

    @cached_property
    def fingerprint(self) -> str:
        """Identify the folder's files, the label map and the device."""
        return f"onnx-classifier/1:{self._folder.fingerprint(self._groups, self._device)}"

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Return what each text is, in order. Raises ModelError."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        rows = self._tokens.rows(new) if new else []

        def take(places: list[int], states: States) -> dict[str, Classified]:
            logits = states.astype(np.float64)
            self._check(logits)
            return {
                new[place]: decided(scores, self._groups)
                for place, scores in zip(places, logits, strict=True)
            }

        for part in self._session.each_batch(rows, self._batch_size, self._tokens.fitting, take):
            self._known |= part
        return [self._known[text] for text in texts]

    def _check(self, logits: Scores) -> None:
        if logits.shape[1] != len(self._groups):
            raise ModelError(
                f"the classifier {str(self._folder.path)!r} returned {logits.shape[1]} scores a "
                f"text, expected {len(self._groups)}, as many as `id2label` in its config.json "
                "names. Export the model again, or correct config.json."
            )
        if not np.isfinite(logits).all():
            raise ModelError(
                f"the classifier {str(self._folder.path)!r} returned scores that are not finite. "
                "Its weights are damaged or overflow in this precision: export it in fp32."
            )


def mapped_labels(
    own: Sequence[str], labels: Mapping[str, str], allowed: Sequence[str] | None
) -> tuple[str, ...]:
    """Return what each of a model's labels means. Raises DataError with all that does not fit."""
    if allowed is None:
        allowed = list(labels.values()) or [name.lower() for name in own]
    wanted = listed(list(allowed), last="and")
    if not labels:
        plain = tuple(name.lower() for name in own)
        strange = [name for name in own if name.lower() not in allowed]
        if strange:
            raise DataError(
                f"the classifier's labels {listed(strange, last='and')} are "
                f"none of {wanted}; give `labels` with what each of its labels means"
            )
        return plain
    missing = [name for name in own if name not in labels]
    unknown = [name for name in labels if name not in own]
    wrong = [name for name in labels.values() if name not in allowed]
    if unknown:
        raise DataError(
            f"the classifier has no label {quoted(unknown[0])}; {suggestion(unknown[0], own)}"
        )
    if missing:
        names = listed(missing, last="and")
        raise DataError(f"`labels` has no meaning for the classifier's {names}; add them")
    if wrong:
        raise DataError(f"`labels`: found {quoted(wrong[0])}, expected one of {wanted}")
    if len(set(labels.values())) < 2:
        raise DataError("`labels` maps everything to one label, so nothing can differ; name two")
    return tuple(labels[name] for name in own)


def _own_labels(folder: ModelFolder) -> list[str]:
    """Return the model's labels in the order of its scores."""
    named = folder.mapping("config.json").get("id2label")
    try:
        found = {int(number): str(label) for number, label in dict(named or {}).items()}
    except (TypeError, ValueError):
        found = {}
    if len(found) < 2 or sorted(found) != list(range(len(found))):
        raise ModelError(
            f"the config.json in {str(folder.path)!r} has no `id2label` with two labels or more, "
            "numbered from 0; expected a sequence classifier. Copy config.json from the original "
            "model, or choose another one."
        )
    return [found[number] for number in range(len(found))]
