"""Runs a decoder graph: prompts in, next-token logits out, with the key-value cache between.

The best of the graph's changed copies is opened. Rows are padded on the RIGHT and logits are read
at each row's own last token. Left padding would be silently wrong on graphs with
GroupQueryAttention, which count a row's tokens from the left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import ModelError, OutOfMemoryError
from fairgate.onnx.attention import JOINT_INPUT
from fairgate.onnx.attention_settings import attention_windows, read_reach
from fairgate.onnx.decoder_graph import POSITIONS_INPUT, GraphFacts, read_decoder_graph
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.session import Device, mapped_errors, open_session

Logits = npt.NDArray[np.floating[Any]]
TokenArray = npt.NDArray[np.int64]
_LOGITS = "logits"
_PAST = "past_key_values."
_PRESENT = "present."
_BY_TOKEN = frozenset({"input_ids", "attention_mask", "position_ids"})
_KEPT_LOGITS = ("num_logits_to_keep", "logits_to_keep")
"""Inputs that say for how many of the last tokens a graph gives logits; 0: for all."""
_PLAIN_INPUTS = _BY_TOKEN | {POSITIONS_INPUT, JOINT_INPUT, *_KEPT_LOGITS}
_DTYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
"""The types of inputs that decoders have."""
_SPARE = 128
"""Slots kept free behind the longest row at most, so that the cache is seldom moved. More would
take memory that nobody writes to: numpy asks for arrays of 4 MiB and more in huge pages."""
_FEWEST = 2
"""A lone row runs beside another: some weight formats sum a batch of one in another order."""
_NEXT_STEP = "Export the model with `fairgate export MODEL --task text-generation`."


@dataclass(slots=True, kw_only=True)
class Cache:
    """The keys and values of a batch so far, and which of its slots hold real tokens."""

    values: list[Any]
    """OrtValues in the order of the graph's inputs, on the session's device."""
    mask: TokenArray
    """`[rows, slots]`, 1 for real tokens."""
    lengths: TokenArray
    """`[rows]`, number of real tokens = position of the next one."""


class DecoderSession:
    """A loaded decoder graph with `past_key_values.*` inputs, whatever exported it."""

    def __init__(
        self,
        folder: ModelFolder,
        *,
        device: Device,
        threads: int = 0,
        replaces_attention: bool = False,
    ) -> None:
        """Load the best of the graph's changed copies that opens. Raises ModelError.

        `replaces_attention`: where it can be, see `attention`. What the session may do beyond the
        graph's own way to run is tried out by `trials.open_decoder`.
        """
        self.pads = False
        """Whether rows of different lengths may share a batch."""
        self.shares = False
        """Whether what prompts begin with in common is read once, with the bits of any reading."""
        self.reads_alone = False
        """Whether a row without companions has the bits that it has beside others."""
        self._folder = folder
        self._device: Device = device
        self._session, facts = _opened(
            folder, self._device, threads, replaces_attention=replaces_attention
        )
        self._inputs = {node.name: node for node in self._session.get_inputs()}
        sizes = {
            name: cache_shape(folder, node)
            for name, node in self._inputs.items()
            if name.startswith(_PAST)
        }
        _check_is_decoder(
            folder, self._inputs, sizes, [node.name for node in self._session.get_outputs()]
        )
        self._caches = {name: shape for name, shape in sizes.items() if shape is not None}
        """Heads and size of each cache input, in the order of the graph's inputs."""
        self._present = [*map(_present, self._caches)]
        """The cache's outputs in the same order."""
        self.cut = POSITIONS_INPUT in self._inputs
        """Whether only needed positions reach the vocabulary projection."""
        self.joins = JOINT_INPUT in self._inputs
        """Whether rows of unlike lengths step together: attention was replaced."""
        self.reach = read_reach(folder, facts)
        """Up to which lengths the graph is right, and where padding would be seen."""
        self.one_by_one = facts.mixes_rows
        """Whether a row must not share a batch with others."""
        halves = any(self._inputs[name].type == "tensor(float16)" for name in self._caches)
        self.is_fine = not halves and not facts.coarse
        """Whether everything is computed in float32."""
        self.multiplies_integers = facts.multiplies_integers

    def prefill(
        self,
        rows: Sequence[Sequence[int]],
        width: int,
        read: TokenArray | None = None,
        before: Cache | None = None,
    ) -> tuple[Logits, Cache]:
        """Return logits `[rows, positions, vocabulary]` and the cache after the prompts.

        `read` `[rows, positions]` names the positions wanted; the last token of each row if None.
        Without positions a graph that is `cut` leaves the vocabulary out.
        `before` holds what stands in front of the rows: as many tokens in each, no padding.
        A lone position is projected onto the vocabulary twice: a product with one row takes a
        kernel that sums in another order.
        """
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        lengths = mask.sum(axis=1)
        # Padding repeats the last position: a table of positions may end there.
        positions = np.minimum(np.arange(width, dtype=np.int64), lengths[:, None] - 1)
        wanted = lengths[:, None] - 1 if read is None else read
        if before is None:
            cache = Cache(values=self._empty_cache(len(rows)), mask=mask, lengths=lengths)
        else:
            mask = np.concatenate([before.mask, mask], axis=1)
            cache = Cache(values=before.values, mask=mask, lengths=lengths + before.lengths)
            positions = positions + before.lengths[:, None]
        projected = np.repeat(wanted, 2, axis=1) if wanted.size == 1 else wanted
        logits, cache.values = self._run(ids, positions, cache, projected)
        return logits[:, : wanted.shape[1]], cache

    def step(self, cache: Cache, tokens: Sequence[int]) -> Logits:
        """Append one token to each row; return the logits `[rows, vocabulary]` after it."""
        ids = np.asarray(tokens, dtype=np.int64)[:, None]
        cache.mask = np.concatenate([cache.mask, np.ones_like(ids)], axis=1)
        logits, cache.values = self._run(ids, cache.lengths[:, None], cache, np.zeros_like(ids))
        cache.lengths = cache.lengths + 1
        return logits[:, 0]

    def step_in_place(
        self, arrays: Sequence[npt.NDArray[Any]], lengths: TokenArray, tokens: Sequence[int]
    ) -> Logits:
        """Append one token to each of rows of unlike lengths; return logits `[rows, vocabulary]`.

        `arrays` `[rows, heads, slots, size]` in the order of the graph's inputs, whose rows have
        `lengths` tokens from slot 0 on and a slot to spare: they are written to.
        """
        from onnxruntime import OrtValue

        slots = arrays[0].shape[2]
        mask = np.arange(slots + 1) <= lengths[:, None]
        ids, none = np.asarray(tokens)[:, None], np.zeros((len(lengths), 1), dtype=np.int64)
        values = [OrtValue.ortvalue_from_numpy(array) for array in arrays]
        feeds = self._feeds(ids, mask, lengths[:, None], none, joint=True)
        where = f"{len(lengths)} rows in {slots} slots"
        logits: Logits = self._computed(feeds, values, where, in_place=True)[0].numpy()
        return logits[:, 0]

    @property
    def vocabulary(self) -> int | None:
        """Return how many tokens the graph knows; None where it does not say."""
        [width] = [
            output.shape[-1] for output in self._session.get_outputs() if output.name == _LOGITS
        ]
        return width if isinstance(width, int) else None

    @property
    def selects(self) -> bool:
        """Whether rows of a cache may be taken: elsewhere moving it costs more than it saves."""
        return self._device == "cpu"

    @property
    def fills_batches(self) -> bool:
        """Whether each batch has as many rows as run together, the last ones being copies.

        Libraries of a GPU choose a kernel, and so an order of sums, by the number of rows. With
        one number a row's bits depend neither on how many others are left nor on which they are.
        """
        return self._device != "cpu" and not self.one_by_one

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

    def select(self, cache: Cache, rows: list[int]) -> Cache:
        """Return the cache of these rows, each as often as it is named."""
        from onnxruntime import OrtValue

        values = [OrtValue.ortvalue_from_numpy(value.numpy()[rows]) for value in cache.values]
        return Cache(values=values, mask=cache.mask[rows], lengths=cache.lengths[rows])

    def _empty_cache(self, rows: int) -> list[Any]:
        from onnxruntime import OrtValue

        arrays = [
            np.zeros((rows, heads, 0, size), dtype=_DTYPES[self._inputs[name].type])
            for name, (heads, size) in self._caches.items()
        ]
        return [OrtValue.ortvalue_from_numpy(array) for array in arrays]

    def _feeds(
        self,
        ids: TokenArray,
        mask: npt.NDArray[Any],
        positions: TokenArray,
        wanted: TokenArray,
        *,
        joint: bool = False,
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the inputs beside the cache, each in memory of its own and in its format."""
        plain: dict[str, npt.NDArray[Any]] = {
            "input_ids": ids,
            "attention_mask": mask,
            "position_ids": positions,
            POSITIONS_INPUT: wanted[:, :, None],
            JOINT_INPUT: np.array([joint]),
        }
        for name in set(_KEPT_LOGITS) & self._inputs.keys():
            plain[name] = np.zeros([1] * len(self._inputs[name].shape), dtype=np.int64)
        return {
            name: np.array(array, dtype=_DTYPES[self._inputs[name].type], order="C")
            for name, array in plain.items()
            if name in self._inputs
        }

    def _run(
        self, ids: TokenArray, positions: TokenArray, cache: Cache, wanted: TokenArray
    ) -> tuple[Logits, list[Any]]:
        """Run the graph once; the cache stays on the device, the logits come to the host.

        The wanted positions are taken where the graph gives logits for all of them.
        """
        feeds = self._feeds(ids, cache.mask, positions, wanted)
        width = ids.shape[1]
        where = f"{len(ids)} rows of {width} tokens after {cache.mask.shape[1] - width}"
        computed, *values = self._computed(feeds, cache.values, where)
        logits = computed.numpy()
        if not self.cut and logits.shape[1] == width:
            logits = np.take_along_axis(logits, wanted[:, :, None], axis=1)
        elif not self.cut and (logits.shape[1] != 1 or (wanted != width - 1).any()):
            raise ModelError(  # some exports keep the last position only
                f"{str(self._folder.graph)!r} returned logits of shape {logits.shape} for {width} "
                f"tokens; expected one for every token. {_NEXT_STEP}"
            )
        return logits, values

    def _computed(
        self,
        feeds: Mapping[str, npt.NDArray[Any]],
        values: Sequence[Any],
        where: str,
        *,
        in_place: bool = False,
    ) -> list[Any]:
        """Return logits and caches as OrtValues; `where` is what errors say of the rows."""
        advice = "Export the model again with `fairgate export MODEL`."
        with mapped_errors(f"the decoder {str(self._folder.path)!r} failed on {where}", advice):
            binding = self._session.io_binding()
            for name, array in feeds.items():
                binding.bind_cpu_input(name, array)
            binding.bind_output(_LOGITS, "cpu")
            for past, written, value in zip(self._caches, self._present, values, strict=True):
                binding.bind_ortvalue_input(past, value)
                if in_place:
                    binding.bind_ortvalue_output(written, value)
                else:
                    binding.bind_output(written, self._device)
            self._session.run_with_iobinding(binding)
            return list(binding.get_outputs())


class JointRows:
    """Rows that answer together, each with as many tokens as it has, from slot 0 on.

    They join and leave at any step, whatever their lengths: a session that `joins` reads of each
    row its own tokens only, so that no bit of one depends on the others or on where they lie. Keys
    and values are `[rows, heads, slots, size]`.
    """

    def __init__(
        self, session: DecoderSession, spare: int = _SPARE, rows: int = _FEWEST, longest: int = 0
    ) -> None:
        """Take the session that steps, and how many tokens follow.

        Room is made at first for this many rows and for the longest one that will join.
        """
        self._session = session
        self._longest = longest
        self._spare = min(spare, _SPARE)
        self._fewest = max(rows, _FEWEST)
        self._arrays: list[npt.NDArray[Any]] = []
        self._lengths = np.zeros(_FEWEST, dtype=np.int64)
        self._rows = 0

    def join(self, cache: Cache, row_indices: list[int]) -> None:
        """Add these rows of a batch that was read, behind those that are here, in this order."""
        if not row_indices:
            return
        added, begin, end = cache.lengths[row_indices], self._rows, self._rows + len(row_indices)
        values = [value.numpy() for value in cache.values]
        self._reserve(max(end, self._fewest), int(added.max()) + 1, values)
        for array, value in zip(self._arrays, values, strict=True):
            for row, number, length in zip(
                array[begin:end], row_indices, added.tolist(), strict=True
            ):
                row[:, :length] = value[number, :, :length]
        self._lengths[begin:end] = added
        self._rows = end

    def leave(self, row_indices: Iterable[int]) -> list[int]:
        """Take rows out and return the other rows' indices in their new order.

        Rows from the end fill the gaps.
        """
        gone = set(row_indices)
        size = self._rows - len(gone)
        order = list(range(size))
        last = (number for number in range(size, self._rows) if number not in gone)
        for gap in sorted(number for number in gone if number < size):
            moved = order[gap] = next(last)
            length = self._lengths[gap] = self._lengths[moved]
            for array in self._arrays:
                array[gap, :, :length] = array[moved, :, :length]
        self._rows = size
        return order

    def step(self, tokens: Sequence[int]) -> Logits:
        """Append one token to each row; return the logits `[rows, vocabulary]` after it."""
        rows = max(self._rows, _FEWEST)
        lengths = self._lengths[:rows]
        # What was a row before may lie here: it has a free slot like any other.
        lengths[self._rows :] = 0
        needed = int(lengths.max()) + 1
        if needed > self._arrays[0].shape[2]:
            self._reserve(rows, needed, self._arrays)
            lengths = self._lengths[:rows]
        padded = [*tokens, *[0] * (rows - len(tokens))]
        arrays = [array[:rows] for array in self._arrays]
        logits = self._session.step_in_place(arrays, lengths, padded)
        lengths[: self._rows] += 1
        return logits[: self._rows]

    def _reserve(self, rows: int, slots: int, like: Sequence[npt.NDArray[Any]]) -> None:
        """Make room for a number of rows with a number of slots each, and some to spare."""
        arrays = self._arrays
        row_capacity, slot_capacity = (arrays[0].shape[0], arrays[0].shape[2]) if arrays else (0, 0)
        if rows <= row_capacity and slots <= slot_capacity:
            return
        wider = max(slots, self._longest + 1) + self._spare
        rows, slots = max(rows, row_capacity), slot_capacity if slots <= slot_capacity else wider
        held_lengths = self._lengths[: self._rows]
        used = int(held_lengths.max(initial=0))
        self._arrays = [
            np.zeros((rows, array.shape[1], slots, array.shape[3]), dtype=array.dtype)
            for array in like
        ]
        for array, old in zip(self._arrays, arrays, strict=False):
            array[: self._rows, :, :used] = old[: self._rows, :, :used]
        self._lengths = np.zeros(rows, dtype=np.int64)
        self._lengths[: self._rows] = held_lengths


def _opened(
    folder: ModelFolder, device: Device, threads: int, *, replaces_attention: bool
) -> tuple[Any, GraphFacts]:
    """Return an `onnxruntime.InferenceSession` of a folder's graph, changed if possible.

    A graph that is replaced meanwhile is an error too: weights lie where its file says.
    """
    before = _state(folder.graph)
    graph = read_decoder_graph(
        folder.graph,
        attends_to_all=not attention_windows(folder),
        on_cpu=device == "cpu",
        joins=replaces_attention,
    )
    for number, content in enumerate(graph.contents):
        try:
            session = open_session(
                folder.graph,
                device=device,
                threads=threads,
                content=content,
                folder=graph.folder,
                multiplies_integers=graph.facts.multiplies_integers,
            )
            break
        except OutOfMemoryError:
            raise  # else bits would depend on the memory that is free
        except ModelError:
            if number == len(graph.contents) - 1:
                raise  # the graph as it stands on disk decides, and explains itself
    if _state(folder.graph) != before:
        raise ModelError(
            f"{str(folder.graph)!r} was changed while it was opened. Run again when nothing "
            "writes to the folder any more."
        )
    return session, graph.facts


def _state(graph: Path) -> tuple[int, int, int] | None:
    """Return facts that change with a file's content; None where there is no file."""
    try:
        status = graph.stat()
    except OSError:
        return None  # the session reports it
    return status.st_ino, status.st_size, status.st_mtime_ns


def _check_is_decoder(
    folder: ModelFolder,
    inputs: Mapping[str, Any],
    caches: Mapping[str, tuple[int, int] | None],
    outputs: Sequence[str],
) -> None:
    graph = str(folder.graph)
    if not caches or "input_ids" not in inputs or "logits" not in outputs:
        names = ", ".join(sorted(inputs))[:300]
        raise ModelError(
            f"{graph!r} is no decoder with a key-value cache: its inputs are {names}; expected "
            f"input_ids, past_key_values.* and the output logits. {_NEXT_STEP}"
        )
    unknown = [name for name in inputs if name not in _PLAIN_INPUTS and name not in caches]
    missing = [name for name in map(_present, caches) if name not in outputs]
    unsupported = [name for name, node in inputs.items() if node.type not in _DTYPES]
    flat = [name for name, shape in caches.items() if shape is None]
    fixed = [
        f"{name} {node.shape}"
        for name, node in inputs.items()
        if name in caches or name in _BY_TOKEN
        if any(isinstance(size, int) for size in _free_sizes(node.shape))
    ]
    for wrong, fault in (
        (unknown, "needs inputs this engine does not know"),
        (missing, "lacks the cache outputs"),
        (unsupported, "has inputs of a type this engine does not support"),
        (
            fixed,
            "was exported for inputs of one size (rows, tokens and cached tokens must be free)",
        ),
        (flat, "has cache inputs that are not [rows, heads, tokens, size] with known sizes"),
    ):
        if wrong:
            raise ModelError(f"{graph!r} {fault}: {', '.join(wrong)[:300]}. {_NEXT_STEP}")


def _free_sizes(shape: Sequence[Any]) -> Sequence[Any]:
    """Return the numbers of rows and tokens of an input, which a graph must leave open."""
    return shape[:3:2] if len(shape) == 4 else shape[:2]


def _present(past: str) -> str:
    return past.replace(_PAST, _PRESENT, 1)


def cache_shape(folder: ModelFolder, node: Any) -> tuple[int, int] | None:
    """Return heads and size of a cache input; None where neither graph nor folder gives it."""
    shape = node.shape
    if len(shape) != 4 or not isinstance(shape[1], int):
        return None
    if isinstance(shape[3], int):
        return shape[1], shape[3]
    # Newer graphs call it `kv_cache_dim` only.
    config = folder.mapping("config.json")
    sizes = [config.get("head_dim")]
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
        sizes.append(hidden // heads)
    return next(((shape[1], size) for size in sizes if isinstance(size, int) and size > 0), None)
