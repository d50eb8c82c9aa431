"""Embeds texts with an ONNX encoder: `tokenizers` + ONNX Runtime, no torch.

Pooling, normalisation and length limit are read from the files sentence-transformers writes, so
a model means here what it means there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairgate.adapters.onnx_engine.batches import batches_by_width
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.adapters.onnx_engine.runtime_errors import mapped_errors
from fairgate.adapters.onnx_engine.session import Device, open_session
from fairgate.adapters.onnx_engine.tokenizer_errors import is_tokenizer_error
from fairgate.domain.errors import ModelError
from fairgate.domain.wording import harmless

Vectors = npt.NDArray[np.float32]
Pooling = Literal["mean", "cls", "max"]

_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_DEFAULT_MAX_TOKENS = 512


class OnnxEncoder:
    """A port `Embedder` over a local folder with an ONNX encoder and its `tokenizer.json`.

    Equal texts get equal bytes whatever the batch size, the order, the other texts or the number
    of threads (CPU, float32: tested bit by bit). Nothing is loaded before the first `embed`.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        batch_size: int = 32,
        threads: int = 0,
        device: Device = "cpu",
        unit: bool = True,
    ) -> None:
        """Read the folder's settings. `unit=False` leaves lengths to the model's own modules.

        Raises ModelError where the folder is incomplete or asks for what is not supported.
        """
        self._folder = ModelFolder.find(Path(model_dir))
        self._folder.file("tokenizer.json", "splits texts into tokens")
        self._batch_size = max(1, batch_size)
        self._threads = threads
        self._device: Device = device
        self.pooling = _read_pooling(self._folder)
        """How token vectors become one vector: `mean`, `cls` or `max`."""
        modules = _read_modules(self._folder)
        self.unit = unit or "Normalize" in modules
        """Whether vectors are scaled to length one."""
        settings = self._folder.mapping("sentence_bert_config.json")
        self._lower = bool(settings.get("do_lower_case", False))
        self.max_tokens = _read_max_tokens(self._folder, settings)
        """Longer texts are cut after this many tokens, special tokens included."""

    @cached_property
    def fingerprint(self) -> str:
        """Identify files, pooling, length limit, normalisation and device."""
        content = self._folder.fingerprint(self.pooling, self.max_tokens, self.unit, self._device)
        return f"onnx-encoder/1:{content}"

    @property
    def dimensions(self) -> int:
        """Return the number of components of a vector."""
        width = self._session.get_outputs()[self._output].shape[-1]
        return width if isinstance(width, int) else int(self._run([[0]], 1).shape[-1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 `[len(texts), dimensions]`, in order. Raises ModelError."""
        unique = list(dict.fromkeys(texts))
        if not unique:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows = self._tokenize(unique)
        vectors: dict[str, Vectors] = {}
        for width, positions in batches_by_width([len(row) for row in rows], self._batch_size):
            batch = [rows[position] for position in positions]
            states = self._run(batch, min(width, self.max_tokens))
            for position, row, state in zip(positions, batch, states, strict=True):
                vectors[unique[position]] = self._pool(state, len(row))
        result = np.stack([vectors[text] for text in texts])
        if not np.isfinite(result).all():
            raise ModelError(
                f"the encoder {str(self._folder.path)!r} returned values that are not finite. "
                "Its weights are damaged or overflow in this precision: export it in fp32."
            )
        return result

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        # A lone surrogate (from broken input) is no text; the tokenizer would refuse it.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        if self._lower:
            clean = [text.lower() for text in clean]
        return [
            encoding.ids[: self.max_tokens] or [0]
            for encoding in self._tokenizer.encode_batch_fast(clean)
        ]

    def _run(self, rows: Sequence[Sequence[int]], width: int) -> Vectors:
        """Return the states `[rows, width, dimensions]` (or `[rows, dimensions]` if pooled)."""
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.int64)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        feeds = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        names = [node.name for node in self._session.get_inputs()]
        with mapped_errors(
            f"the encoder {str(self._folder.path)!r} failed on {len(rows)} texts of {width} tokens",
            "Export the model again with `fairgate export MODEL`.",
        ):
            output = self._session.get_outputs()[self._output].name
            states = self._session.run([output], {name: feeds[name] for name in names})[0]
        return np.asarray(states, dtype=np.float32)

    def _pool(self, state: Vectors, length: int) -> Vectors:
        """Return one row's vector; sums and norms in float64, over its own tokens only."""
        if state.ndim == 1:
            vector = state.astype(np.float64)
        elif self.pooling == "mean":
            vector = state[:length].sum(axis=0, dtype=np.float64) / length
        elif self.pooling == "cls":
            vector = state[0].astype(np.float64)
        else:
            vector = state[:length].max(axis=0).astype(np.float64)
        if self.unit:
            vector = vector / max(float(np.sqrt((vector * vector).sum())), 1e-12)
        return vector.astype(np.float32)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        file = self._folder.path / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except BaseException as error:  # tokenizers raises nothing narrower
            if not is_tokenizer_error(error):
                raise
            raise ModelError(
                f"{str(file)!r} is no readable tokenizer ({harmless(str(error)[:200])}). Copy it "
                "from the original model, or export again with `fairgate export MODEL`."
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.max_tokens)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        session = open_session(self._folder.graph, device=self._device, threads=self._threads)
        inputs = {node.name for node in session.get_inputs()}
        if "input_ids" not in inputs or not inputs <= _INPUTS:
            raise ModelError(
                f"{str(self._folder.graph)!r} is no text encoder: its inputs are "
                f"{', '.join(sorted(inputs))[:300]}, expected input_ids, attention_mask and maybe "
                "token_type_ids. Export it with `fairgate export MODEL --task feature-extraction`."
            )
        return session

    @cached_property
    def _output(self) -> int:
        """Return the place of the output to read: token states before pooled vectors."""
        outputs = self._session.get_outputs()
        for place, node in enumerate(outputs):
            if node.name in {"last_hidden_state", "token_embeddings"}:
                return place
        for place, node in enumerate(outputs):
            if node.name == "sentence_embedding" or len(node.shape) == 3:
                return place
        names = ", ".join(node.name for node in outputs)[:300]
        raise ModelError(
            f"{str(self._folder.graph)!r} has no token states among its outputs ({names}); "
            "expected last_hidden_state, token_embeddings or sentence_embedding. Export it with "
            "`fairgate export MODEL --task feature-extraction`."
        )


def _read_modules(folder: ModelFolder) -> list[str]:
    """Return the kinds of the sentence-transformers modules, in order; empty without the file."""
    modules = folder.settings("modules.json") or []
    if not isinstance(modules, list) or not all(isinstance(one, dict) for one in modules):
        raise ModelError(
            f"{str(folder.path / 'modules.json')!r} is no list of modules as "
            "sentence-transformers writes it. Fetch the model again."
        )
    kinds = [str(one.get("type", "")).rsplit(".", 1)[-1] for one in modules]
    unknown = [kind for kind in kinds if kind not in {"Transformer", "Pooling", "Normalize"}]
    if unknown:
        raise ModelError(
            f"{str(folder.path)!r} uses the sentence-transformers module {unknown[0]!r}; this "
            "engine supports Transformer, Pooling and Normalize. Choose a model without it (for "
            "example all-MiniLM-L6-v2), or the sentence-transformers embedding engine."
        )
    return kinds


def _read_pooling(folder: ModelFolder) -> Pooling:
    """Return the pooling of `1_Pooling/config.json`; mean without it, as sentence-transformers."""
    settings = folder.mapping("1_Pooling/config.json")
    if not settings:
        return "mean"
    named = settings.get("pooling_mode")
    if isinstance(named, str):
        chosen = [named]
    else:
        chosen = [
            _POOLINGS.get(name, name)
            for name, on in settings.items()
            if name.startswith("pooling_mode_") and on is True
        ]
    for pooling in _POOLINGS.values():
        if chosen == [pooling]:
            return pooling
    raise ModelError(
        f"{str(folder.path / '1_Pooling' / 'config.json')!r} asks for the pooling "
        f"{', '.join(chosen)[:200] or 'none'!r}; expected exactly one of mean, cls and max. "
        "Choose another embedding model."
    )


def _read_max_tokens(folder: ModelFolder, settings: dict[str, Any]) -> int:
    """Return the smallest of the limits that the files name."""
    limits = [
        settings.get("max_seq_length"),
        folder.mapping("config.json").get("max_position_embeddings"),
        folder.mapping("tokenizer_config.json").get("model_max_length"),
    ]
    known = [limit for limit in limits if isinstance(limit, int) and 0 < limit < 1_000_000]
    return min(known, default=_DEFAULT_MAX_TOKENS)
