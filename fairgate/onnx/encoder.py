"""Embeds texts with an ONNX encoder: `tokenizers` + ONNX Runtime, no torch.

Pooling, prompts, normalisation and length limit are read from the files sentence-transformers
writes, so a model works as it does there; what they leave open, the policy sets.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError
from fairgate.onnx.attention_settings import rotary_switch
from fairgate.onnx.encoder_session import EncoderSession, EncoderTokens, Row, pools_by_itself
from fairgate.onnx.encoder_settings import (
    EmbedderChoice,
    has_further_modules,
    pooled,
    read_settings,
)
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.session import Device

Vectors = npt.NDArray[np.float32]

_NO_CHOICE = EmbedderChoice()


class OnnxEncoder:
    """A port `Embedder` over a local folder with an ONNX encoder and its `tokenizer.json`.

    Equal texts get equal bytes whatever the batch size, the order, the other texts or the number
    of threads (CPU, float32: tested bit by bit). Nothing is loaded before the first `embed`.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        batch_size: int | None = None,
        threads: int = 0,
        device: Device = "cpu",
        unit: bool = True,
        choice: EmbedderChoice = _NO_CHOICE,
    ) -> None:
        """Read the folder's settings. `unit=False` leaves lengths to the model's own modules.

        Embeds documents; `for_queries` returns the same encoder for queries. Raises ModelError
        where the folder is incomplete, leaves open what a vector is, or asks for what is not
        supported.
        """
        self._folder = ModelFolder.find(Path(model_dir))
        self._folder.file("tokenizer.json", "splits texts into tokens")
        self._batch_size = batch_size
        self._device: Device = device
        by_graph = pools_by_itself(self._folder, further_modules=has_further_modules(self._folder))
        self.settings = read_settings(self._folder, choice, unit=unit, pooled_by_graph=by_graph)
        """How token states become vectors."""
        self._prompt = self.settings.document_prompt
        self._session = EncoderSession(
            self._folder, device=device, threads=threads, pooled=by_graph
        )
        self._tokens = EncoderTokens(self._folder, self.settings)

    def for_queries(self) -> OnnxEncoder:
        """Return this encoder with the prompt of queries; model and tokenizer are shared."""
        if self.settings.query_prompt == self._prompt:
            return self
        twin = copy.copy(self)
        twin.__dict__.pop("fingerprint", None)
        twin._prompt = self.settings.query_prompt  # noqa: SLF001 of its own class
        return twin

    @cached_property
    def fingerprint(self) -> str:
        """Identify files, pooling, prompt, length limit, normalisation and device."""
        content = self._folder.fingerprint(*self.settings.facts(), self._prompt, self._device)
        return f"onnx-encoder/2:{content}"

    @property
    def dimensions(self) -> int:
        """Return the number of components of a vector."""
        full = self._session.dimensions * max(1, len(self.settings.poolings))
        return min(full, self.settings.dimensions or full)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 `[len(texts), dimensions]`, in order. Raises ModelError."""
        unique = list(dict.fromkeys(texts))
        if not unique:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows = self._tokens.rows([self._prompt + text for text in unique])
        left_out = 0
        if self._prompt and not self.settings.includes_prompt:
            left_out = self._tokens.prompt_length(self._prompt)
        self._check_lengths([len(row.ids) for row in rows])

        def take(places: list[int], states: Vectors) -> dict[str, Vectors]:
            return {
                unique[place]: self._vector(state, rows[place], left_out)
                for place, state in zip(places, states, strict=True)
            }

        vectors: dict[str, Vectors] = {}
        for part in self._session.each_batch(rows, self._batch_size, self._tokens.fitting, take):
            vectors |= part
        result = np.stack([vectors[text] for text in texts])
        if not np.isfinite(result).all():
            raise ModelError(
                f"the encoder {str(self._folder.path)!r} returned values that are not finite. "
                "Its weights are damaged or overflow in this precision: export it in fp32."
            )
        return result

    def _check_lengths(self, lengths: Sequence[int]) -> None:
        """Refuse texts for which the model would use rotary factors that its graph lacks."""
        switch = rotary_switch(self._folder.mapping("config.json"), self._folder.path)
        many = 0 if switch is None else sum(length > switch for length in lengths)
        if many:
            raise ModelError(
                f"{many} of {len(lengths)} texts are too long for {str(self._folder.path)!r}: the "
                f"longest has {max(lengths)} tokens, but after {switch} the model uses other "
                "rotary factors (LongRoPE), which its graph lacks. Choose another embedding "
                "model, or shorter documents."
            )

    def _vector(self, state: Vectors, row: Row, left_out: int) -> Vectors:
        """Return one text's vector; sums and norms in float64, over its own tokens only."""
        if state.ndim == 1:
            vector = state.astype(np.float64)
        else:
            vector = pooled(state[: len(row.ids)], self.settings.poolings, start=left_out)
        wanted = self.settings.dimensions
        if wanted is not None and wanted > len(vector):
            raise ModelError(
                f"a vector of {str(self._folder.path)!r} has {len(vector)} dimensions, expected at "
                f"least {wanted}. Choose a smaller number for `dimensions` in the policy."
            )
        vector = vector[:wanted]
        if self.settings.unit:
            vector = vector / max(float(np.sqrt((vector * vector).sum())), 1e-12)
        return vector.astype(np.float32)
