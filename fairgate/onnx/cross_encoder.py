"""Whether one text entails another, by an ONNX cross-encoder: both texts go through it together.

Any Hugging Face sequence classifier that was trained on natural language inference, such as those
of sentence-transformers: its folder holds the graph (output `logits`), `tokenizer.json` and
`config.json`, whose `id2label` says which of the scores is `entailment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from fairgate.domain.errors import ModelError
from fairgate.domain.ports import Vectors
from fairgate.domain.wording import listed
from fairgate.onnx.encoder import EncoderSession, EncoderTokens, own_labels
from fairgate.onnx.encoder_settings import classifier_settings
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.session import Device

ENTAILS = "entailment"
"""The label, whatever its case, of pairs whose second text follows from the first."""


class OnnxCrossEncoder:
    """A port `Entailment` over a local folder. Nothing is loaded before the first pair.

    Equal pairs get equal answers whatever the batch size, the order and the other pairs.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        batch_size: int | None = None,
        threads: int = 0,
        device: Device = "cpu",
    ) -> None:
        """Read the folder's settings. Raises ModelError where it is no such model."""
        self._folder = ModelFolder.find(model_dir)
        self._folder.file("tokenizer.json", "splits texts into tokens")
        self._labels = [label.lower() for label in own_labels(self._folder)]
        if self._labels.count(ENTAILS) != 1:
            raise ModelError(
                f"the labels of {str(self._folder.path)!r} are {listed(self._labels, last='and')}; "
                f"expected one `{ENTAILS}`, as a cross-encoder for natural language inference has. "
                "Choose one, or name the labels in `id2label` of its config.json."
            )
        self._batch_size = batch_size
        self._device: Device = device
        self._session = EncoderSession(
            self._folder, device=device, threads=threads, pooled=True, vector="logits"
        )
        self._tokens = EncoderTokens(self._folder, classifier_settings(self._folder))
        self._known: dict[tuple[str, str], bool] = {}

    @cached_property
    def fingerprint(self) -> str:
        """Identify the folder's files and the device."""
        return f"onnx-cross-encoder/2:{self._folder.fingerprint(ENTAILS, self._device)}"

    def entails(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Tell for each pair whether its second text follows from its first. Raises ModelError.

        It does where `entailment` has the highest score. Pairs are cut to the model's length, the
        longer text first.
        """
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        rows = self._tokens.rows(new) if new else []

        def take(places: list[int], scores: Vectors) -> dict[tuple[str, str], bool]:
            if scores.shape[1] != len(self._labels) or not np.isfinite(scores).all():
                raise ModelError(
                    f"the cross-encoder {str(self._folder.path)!r} returned {scores.shape[1]} "
                    f"scores a pair, or some that are not finite; expected {len(self._labels)}, as "
                    "many as `id2label` in its config.json names. Export the model again in fp32, "
                    "or correct config.json."
                )
            # Three decimals: a tie stays one in another batch, and the first label has it.
            best = np.argmax(np.round(scores.astype(np.float64), 3), axis=1)
            entailing = best == self._labels.index(ENTAILS)
            return {new[n]: bool(yes) for n, yes in zip(places, entailing, strict=True)}

        for part in self._session.each_batch(rows, self._batch_size, self._tokens.fitting, take):
            self._known |= part
        return [self._known[pair] for pair in pairs]
