"""Runs a decoder graph: prompts in, next-token logits out, with the key-value cache between.

Rows are padded on the RIGHT and logits are read at each row's own last token. Left padding would
be silently wrong on graphs with GroupQueryAttention, which count a row's tokens from the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.adapters.onnx_engine.attention_settings import read_attention_settings
from fairgate.adapters.onnx_engine.builder_folder import head_size
from fairgate.adapters.onnx_engine.decoder_graph import DecoderGraph, GraphFacts, read_decoder_graph
from fairgate.adapters.onnx_engine.folder import ModelFolder
from fairgate.adapters.onnx_engine.graph import POSITIONS_INPUT
from fairgate.adapters.onnx_engine.joint_attention import JOINT_INPUT
from fairgate.adapters.onnx_engine.joint_trial import steps_jointly
from fairgate.adapters.onnx_engine.piece_trial import reads_in_any_pieces
from fairgate.adapters.onnx_engine.reach import read_reach
from fairgate.adapters.onnx_engine.runtime_errors import mapped_errors
from fairgate.adapters.onnx_engine.session import Device, open_session
from fairgate.domain.errors import ModelError, OutOfMemoryError

Logits = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

_PAST = "past_key_values."
_PRESENT = "present."
_PLAIN_INPUTS = frozenset(
    {"input_ids", "attention_mask", "position_ids", POSITIONS_INPUT, JOINT_INPUT}
)
_DTYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
_FINE, _COARSE = 1e-3, 1e-2
"""Allowed differences of logits, as a share of the largest: in float32, and in fewer bits."""
_LONG, _SHORT = tuple(range(11)), (0, 1, 2)
"""Rows of tokens that every vocabulary has, to try a graph out."""
_NEXT_STEP = "Export the model with `fairgate export MODEL --task text-generation`."


@dataclass(slots=True, kw_only=True)
class Cache:
    """The keys and values of a batch so far, and which of its slots hold real tokens."""

    values: list[Any]
    """OrtValues in the order of the graph's inputs, on the session's device."""
    mask: Integers
    """`[rows, slots]`, 1 for real tokens."""
    lengths: Integers
    """`[rows]`, number of real tokens = position of the next one."""


class DecoderSession:
    """A loaded decoder graph with `past_key_values.*` inputs, whatever exported it."""

    def __init__(self, folder: ModelFolder, *, device: Device, threads: int = 0) -> None:
        """Load the graph, cut if possible, and try out padding. Raises ModelError."""
        self._folder = folder
        self._device: Device = device
        window = read_attention_settings(folder).window
        graph = read_decoder_graph(
            folder.graph, attends_to_all=window is None, joins=device == "cpu"
        )
        self._session = self._open(graph, threads)
        self._inputs = {node.name: node for node in self._session.get_inputs()}
        outputs = [node.name for node in self._session.get_outputs()]
        self._past = [name for name in self._inputs if name.startswith(_PAST)]
        self._present = [name.replace(_PAST, _PRESENT, 1) for name in self._past]
        self._check_is_decoder(outputs)
        self.cut = POSITIONS_INPUT in self._inputs
        """Whether only needed positions reach the vocabulary projection."""
        self.reach = read_reach(folder, graph.facts)
        """Up to which lengths the graph is right, and where padding would be seen."""
        self.one_by_one = graph.facts.mixes_rows
        """Whether a row must not share a batch with others."""
        halves = any(self._inputs[name].type == "tensor(float16)" for name in self._past)
        self.is_fine = not halves and not graph.facts.coarse
        """Whether everything is computed in float32."""
        self._tolerance = _FINE if self.is_fine else _COARSE
        self._alone = self._try([_SHORT, _SHORT], len(_SHORT))
        self._refuse_dependence_on_companions()
        self.pads = self._padding_is_exact()
        """Whether rows of different lengths may share a batch; tried out, not assumed."""
        self._splits = self.selects and self._splitting_is_exact(graph.facts)
        self.cuts_freely = self._splits and reads_in_any_pieces(self)
        """Whether a token's bits are the same in whatever pieces its prompt is read."""
        self.joins = steps_jointly(self, tolerance=self._tolerance)
        """Whether rows of unlike lengths are stepped together, each with its own bits."""

    def prefill(
        self,
        rows: Sequence[Sequence[int]],
        width: int,
        read: Integers | None = None,
        before: Cache | None = None,
    ) -> tuple[Logits, Cache]:
        """Return logits `[rows, positions, vocabulary]` and the cache after the prompts.

        `read` `[rows, positions]` names the positions wanted; the last token of each row if None.
        `before` holds what stands in front of the rows: as many tokens in each, no padding.
        """
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.int64)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        lengths = mask.sum(axis=1)
        # Padding repeats the last position: a table of positions may end there.
        positions = np.minimum(np.arange(width, dtype=np.int64), lengths[:, None] - 1)
        wanted = lengths[:, None] - 1 if read is None else read
        cache = Cache(values=self._empty_cache(len(rows)), mask=mask, lengths=lengths)
        if before is not None:
            mask = np.concatenate([before.mask, mask], axis=1)
            cache = Cache(values=before.values, mask=mask, lengths=lengths + before.lengths)
            positions = positions + before.lengths[:, None]
        logits, cache.values = self._run(ids, positions, cache, wanted)
        return logits, cache

    def step(self, cache: Cache, tokens: Sequence[int]) -> Logits:
        """Append one token to each row; return the logits `[rows, vocabulary]` after it."""
        ids = np.asarray(tokens, dtype=np.int64)[:, None]
        cache.mask = np.concatenate([cache.mask, np.ones_like(ids)], axis=1)
        logits, cache.values = self._run(ids, cache.lengths[:, None], cache, np.zeros_like(ids))
        cache.lengths = cache.lengths + 1
        return logits[:, 0]

    def step_in_place(
        self, values: Sequence[Any], lengths: Integers, tokens: Sequence[int]
    ) -> Logits:
        """Append one token to rows of unlike lengths; return the logits `[rows, vocabulary]`.

        `values` are OrtValues `[rows, heads, slots, size]` in the order of the graph's inputs,
        whose rows have `lengths` tokens from slot 0 on and a slot to spare: it is written to.
        """
        slots = values[0].shape()[2]
        mask = np.arange(slots + 1) <= lengths[:, None]
        cache = Cache(values=list(values), mask=mask.astype(np.int64), lengths=lengths)
        ids = np.asarray(tokens, dtype=np.int64)[:, None]
        logits, _ = self._run(ids, lengths[:, None], cache, np.zeros_like(ids), in_place=True)
        return logits[:, 0]

    def has_input(self, name: str) -> bool:
        """Return whether the graph that runs has an input of this name."""
        return name in self._inputs

    @property
    def selects(self) -> bool:
        """Whether rows of a cache may be taken: elsewhere moving it costs more than it saves."""
        return self._device == "cpu"

    @property
    def shares(self) -> bool:
        """Whether what prompts begin with in common is read once."""
        return self.selects and self._splits

    @property
    def token_bytes(self) -> int:
        """Return how many bytes the keys and values of one token have."""
        arrays = [value.numpy() for value in self._empty_cache(1)]
        return sum(array.shape[1] * array.shape[3] * array.itemsize for array in arrays)

    def full_cache(self, arrays: Sequence[npt.NDArray[Any]]) -> Cache:
        """Return the cache of keys and values `[rows, heads, tokens, size]` without padding."""
        from onnxruntime import OrtValue

        rows, _, tokens, _ = arrays[0].shape
        return Cache(
            values=[OrtValue.ortvalue_from_numpy(array) for array in arrays],
            mask=np.ones((rows, tokens), dtype=np.int64),
            lengths=np.full(rows, tokens, dtype=np.int64),
        )

    def select(self, cache: Cache, rows: Sequence[int]) -> Cache:
        """Return the cache of these rows, each as often as it is named."""
        from onnxruntime import OrtValue

        places = list(rows)
        values = [OrtValue.ortvalue_from_numpy(value.numpy()[places]) for value in cache.values]
        return Cache(values=values, mask=cache.mask[places], lengths=cache.lengths[places])

    def _open(self, graph: DecoderGraph, threads: int) -> Any:
        file, (*better, last) = self._folder.graph, graph.contents
        for content in better:
            try:
                return open_session(file, device=self._device, threads=threads, content=content)
            except OutOfMemoryError:
                raise  # else bits would depend on the memory that is free
            except ModelError:
                pass  # the graph as it stands on disk decides, and explains itself
        return open_session(file, device=self._device, threads=threads, content=last)

    def _check_is_decoder(self, outputs: Sequence[str]) -> None:
        graph = str(self._folder.graph)
        if not self._past or "input_ids" not in self._inputs or "logits" not in outputs:
            names = ", ".join(sorted(self._inputs))[:300]
            raise ModelError(
                f"{graph!r} is no decoder with a key-value cache: its inputs are {names}; expected "
                f"input_ids, past_key_values.* and the output logits. {_NEXT_STEP}"
            )
        unknown = [
            name
            for name, node in self._inputs.items()
            if name not in _PLAIN_INPUTS and name not in self._past
        ]
        missing = [name for name in self._present if name not in outputs]
        unsupported = [name for name, node in self._inputs.items() if node.type not in _DTYPES]
        flat = [name for name in self._past if self._cache_shape(name) is None]
        for wrong, what in (
            (unknown, "needs inputs this engine does not know"),
            (missing, "lacks the cache outputs"),
            (unsupported, "has inputs of a type this engine does not support"),
            (flat, "has cache inputs that are not [rows, heads, tokens, size] with known sizes"),
        ):
            if wrong:
                raise ModelError(f"{graph!r} {what}: {', '.join(wrong)[:300]}. {_NEXT_STEP}")

    def _cache_shape(self, name: str) -> tuple[int, int] | None:
        """Return heads and size of a cache input; None where neither graph nor folder gives it."""
        shape = self._inputs[name].shape
        if len(shape) != 4 or not isinstance(shape[1], int):
            return None
        size = shape[3] if isinstance(shape[3], int) else head_size(self._folder)
        return None if size is None else (shape[1], size)

    def _empty_cache(self, rows: int) -> list[Any]:
        from onnxruntime import OrtValue

        def empty(name: str) -> Any:
            heads, size = self._cache_shape(name) or (0, 0)
            array = np.zeros((rows, heads, 0, size), dtype=_DTYPES[self._inputs[name].type])
            return OrtValue.ortvalue_from_numpy(array)

        return [empty(name) for name in self._past]

    def _run(
        self,
        ids: Integers,
        positions: Integers,
        cache: Cache,
        wanted: Integers,
        *,
        in_place: bool = False,
    ) -> tuple[Logits, list[Any]]:
        """Run the graph once; the cache stays on the device, the logits come to the host."""
        plain: dict[str, npt.NDArray[Any]] = {
            "input_ids": ids,
            "attention_mask": cache.mask,
            "position_ids": positions,
            POSITIONS_INPUT: wanted[:, :, None],
            JOINT_INPUT: np.array([in_place]),
        }
        feeds = {
            name: np.ascontiguousarray(array, dtype=_DTYPES[self._inputs[name].type])
            for name, array in plain.items()
            if name in self._inputs
        }
        with mapped_errors(
            f"the decoder {str(self._folder.path)!r} failed on {ids.shape[0]} rows of "
            f"{ids.shape[1]} tokens after {cache.mask.shape[1] - ids.shape[1]}",
            "Export the model again with `fairgate export MODEL`.",
        ):
            binding = self._session.io_binding()
            for name, array in feeds.items():
                binding.bind_cpu_input(name, array)
            for name, value in zip(self._past, cache.values, strict=True):
                binding.bind_ortvalue_input(name, value)
            binding.bind_output("logits", "cpu")
            for name, value in zip(self._present, cache.values, strict=True):
                if in_place:
                    binding.bind_ortvalue_output(name, value)
                else:
                    binding.bind_output(name, self._device)
            self._session.run_with_iobinding(binding)
            values = binding.get_outputs()
        return self._pick(values[0].numpy(), ids.shape[1], wanted), values[1:]

    def _pick(self, logits: Logits, width: int, wanted: Integers) -> Logits:
        """Return the wanted positions where the graph gave logits for all positions."""
        if self.cut:
            return logits
        if logits.shape[1] == width:
            return np.take_along_axis(logits, wanted[:, :, None], axis=1)
        if logits.shape[1] == 1 and (wanted == width - 1).all():
            return logits  # the export itself keeps the last position only
        raise ModelError(
            f"{str(self._folder.graph)!r} returned logits of shape {logits.shape} for {width} "
            f"tokens; expected one for every token. {_NEXT_STEP}"
        )

    def _refuse_dependence_on_companions(self) -> None:
        """Raise ModelError where a row's logits change with the rest of a batch of equal width."""
        beside = self._try([_LONG[-len(_SHORT) :], _SHORT], len(_SHORT))
        finite = np.isfinite(self._alone).all()  # else the first answer says so, with its length
        if finite and not self._is_same(beside, 0.5):
            raise ModelError(
                f"the answers of {str(self._folder.graph)!r} depend on what else is in the batch "
                f"(a logit moved by {np.abs(self._alone - beside).max():.3g}): it scales over the "
                "batch somewhere, as dynamic quantisation does. Use the fp32 or fp16 graph of the "
                "model, or make one with `fairgate export MODEL`."
            )

    def _padding_is_exact(self) -> bool:
        """Compare a short row that shares a padded batch with the same row by itself."""
        try:
            shared = self._try([_LONG, _SHORT], 16)
        except OutOfMemoryError:
            raise
        except ModelError:
            return False
        return self._is_same(shared, 1.0)

    def _splitting_is_exact(self, facts: GraphFacts) -> bool:
        """Compare a short row that is read in two parts with the same row read at once.

        What is read after something else must not depend on the batch by a single bit. Attention
        that counts rows does not know past keys and a new part of a prompt in batches; windows
        and switches of rotary factors count slots.
        """
        reach = self.reach
        counts = facts.counts_rows or reach.slot_window is not None or reach.switch is not None
        if not self.pads or self.one_by_one or counts:
            return False
        try:
            few = self._try([_SHORT, _SHORT], len(_LONG), head=2)
            many = self._try([_LONG, _SHORT, _LONG[::-1], _SHORT], len(_LONG), head=2)
        except OutOfMemoryError:
            raise
        except ModelError:
            return False
        return self._is_same(few, 1.0) and np.array_equal(few, many)

    def _is_same(self, found: Doubles, share: float) -> bool:
        """Return whether logits are the short row's own, up to a share of the tolerance."""
        size = max(1.0, float(np.abs(self._alone).max()))
        return bool(np.abs(self._alone - found).max() <= size * self._tolerance * share)

    def _try(self, rows: Sequence[Sequence[int]], width: int, head: int = 0) -> Doubles:
        """Return the last row's logits after the prompt and after one more token.

        With `head`, so many tokens of each row are read first.
        """
        before = self.prefill([row[:head] for row in rows], head)[1] if head else None
        first, cache = self.prefill([row[head:] for row in rows], width - head, before=before)
        second = self.step(cache, [3] * len(rows))
        return np.stack([first[-1, 0], second[-1]]).astype(np.float64)
