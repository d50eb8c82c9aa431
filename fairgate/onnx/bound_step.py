"""Appends a token to each row of a cache that stays where it is: bound once, run many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.onnx.runtime_errors import mapped_errors

_LOGITS = "logits"


class BoundStep:
    """The inputs and outputs of a session for the same rows, step after step."""

    def __init__(
        self,
        session: Any,
        feeds: Mapping[str, npt.NDArray[Any]],
        caches: Sequence[tuple[str, str, Any]],
        where: str,
    ) -> None:
        """Bind them: `feeds` by input, which each step writes to; caches by input and output.

        The mask of `feeds` marks what stands in the cache. `where` begins what errors say.
        """
        from onnxruntime import OrtValue

        self._session, self._feeds, self._where = session, feeds, where
        self._binding = session.io_binding()
        for name, array in feeds.items():
            self._binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(array))
        self._binding.bind_output(_LOGITS, "cpu")  # the first of the outputs
        for given, written, value in caches:
            self._binding.bind_ortvalue_input(given, value)
            self._binding.bind_ortvalue_output(written, value)
        self._logits: npt.NDArray[Any] | None = None

    def run(
        self, tokens: Sequence[int], lengths: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.floating[Any]]:
        """Append tokens to rows of these lengths; return the logits `[rows, vocabulary]`.

        They last until the next step. Raises ModelError.
        """
        self._feeds["input_ids"][:, 0] = tokens
        if "position_ids" in self._feeds:
            self._feeds["position_ids"][:, 0] = lengths
        if "attention_mask" in self._feeds:
            self._feeds["attention_mask"][np.arange(len(lengths)), lengths] = 1
        advice = "Export the model again with `fairgate export MODEL`."
        with mapped_errors(self._where, advice):
            self._session.run_with_iobinding(self._binding)
            if self._logits is None:
                found = self._binding.get_outputs()[0]
                self._binding.bind_ortvalue_output(_LOGITS, found)
                self._logits = found.numpy()[:, 0]
        return self._logits
