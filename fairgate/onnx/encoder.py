"""Embeds and classifies texts with ONNX encoders: `tokenizers` + ONNX Runtime, no torch.

Texts become rows of tokens, rows states of tokens, vectors or scores. Batches run at the same time,
each on one thread: several threads on one batch would wait for each other after every product.
Pooling, prompts, normalisation and length limit are read from the files sentence-transformers
writes, so a model works as it does there; what they leave open, the policy sets. A classifier is
any Hugging Face sequence classifier: its folder holds the graph (output `logits`), `tokenizer.json`
and `config.json` with `id2label`.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fairgate.domain.cases import Classified
from fairgate.domain.errors import DataError, ModelError, OutOfMemoryError
from fairgate.domain.ports import Vectors
from fairgate.domain.wording import harmless, listed, quoted, suggestion
from fairgate.onnx.attention_settings import rotary_switch
from fairgate.onnx.batches import batches_by_width, most_rows, padded_width
from fairgate.onnx.encoder_settings import (
    EmbedderChoice,
    EncoderSettings,
    classifier_settings,
    pooled,
    read_settings,
)
from fairgate.onnx.graph_file import DamagedGraphError, output_names
from fairgate.onnx.model_folder import ModelFolder, is_tokenizer_error, neutralised
from fairgate.onnx.session import (
    Device,
    has_integer_products,
    mapped_errors,
    open_session,
    sound_model,
)

T = TypeVar("T")

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


class TokenRow(NamedTuple):
    """The tokens of one text."""

    ids: list[int]
    types: list[int]
    """Which segment each token belongs to."""


def pools_by_itself(folder: ModelFolder) -> bool:
    """Return whether the graph gives vectors of whole texts, by the names of its outputs."""
    try:
        return POOLED in output_names(folder.graph)
    except (DamagedGraphError, OSError):
        return False


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
        rows: Sequence[TokenRow],
        batch_size: int | None,
        fitting: Callable[[int], int],
        take: Callable[[list[int], Vectors], T],
    ) -> Iterator[T]:
        """Yield `take(row_indices, states)` for batches that share no row; `take` runs in threads.

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
        fills = self._device != "cpu"  # see DecoderSession.fills_batches
        most = max(1, batch_size)
        if not fills:
            most = -(-min(most, len(rows)) // self._threads)
        batches = list(batches_by_width(lengths, most, width_of))

        def work(batch: tuple[int, list[int]]) -> T:
            width, row_indices = batch
            together = [rows[number] for number in row_indices]
            copies = [together[0]] * (most - len(together) if fills else 0)
            states = self.run([*together, *copies], fitting(width))
            return take(row_indices, states[: len(row_indices)])

        if self._threads == 1 or len(batches) < 2:
            yield from map(work, batches)
            return
        from concurrent.futures import ThreadPoolExecutor  # a stored gate needs none

        pool = ThreadPoolExecutor(self._threads)
        try:
            yield from pool.map(work, reversed(batches))  # the widest first: none is left for last
        finally:
            pool.shutdown(cancel_futures=True)

    def run(self, rows: Sequence[TokenRow], width: int) -> Vectors:
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

    def _run(self, rows: Sequence[TokenRow], width: int) -> Vectors:
        if self._pooled and len(rows) == 1:
            # A lone vector would take other kernels: it runs beside its own copy.
            return self._run([*rows, *rows], width)[:1]
        feeds = self._feeds(rows, width)
        with mapped_errors(
            f"the encoder {str(self._folder.path)!r} failed on {len(rows)} texts of {width} tokens",
            _EXPORT,
        ):
            states = np.asarray(self._session.run([self._output], feeds)[0], dtype=np.float32)
        expected = (len(rows),) if self._pooled else (len(rows), width)
        if states.ndim != len(expected) + 1 or states.shape[:-1] != expected:
            raise ModelError(
                f"{str(self._folder.graph)!r} returned {self._output} of shape {states.shape} for "
                f"{len(rows)} texts of {width} tokens; expected one vector a "
                f"{'text' if self._pooled else 'token'}. {_EXPORT}"
            )
        return states

    def _feeds(
        self, rows: Sequence[TokenRow], width: int
    ) -> dict[str, npt.NDArray[np.integer[Any]]]:
        """Return the graph's inputs `[rows, width]`, each in its format."""
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row.ids)] = row.ids
            types[number, : len(row.ids)] = row.types
            mask[number, : len(row.ids)] = 1
        lengths = mask.sum(axis=1, keepdims=True)
        feeds: dict[str, npt.NDArray[np.integer[Any]]] = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": types,
            # Padding repeats the last position: a table of positions may end there.
            "position_ids": np.minimum(np.arange(width, dtype=np.int64), lengths - 1),
        }
        return {
            name: feeds[name].astype(np.int32 if "int32" in kind else np.int64)
            for name, kind in self._inputs.items()
        }

    @property
    def dimensions(self) -> int:
        """Return how many components a token's state (or a pooled vector) has."""
        [width] = [
            node.shape[-1] for node in self._session.get_outputs() if node.name == self._output
        ]
        return width if isinstance(width, int) else int(self.run([_trial(1)], 1).shape[-1])

    @cached_property
    def _session(self) -> Any:
        with sound_model(self._folder.graph) as read:
            integers = read is not None and has_integer_products(read[0])
            return open_session(
                self._folder.graph, device=self._device, threads=1, multiplies_integers=integers
            )

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
        fixed = [
            f"{node.name} {node.shape}"
            for node in self._session.get_inputs()
            if any(isinstance(size, int) for size in node.shape)
        ]
        if fixed:
            raise ModelError(
                f"{str(self._folder.graph)!r} was exported for inputs of one size: numbers of rows "
                f"and tokens must be free, but it fixes {', '.join(fixed)[:300]}. {_EXPORT}"
            )
        return inputs

    @cached_property
    def _output(self) -> str:
        types = {node.name: node.type for node in self._session.get_outputs()}
        output = next((name for name in self._outputs if name in types), None)
        if output is None:
            raise ModelError(
                f"{str(self._folder.graph)!r} has no token states among its outputs "
                f"({', '.join(types)[:300]}); expected {' or '.join(self._outputs)}. {_EXPORT}"
            )
        if not re.search("float|double", types[output]):
            raise ModelError(
                f"{str(self._folder.graph)!r} gives {output} as {types[output]}; expected floating "
                f"point: its scale is not known. {_EXPORT}"
            )
        return output


def _trial(length: int) -> TokenRow:
    return TokenRow(ids=list(range(length)), types=[0] * length)


class EncoderTokens:
    """The `tokenizer.json` of a folder, cut to the model's length. Read at the first text."""

    def __init__(self, folder: ModelFolder, settings: EncoderSettings) -> None:
        """Name the folder and how texts are cut."""
        self._folder = folder
        self._settings = settings

    def rows(self, texts: Sequence[str | tuple[str, str]], prompt: str = "") -> list[TokenRow]:
        """Return the tokens of each text or pair of texts behind a prompt; at least one.

        Control tokens that a text spells out are broken up, so that none begins, ends or masks
        anything. Raises ModelError.
        """
        cleaned = [
            _clean(prompt) + self._plain(text)
            if isinstance(text, str)
            else (self._plain(text[0]), self._plain(text[1]))
            for text in texts
        ]
        rows = [
            TokenRow(ids=list(encoding.ids) or [0], types=list(encoding.type_ids) or [0])
            for encoding in self._tokenizer.encode_batch_fast(cleaned)
        ]
        size = self._folder.number("config.json", "vocab_size")
        if size is not None:
            for text, row in zip(cleaned, rows, strict=True):
                if (most := max(row.ids)) >= size:
                    raise ModelError(
                        f"the text {quoted(str(text))} has the token "
                        f"{quoted(str(self._tokenizer.id_to_token(most)))}, number {most:,}, and "
                        f"{str(self._folder.path)!r} knows {size:,} tokens (`vocab_size` in its "
                        "config.json): its tokenizer is another model's; copy the one of the "
                        "original model"
                    )
        return rows

    def _plain(self, text: str) -> str:
        return neutralised(_clean(text), self._controls)

    @cached_property
    def _controls(self) -> list[str]:
        size = self._folder.number("config.json", "vocab_size")
        added = self._tokenizer.get_added_tokens_decoder().items()
        texts = {
            token.content
            for number, token in added
            if token.special or (size is not None and number >= size)
        }
        return sorted((text for text in texts if len(text) > 1), key=len, reverse=True)

    def cuts(self, text: str) -> bool:
        """Return whether a text is cut to the model's length. Raises ModelError."""
        return bool(self._tokenizer.encode(_clean(text)).overflowing)

    def prompt_length(self, prompt: str) -> int:
        """Return how many tokens a prompt takes, without a control token that ends every text."""
        [row] = self.rows([""], prompt)
        last = self._tokenizer.get_added_tokens_decoder().get(row.ids[-1])
        return len(row.ids) - (last is not None and last.special)

    def fitting(self, width: int) -> int:
        """Return a width that does not go beyond the model's length."""
        return min(width, self._settings.max_tokens or width)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer, normalizers

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
        if self._settings.lower:  # before all else, as `do_lower_case` means
            own = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
            tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])
        if self._settings.max_tokens is not None:
            self._check_room(tokenizer, self._settings.max_tokens)
            side = "left" if self._settings.cut_on_the_left else "right"
            tokenizer.enable_truncation(self._settings.max_tokens, direction=side)
        return tokenizer

    def _check_room(self, tokenizer: Any, limit: int) -> None:
        """Refuse what leaves no token to the text: all texts would be the same."""
        for prompt in (self._settings.query_prompt, self._settings.document_prompt):
            token_count = len(tokenizer.encode(_clean(prompt)).ids)
            if token_count >= limit:
                subject = f"the prompt {quoted(prompt)} takes" if prompt else "special tokens take"
                raise ModelError(
                    f"{subject} {token_count} tokens, but {str(self._folder.path)!r} reads only "
                    f"{limit}, so nothing of a text is left. Choose a shorter prompt in the "
                    "policy, or another model."
                )

    def _check_agreement(self, tokenizer: Any) -> None:
        """Refuse settings that transformers would follow and `tokenizer.json` does not."""
        declared = self._folder.mapping("tokenizer_config.json")
        file = self._folder.mapping("tokenizer.json")
        ids = tokenizer.encode("a").ids
        behaviours: list[tuple[str, object]] = []
        for key, name, end in (
            ("add_bos_token", "bos_token", 0),
            ("add_eos_token", "eos_token", -1),
        ):
            token = declared.get(name)
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(token, str):
                behaviours.append((key, bool(ids) and ids[end] == tokenizer.token_to_id(token)))
        before = file.get("pre_tokenizer")
        inner = before.get("pretokenizers") if isinstance(before, dict) else None
        behaviours += [
            ("add_prefix_space", step.get("add_prefix_space"))
            for step in (inner if isinstance(inner, list) else [before])
            if isinstance(step, dict) and step.get("type") == "ByteLevel"
        ]
        normalizer = file.get("normalizer")
        if isinstance(normalizer, dict) and normalizer.get("type") == "BertNormalizer":
            behaviours += [(key, normalizer.get(name)) for key, name in _BERT_SWITCHES.items()]
        for key, behaves in behaviours:
            wanted = declared.get(key)
            if isinstance(wanted, bool) and isinstance(behaves, bool) and wanted != behaves:
                raise ModelError(
                    f"the tokenizer in {str(self._folder.path)!r} is not certain: "
                    f"tokenizer_config.json sets {quoted(key)} to {str(wanted).lower()}, but "
                    f"tokenizer.json behaves as for {str(behaves).lower()}. Export the model again "
                    "with `fairgate export MODEL --task feature-extraction`, which makes them "
                    "agree."
                )


def _clean(text: str) -> str:
    # A lone surrogate (from broken input) is no text; the tokenizer would refuse it.
    return text.encode("utf-8", "replace").decode("utf-8")


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
        by_graph = pools_by_itself(self._folder)
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
        return f"onnx-encoder/3:{content}"

    @property
    def dimensions(self) -> int:
        """Return the number of components of a vector."""
        full = self._session.dimensions * max(1, len(self.settings.poolings))
        return min(full, self.settings.dimensions or full)

    def cuts(self, text: str) -> bool:
        """Return whether a text is longer than what the model reads of it. Raises ModelError."""
        return self._tokens.cuts(self._prompt + text)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 `[len(texts), dimensions]`, in order. Raises ModelError."""
        unique = list(dict.fromkeys(texts))
        if not unique:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows = self._tokens.rows(unique, self._prompt)
        left_out = 0
        if self._prompt and not self.settings.includes_prompt:
            left_out = self._tokens.prompt_length(self._prompt)
        self._check_lengths([len(row.ids) for row in rows])

        def take(row_indices: list[int], states: Vectors) -> dict[str, Vectors]:
            return {
                unique[number]: self._vector(state, rows[number], left_out)
                for number, state in zip(row_indices, states, strict=True)
            }

        parts = self._session.each_batch(rows, self._batch_size, self._tokens.fitting, take)
        vectors = dict(pair for part in parts for pair in part.items())
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

    def _vector(self, state: Vectors, row: TokenRow, left_out: int) -> Vectors:
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


def decided(scores: npt.NDArray[np.float64], groups: Sequence[str]) -> Classified:
    """Return the most probable group of one text's scores (logits), and its margin in nats.

    Labels of one group share its probability. Of equally probable groups the first in the alphabet
    is taken, with a margin of 0.
    """
    logs = scores - np.logaddexp.reduce(scores)
    by_group = {
        name: float(
            np.logaddexp.reduce([logs[n] for n, group in enumerate(groups) if group == name])
        )
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
        self._groups = mapped_labels(own_labels(self._folder), labels, allowed)
        self._batch_size = batch_size
        self._device: Device = device
        self._session = EncoderSession(
            self._folder, device=device, threads=threads, pooled=True, vector="logits"
        )
        self._tokens = EncoderTokens(self._folder, classifier_settings(self._folder))
        self._classified: dict[str, Classified] = {}

    @cached_property
    def fingerprint(self) -> str:
        """Identify the folder's files, the label map and the device."""
        return f"onnx-classifier/2:{self._folder.fingerprint(self._groups, self._device)}"

    def cuts(self, text: str) -> bool:
        """Return whether a text is longer than what the model reads of it. Raises ModelError."""
        return self._tokens.cuts(text)

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Classify each text, in order. Raises ModelError."""
        new = [text for text in dict.fromkeys(texts) if text not in self._classified]
        rows = self._tokens.rows(new) if new else []

        def take(row_indices: list[int], states: Vectors) -> dict[str, Classified]:
            if states.shape[1] != len(self._groups):
                raise ModelError(
                    f"the classifier {str(self._folder.path)!r} returned {states.shape[1]} scores "
                    f"a text, expected {len(self._groups)}, as many as `id2label` in its "
                    "config.json names. Export the model again, or correct config.json."
                )
            if not np.isfinite(states).all():
                raise ModelError(
                    f"the classifier {str(self._folder.path)!r} returned scores that are not "
                    "finite. Its weights are damaged or overflow in this precision: export it in "
                    "fp32."
                )
            return {
                new[number]: decided(scores, self._groups)
                for number, scores in zip(row_indices, states.astype(np.float64), strict=True)
            }

        for part in self._session.each_batch(rows, self._batch_size, self._tokens.fitting, take):
            self._classified |= part
        return [self._classified[text] for text in texts]


def mapped_labels(
    own: Sequence[str], labels: Mapping[str, str], allowed: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the meaning of each of a model's labels. Raises DataError with all problems."""
    if allowed is None:
        allowed = list(labels.values()) or [name.lower() for name in own]
    wanted = listed(list(allowed), last="and")
    if not labels:
        if strange := [name for name in own if name.lower() not in allowed]:
            raise DataError(
                f"the classifier's labels {listed(strange, last='and')} are "
                f"none of {wanted}; give `labels` with what each of its labels means"
            )
        return tuple(name.lower() for name in own)
    if unknown := [name for name in labels if name not in own]:
        raise DataError(
            f"the classifier has no label {quoted(unknown[0])}; {suggestion(unknown[0], own)}"
        )
    if missing := [name for name in own if name not in labels]:
        names = listed(missing, last="and")
        raise DataError(f"`labels` has no meaning for the classifier's {names}; add them")
    if wrong := [name for name in labels.values() if name not in allowed]:
        raise DataError(f"`labels`: found {quoted(wrong[0])}, expected one of {wanted}")
    if len(set(labels.values())) < 2:
        raise DataError("`labels` maps everything to one label, so nothing can differ; name two")
    return tuple(labels[name] for name in own)


def own_labels(folder: ModelFolder) -> list[str]:
    """Return the model's labels in the order of its scores."""
    entries = folder.mapping("config.json").get("id2label")
    try:
        labels = {int(number): str(label) for number, label in dict(entries or {}).items()}
    except (TypeError, ValueError):
        labels = {}
    if len(labels) < 2 or sorted(labels) != list(range(len(labels))):
        raise ModelError(
            f"the config.json in {str(folder.path)!r} has no `id2label` with two labels or more, "
            "numbered from 0; expected a sequence classifier. Copy config.json from the original "
            "model, or choose another one."
        )
    return [labels[number] for number in range(len(labels))]
