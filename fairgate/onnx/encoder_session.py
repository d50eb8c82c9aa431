"""Runs an encoder graph: texts to rows of tokens, rows to states of tokens or to vectors.

Batches run at the same time, each on one thread: several threads on one batch would wait for each
other after every product.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.domain.wording import harmless, quoted
from fairgate.onnx.batches import batches_by_width, most_rows, padded_width
from fairgate.onnx.encoder_settings import EncoderSettings
from fairgate.onnx.graph_file import DamagedGraphError, output_names
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.runtime_errors import mapped_errors
from fairgate.onnx.session import Device, open_session, refuse_unsound_graph
from fairgate.onnx.tokenizer_file import is_tokenizer_error

States = npt.NDArray[np.float32]
Result = TypeVar("Result")

TOKEN_STATES = ("last_hidden_state", "token_embeddings")
POOLED = "sentence_embedding"
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
_EXPORT = "Export it with `fairgate export MODEL --task feature-extraction`."
_BERT_SWITCHES = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
"""Keys of `tokenizer_config.json` and the same switches in the normalizer of `tokenizer.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The tokens of one text."""

    ids: list[int]
    types: list[int]
    """Which segment each token belongs to."""


def pools_by_itself(folder: ModelFolder, *, further_modules: bool) -> bool:
    """Return whether vectors of whole texts are read from the graph, by the names of its outputs.

    Token states are preferred, unless the model has modules that only the graph computes.
    """
    try:
        names = output_names(folder.graph)
    except (DamagedGraphError, OSError):
        return False
    return POOLED in names and (further_modules or not set(TOKEN_STATES) & set(names))


class EncoderSession:
    """A loaded encoder graph, whatever exported it. Nothing is loaded before the first run."""

    def __init__(
        self,
        folder: ModelFolder,
        *,
        device: Device,
        threads: int = 0,
        pooled: bool = False,
        vector: str = POOLED,
    ) -> None:
        """Name folder and device; `pooled` reads the output `vector`, one row a text.

        `threads` batches run at the same time on the CPU, 0: as many as there are processors.
        """
        self._folder = folder
        self._device: Device = device
        self._threads = 1 if device != "cpu" else threads or len(os.sched_getaffinity(0))
        self._pooled = pooled
        self._most: int | None = None
        """Rows that run at once, once memory ran out."""
        self._outputs = (vector,) if pooled else TOKEN_STATES

    @cached_property
    def pads(self) -> bool:
        """Whether rows of different lengths may share a batch: tried out, not assumed."""
        if "attention_mask" not in self._inputs:
            return False
        long, short = _trial(11), _trial(3)
        alone = self.run([short, short], 3)[-1]
        try:
            shared = self.run([long, short], 16)[-1]
        except OutOfMemoryError:
            raise  # else bits would depend on the memory that is free
        except ModelError:
            return False
        shared = shared[:3] if shared.ndim > 1 else shared
        size = float(np.abs(alone).max())
        coarse = any("float16" in node.type for node in self._session.get_outputs())
        return bool(np.abs(alone - shared).max() <= size * (1e-2 if coarse else 1e-3))

    def each_batch(
        self,
        rows: Sequence[Row],
        batch_size: int | None,
        fitting: Callable[[int], int],
        take: Callable[[list[int], States], Result],
    ) -> Iterator[Result]:
        """Yield `take(places, states)` for batches of rows, each row once; `take` runs in threads.

        `batch_size` rows run at a time, None: as many as the device gains from; `fitting` keeps
        widths within the model's. What a row gets depends on no other row and on no number of
        threads.
        """
        if not rows:
            return
        lengths = [len(row.ids) for row in rows]
        width_of = padded_width if self.pads else int  # loads the graph, before there are threads
        if batch_size is None:
            batch_size = most_rows(on_cpu=self._device == "cpu")
        most = -(-min(max(1, batch_size), len(rows)) // self._threads)
        batches = list(batches_by_width(lengths, most, width_of))

        def work(batch: tuple[int, list[int]]) -> Result:
            width, places = batch
            return take(places, self.run([rows[place] for place in places], fitting(width)))

        if self._threads == 1 or len(batches) < 2:
            yield from map(work, batches)
            return
        from concurrent.futures import ThreadPoolExecutor  # a stored gate needs none

        pool = ThreadPoolExecutor(self._threads)
        try:
            yield from pool.map(work, reversed(batches))  # the widest first: none is left for last
        finally:
            pool.shutdown(cancel_futures=True)

    def run(self, rows: Sequence[Row], width: int) -> States:
        """Return states `[rows, width, d]`, or `[rows, d]` where the graph pools.

        Where memory has no room for all rows, half as many run at once from then on.
        """
        try:
            if self._most is None or len(rows) <= self._most:
                return self._run(rows, width)
        except OutOfMemoryError:
            if len(rows) == 1:
                raise
            self._most = min(self._most or len(rows), len(rows) // 2)
        # Behind the handler, so that nothing of what failed is held any longer.
        most = self._most or len(rows)
        parts = [rows[start : start + most] for start in range(0, len(rows), most)]
        return np.concatenate([self.run(part, width) for part in parts])

    def _run(self, rows: Sequence[Row], width: int) -> States:
        if self._pooled and len(rows) == 1:
            # A lone vector would take other kernels: it runs beside its own copy.
            return self._run([*rows, *rows], width)[:1]
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row.ids)] = row.ids
            types[place, : len(row.ids)] = row.types
            mask[place, : len(row.ids)] = 1
        lengths = mask.sum(axis=1, keepdims=True)
        feeds = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": types,
            # Padding repeats the last position: a table of positions may end there.
            "position_ids": np.minimum(np.arange(width, dtype=np.int64), lengths - 1),
        }
        feeds = {
            name: feeds[name].astype(np.int32 if "int32" in kind else np.int64)
            for name, kind in self._inputs.items()
        }
        with mapped_errors(
            f"the encoder {str(self._folder.path)!r} failed on {len(rows)} texts of {width} tokens",
            _EXPORT,
        ):
            states = np.asarray(self._session.run([self._output], feeds)[0], dtype=np.float32)
        expected = ids.shape[:1] if self._pooled else ids.shape
        if states.ndim != len(expected) + 1 or states.shape[:-1] != expected:
            raise ModelError(
                f"{str(self._folder.graph)!r} returned {self._output} of shape {states.shape} for "
                f"{len(rows)} texts of {width} tokens; expected one vector a "
                f"{'text' if self._pooled else 'token'}. {_EXPORT}"
            )
        return states

    @property
    def dimensions(self) -> int:
        """Return how many components a token's state (or a pooled vector) has."""
        [width] = [
            node.shape[-1] for node in self._session.get_outputs() if node.name == self._output
        ]
        return width if isinstance(width, int) else int(self.run([_trial(1)], 1).shape[-1])

    @cached_property
    def _session(self) -> Any:
        refuse_unsound_graph(self._folder.graph)
        return open_session(self._folder.graph, device=self._device, threads=1)

    @cached_property
    def _inputs(self) -> dict[str, str]:
        """Return the types of the graph's inputs by name."""
        inputs = {node.name: node.type for node in self._session.get_inputs()}
        if "input_ids" not in inputs or not set(inputs) <= _INPUTS:
            raise ModelError(
                f"{str(self._folder.graph)!r} is no text encoder: its inputs are "
                f"{', '.join(sorted(inputs))[:300]}, expected input_ids, attention_mask and maybe "
                f"token_type_ids and position_ids. {_EXPORT}"
            )
        return inputs

    @cached_property
    def _output(self) -> str:
        names = [node.name for node in self._session.get_outputs()]
        found = next((name for name in self._outputs if name in names), None)
        if found is None:
            raise ModelError(
                f"{str(self._folder.graph)!r} has no token states among its outputs "
                f"({', '.join(names)[:300]}); expected {' or '.join(self._outputs)}. {_EXPORT}"
            )
        return found


def _trial(length: int) -> Row:
    return Row(ids=list(range(length)), types=[0] * length)


class EncoderTokens:
    """The `tokenizer.json` of a folder, cut to the model's length. Read at the first text."""

    def __init__(self, folder: ModelFolder, settings: EncoderSettings) -> None:
        """Name the folder and how texts are cut."""
        self._folder = folder
        self._settings = settings

    def rows(self, texts: Sequence[str]) -> list[Row]:
        """Return the tokens of each text; at least one. Raises ModelError."""
        return [
            Row(ids=list(found.ids) or [0], types=list(found.type_ids) or [0])
            for found in self._tokenizer.encode_batch_fast([_clean(text) for text in texts])
        ]

    def prompt_length(self, prompt: str) -> int:
        """Return how many tokens a prompt takes, without a control token that ends every text."""
        [row] = self.rows([prompt])
        special = self._tokenizer.get_added_tokens_decoder().get(row.ids[-1])
        return len(row.ids) - (special is not None and special.special)

    def fitting(self, width: int) -> int:
        """Return a width that does not go beyond the model's length."""
        return min(width, self._settings.max_tokens or width)

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
        tokenizer.no_truncation()
        self._check_agreement(tokenizer)
        if self._settings.lower:
            tokenizer.normalizer = _lowered(tokenizer.normalizer)
        if self._settings.max_tokens is not None:
            self._check_room(tokenizer, self._settings.max_tokens)
            side = "left" if self._settings.cut_on_the_left else "right"
            tokenizer.enable_truncation(self._settings.max_tokens, direction=side)
        return tokenizer

    def _check_room(self, tokenizer: Any, limit: int) -> None:
        """Refuse what leaves no token to the text: all texts would be the same."""
        for prompt in (self._settings.query_prompt, self._settings.document_prompt):
            taken = len(tokenizer.encode(_clean(prompt)).ids)
            if taken >= limit:
                what = f"the prompt {quoted(prompt)} takes" if prompt else "special tokens take"
                raise ModelError(
                    f"{what} {taken} tokens, but {str(self._folder.path)!r} reads only {limit}, so "
                    "nothing of a text is left. Choose a shorter prompt in the policy, or another "
                    "model."
                )

    def _check_agreement(self, tokenizer: Any) -> None:
        """Refuse settings that transformers would follow and `tokenizer.json` does not."""
        declared = self._folder.mapping("tokenizer_config.json")
        ids = tokenizer.encode("a").ids
        for key, name, end in (
            ("add_bos_token", "bos_token", 0),
            ("add_eos_token", "eos_token", -1),
        ):
            token = declared.get(name)
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(declared.get(key), bool) and isinstance(token, str):
                has = bool(ids) and ids[end] == tokenizer.token_to_id(token)
                self._compare(key, wanted=declared[key], found=has)
        prefixed = declared.get("add_prefix_space")
        for one in _byte_levels(self._folder.mapping("tokenizer.json").get("pre_tokenizer")):
            found = one.get("add_prefix_space")
            if isinstance(prefixed, bool) and isinstance(found, bool):
                self._compare("add_prefix_space", wanted=prefixed, found=found)
        normalizer = self._folder.mapping("tokenizer.json").get("normalizer")
        if isinstance(normalizer, dict) and normalizer.get("type") == "BertNormalizer":
            for key, name in _BERT_SWITCHES.items():
                if isinstance(declared.get(key), bool) and isinstance(normalizer.get(name), bool):
                    self._compare(key, wanted=declared[key], found=normalizer[name])

    def _compare(self, key: str, *, wanted: bool, found: bool) -> None:
        if wanted != found:
            raise ModelError(
                f"the tokenizer in {str(self._folder.path)!r} is not certain: "
                f"tokenizer_config.json sets {quoted(key)} to {str(wanted).lower()}, but "
                f"tokenizer.json behaves as for {str(found).lower()}. Export the model again with "
                "`fairgate export MODEL --task feature-extraction`, which makes them agree."
            )


def _byte_levels(pre_tokenizer: object) -> list[dict[str, Any]]:
    """Return the byte-level parts of a pre-tokenizer: they may put a space before a text."""
    if not isinstance(pre_tokenizer, dict):
        return []
    inner = pre_tokenizer.get("pretokenizers")
    parts = inner if isinstance(inner, list) else [pre_tokenizer]
    return [one for one in parts if isinstance(one, dict) and one.get("type") == "ByteLevel"]


def _clean(text: str) -> str:
    # A lone surrogate (from broken input) is no text; the tokenizer would refuse it.
    return text.encode("utf-8", "replace").decode("utf-8")


def _lowered(normalizer: Any) -> Any:
    """Return the normalizer with lower-casing before it, as `do_lower_case` means."""
    from tokenizers.normalizers import Lowercase, Sequence

    return Lowercase() if normalizer is None else Sequence([Lowercase(), normalizer])
