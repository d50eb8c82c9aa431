"""Runs a decoder graph: prompts in, next-token logits out, with the key-value cache between.

Rows are padded on the RIGHT and logits are read at each row's own last token. Left padding would
be silently wrong on graphs with GroupQueryAttention, which count a row's tokens from the left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError
from fairgate.onnx.decoder_opening import DTYPES, NEXT_STEP, open_decoder, read_reach
from fairgate.onnx.fused_layers import FUSED_INPUT
from fairgate.onnx.joint_attention import JOINT_INPUT
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.projection_cut import POSITIONS_INPUT
from fairgate.onnx.runtime_errors import mapped_errors
from fairgate.onnx.session import Device
from fairgate.onnx.trials import try_out

Logits = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.int64]
_LOGITS = "logits"


@dataclass(slots=True, kw_only=True)
class Cache:
    """The keys and values of a batch so far, and which of its slots hold real tokens."""

    values: list[Any]
    """OrtValues in the order of the graph's inputs, on the session's device."""
    mask: Integers
    """`[rows, slots]`, 1 for real tokens."""
    lengths: Integers
    """`[rows]`, number of real tokens = position of the next one."""


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


class DecoderSession:
    """A loaded decoder graph with `past_key_values.*` inputs, whatever exported it."""

    def __init__(self, folder: ModelFolder, *, device: Device, threads: int = 0) -> None:
        """Load the graph, cut if possible, and try out padding. Raises ModelError."""
        self._folder = folder
        self._device: Device = device
        graph = open_decoder(folder, device=device, threads=threads)
        self._session, self._inputs = graph.session, graph.inputs
        self._caches, self._past, self._present = graph.caches, graph.past, graph.present
        self.cut = POSITIONS_INPUT in self._inputs
        """Whether only needed positions reach the vocabulary projection."""
        self.reach = read_reach(folder, graph.facts)
        """Up to which lengths the graph is right, and where padding would be seen."""
        self.one_by_one = graph.facts.mixes_rows
        """Whether a row must not share a batch with others."""
        halves = any(self._inputs[name].type == "tensor(float16)" for name in self._past)
        self.is_fine = not halves and not graph.facts.coarse
        """Whether everything is computed in float32."""
        reach = self.reach
        slots = reach.slot_window is not None or reach.switch is not None
        self.counts = graph.facts.counts_rows or slots
        """Whether tokens or slots are counted: by attention that does not know past keys and a new
        part of a prompt in batches, by windows, or by switches of rotary factors."""
        self._fuses = False
        found = try_out(self, str(folder.graph))
        self.pads = found.pads
        """Whether rows of different lengths may share a batch; tried out, not assumed."""
        self._splits = found.splits
        self._fuses = found.fuses
        self.cuts_freely = found.cuts_freely
        """Whether a token's bits are the same in whatever pieces its prompt is read."""
        self.joins = found.joins
        """Whether rows of unlike lengths are stepped together, each with its own bits."""

    def prefill(
        self,
        rows: Sequence[Sequence[int]],
        width: int,
        read: Integers | None = None,
        before: Cache | None = None,
        *,
        fuses: bool | None = None,
    ) -> tuple[Logits, Cache]:
        """Return logits `[rows, positions, vocabulary]` and the cache after the prompts.

        `read` `[rows, positions]` names the positions wanted; the last token of each row if None.
        `before` holds what stands in front of the rows: as many tokens in each, no padding.
        `fuses`: whether attention is one operator; None for what the session found to be the same.
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
        fuses = self._fuses if fuses is None else fuses
        logits, cache.values = self._run(ids, positions, cache, wanted, fuses=fuses)
        return logits, cache

    def step(self, cache: Cache, tokens: Sequence[int]) -> Logits:
        """Append one token to each row; return the logits `[rows, vocabulary]` after it."""
        ids = np.asarray(tokens, dtype=np.int64)[:, None]
        cache.mask = np.concatenate([cache.mask, np.ones_like(ids)], axis=1)
        logits, cache.values = self._run(ids, cache.lengths[:, None], cache, np.zeros_like(ids))
        cache.lengths = cache.lengths + 1
        return logits[:, 0]

    def bind_step(self, values: Sequence[Any], lengths: Integers) -> BoundStep:
        """Return what appends one token after another to rows of unlike lengths.

        `values` are OrtValues `[rows, heads, slots, size]` in the order of the graph's inputs,
        whose rows have `lengths` tokens from slot 0 on and slots to spare: they are written to.
        """
        rows, slots = len(lengths), values[0].shape()[2]
        mask = np.arange(slots + 1) < lengths[:, None]
        none = np.zeros((rows, 1), dtype=np.int64)
        caches = list(zip(self._past, self._present, values, strict=True))
        where = f"the decoder {str(self._folder.path)!r} failed on {rows} rows in {slots} slots"
        return BoundStep(
            self._session, self._feeds(none, mask, none, none, joint=True), caches, where
        )

    def has_input(self, name: str) -> bool:
        """Return whether the graph that runs has an input of this name."""
        return name in self._inputs

    @property
    def vocabulary(self) -> int | None:
        """Return how many tokens the graph knows; None where it does not say."""
        shapes = {one.name: one.shape for one in self._session.get_outputs()}
        width = shapes["logits"][-1]
        return width if isinstance(width, int) else None

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

    def _empty_cache(self, rows: int) -> list[Any]:
        from onnxruntime import OrtValue

        def empty(name: str) -> Any:
            heads, size = self._caches[name]
            array = np.zeros((rows, heads, 0, size), dtype=DTYPES[self._inputs[name].type])
            return OrtValue.ortvalue_from_numpy(array)

        return [empty(name) for name in self._past]

    def _feeds(
        self,
        ids: Integers,
        mask: npt.NDArray[Any],
        positions: Integers,
        wanted: Integers,
        *,
        joint: bool = False,
        fuses: bool = False,
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the inputs beside the cache, each in memory of its own and in its format."""
        plain: dict[str, npt.NDArray[Any]] = {
            "input_ids": ids,
            "attention_mask": mask,
            "position_ids": positions,
            POSITIONS_INPUT: wanted[:, :, None],
            JOINT_INPUT: np.array([joint]),
            FUSED_INPUT: np.array([fuses]),
        }
        return {
            name: np.array(array, dtype=DTYPES[self._inputs[name].type], order="C")
            for name, array in plain.items()
            if name in self._inputs
        }

    def _run(
        self,
        ids: Integers,
        positions: Integers,
        cache: Cache,
        wanted: Integers,
        *,
        fuses: bool = False,
    ) -> tuple[Logits, list[Any]]:
        """Run the graph once; the cache stays on the device, the logits come to the host."""
        feeds = self._feeds(ids, cache.mask, positions, wanted, fuses=fuses)
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
            for name in self._present:
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
            f"tokens; expected one for every token. {NEXT_STEP}"
        )
