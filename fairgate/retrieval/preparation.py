"""`fairgate corpus prepare`: a raw table of texts becomes a corpus (P1 section 4.1)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import DataError, ModelError, UsageError
from fairgate.domain.executions import CorpusDocument, CorpusSpec
from fairgate.domain.ports import SILENT, Progress
from fairgate.domain.wording import quoted
from fairgate.io.durable import durable_file
from fairgate.io.regular import content_of
from fairgate.io.tables import MAX_TEXT_CHARACTERS, Row, checked_text, file_sha256, read_json_object
from fairgate.retrieval.corpus import CorpusColumns

MANIFEST_VERSION = 1
_VERSION = "prepared-1"
"""Part of the name in the cache: raise it when the same input would give another output."""
_EMPTY, _TOO_LONG = -1, -2
_DROP_REASONS = {_EMPTY: "empty", _TOO_LONG: "over-size"}
_TEXTS_AT_ONCE = 512
_CHARACTERS_AT_ONCE = 4_000_000
SHORTEST_TEXT = 10
"""Cleaned texts with fewer characters are dropped."""
_URL = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w@])(?:@+\w+)+")
_FILE = "tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationOptions:
    """What of the cleaned texts is kept."""

    sample: float = 1.0
    """Fraction of the cleaned texts, in (0, 1]; P1 keeps 0.1."""
    seed: int = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFence:
    """Token counts from `low` to `high`, both kept: Q1 - 1.5 IQR to Q3 + 1.5 IQR."""

    q1: float
    q3: float
    low: float
    high: float


def length_fence(counts: npt.NDArray[np.int32]) -> LengthFence:
    """Return Tukey's fence of at least one token count; quartiles interpolate linearly."""
    q1, q3 = (float(value) for value in np.percentile(counts, [25, 75]))
    spread = 1.5 * (q3 - q1)
    return LengthFence(q1=q1, q3=q3, low=q1 - spread, high=q3 + spread)


def clean_text(text: str) -> str:
    """Return `text` in lower case, without URLs and @mentions, single blanks between words.

    An e-mail address is no mention: it stays.
    """
    without = _MENTION.sub(" ", _URL.sub(" ", text))
    return " ".join(without.lower().split())


def is_sampled(id_: str, options: PreparationOptions) -> bool:
    """Return whether a document belongs to the sample: its id and the seed alone decide."""
    digest = hashlib.sha256(f"{options.seed}\x00{id_}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < options.sample * 2.0**64


def prepare_corpus(
    spec: CorpusSpec,
    output: Path | str,
    *,
    tokens: TokenizerFile,
    options: PreparationOptions = PreparationOptions(),
    progress: Progress = SILENT,
) -> Mapping[str, Any]:
    """Write the cleaned corpus as JSONL and a manifest beside it; return the manifest.

    Two streaming passes: token counts first (4 bytes a row are kept), then the fence, cleaning and
    the sample. Lines are `{"id", "text", "label"}` in the order of the input; without labels in the
    input there is no `label`. Equal inputs give equal bytes. Both files appear at the end, or
    neither. Raises DataError, UsageError, StoreError.
    """
    if not 0 < options.sample <= 1:
        raise UsageError(f"sample is {options.sample}; expected a fraction in (0, 1]")
    target = Path(output)
    if target.suffix != ".jsonl" or target.resolve() == Path(spec.path).resolve():
        raise UsageError(
            f"{target}: cannot be the output; expected a .jsonl file other than the input"
        )
    preparation = _Preparation(spec, tokens, options, progress)
    with (
        durable_file(manifest_path(target), option="--output") as manifest_file,
        durable_file(target, option="--output") as output_file,
    ):
        for document in preparation.documents():
            output_file.write(preparation.line(document))
        manifest = preparation.manifest(target.name, output_file.sha256)
        manifest_file.write(json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n")
    return manifest


def prepared_corpus(
    spec: CorpusSpec,
    cache_dir: Path | str,
    *,
    tokens: TokenizerFile,
    progress: Progress = SILENT,
) -> CorpusSpec:
    """Return a table's prepared corpus, made now or found intact in `cache_dir/corpora`."""
    identity = (_VERSION, file_sha256(spec.path), spec.id, spec.text, spec.label)
    parts = (*identity, tokens.fingerprint)
    name = hashlib.sha256(repr(parts).encode()).hexdigest()
    target = Path(cache_dir) / "corpora" / f"{name}.jsonl"
    is_intact = False
    with contextlib.suppress(KeyError, TypeError, DataError):
        manifest = read_json_object(manifest_path(target))
        is_intact = manifest["output"]["sha256"] == file_sha256(str(target))
    if not is_intact:
        prepare_corpus(spec, target, tokens=tokens, progress=progress)
    return CorpusSpec(path=str(target), id="id", text="text", label=None)


def manifest_path(output: Path) -> Path:
    """Return where the manifest of a prepared corpus lies: beside it."""
    return output.with_name(f"{output.name}.manifest.json")


class _Preparation:
    """One run over one input: rows read, rows dropped and why."""

    def __init__(
        self,
        spec: CorpusSpec,
        tokens: TokenizerFile,
        options: PreparationOptions,
        progress: Progress,
    ) -> None:
        self._spec = spec
        self._tokens = tokens
        self._options = options
        self._progress = progress
        self._columns = CorpusColumns(spec)
        self._sha256 = file_sha256(spec.path)
        self._reasons = Counter[str]()
        self._rows = 0
        self._fence: LengthFence | None = None
        self._first_text: str | None = None
        self._has_other_texts = False

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the documents that stay. Raises DataError where none does."""
        counts = np.frombuffer(self._counted(), dtype=np.int32)
        self._rows = len(counts)
        lengths = counts[counts >= 0]
        if not len(lengths):
            raise DataError(f"{self._spec.path}: holds no text; expected at least one row")
        self._fence = length_fence(lengths)
        self._progress.start("clean", self._rows, 0)
        # A file that changes between the passes fails its checksum below, whatever its length.
        for row, count in zip(self._columns.rows(), counts.tolist(), strict=False):
            result = self._cleaned(row, count, self._fence)
            self._progress.advance(1)
            if isinstance(result, str):
                self._reasons[result] += 1
            else:
                self._first_text = self._first_text or result.text
                self._has_other_texts |= result.text != self._first_text
                yield result
        self._progress.finish()
        if file_sha256(self._spec.path) != self._sha256:
            raise DataError(f"{self._spec.path}: changed while it was read; run again")
        if self._reasons.total() == self._rows:
            raise DataError(
                f"{self._spec.path}: nothing is left of {self._rows:,} rows "
                f"({dict(sorted(self._reasons.items()))}); expected texts: check the `text` column"
            )

    def manifest(self, name: str, sha256: str) -> dict[str, Any]:
        """Return the record of the work, without anything that differs between equal runs."""
        columns = self._columns
        return {
            "schema_version": MANIFEST_VERSION,
            "input": {"name": Path(self._spec.path).name, "sha256": self._sha256},
            "output": {"name": name, "sha256": sha256},
            "columns": {"id": columns.id, "text": columns.text, "label": columns.label},
            "tokenizer": {"name": self._tokens.name, "fingerprint": self._tokens.fingerprint},
            "options": asdict(self._options),
            "tokens": None if self._fence is None else asdict(self._fence),
            "counts": {
                "in": self._rows,
                "out": self._rows - self._reasons.total(),
                "dropped": dict(sorted(self._reasons.items())),
            },
            "same_text": not self._has_other_texts and self._rows - self._reasons.total() > 1,
        }

    def _counted(self) -> array[int]:
        """Return the token count of every row; negative codes for rows that cannot stay."""
        counts = array("i")
        texts = (self._text(row) for row in self._columns.rows())
        for batch in _batches(texts):
            usable = [text for text in batch if _drop_code(text) is None]
            lengths = iter(self._tokens(usable) if usable else ())
            for text in batch:
                code = _drop_code(text)
                counts.append(next(lengths) if code is None else code)
        return counts

    def _text(self, row: Row) -> str:
        value = self._columns.raw_text(row)
        if isinstance(value, str) and len(value) > MAX_TEXT_CHARACTERS:
            return value
        return checked_text(value, f"{self._spec.path}:{row.line}", self._columns.text)

    def _cleaned(self, row: Row, count: int, fence: LengthFence) -> CorpusDocument | str:
        """Return the row as a cleaned document, or the reason why it is dropped."""
        if count in _DROP_REASONS:
            return _DROP_REASONS[count]
        if not fence.low <= count <= fence.high:
            return "few-tokens" if count < fence.low else "many-tokens"
        document = self._columns.document(row, clean_text(self._text(row)))
        if len(document.text) < SHORTEST_TEXT:
            return "short-text"
        return document if is_sampled(document.id, self._options) else "not-sampled"

    def line(self, document: CorpusDocument) -> bytes:
        """Return a document as a line of the output; `label` is there if the input has labels."""
        record: dict[str, str | None] = {"id": document.id, "text": document.text}
        if self._columns.label is not None:
            record["label"] = document.label
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _drop_code(text: str) -> int | None:
    if not text or text.isspace():
        return _EMPTY
    return _TOO_LONG if len(text) > MAX_TEXT_CHARACTERS else None


def _batches(texts: Iterator[str]) -> Iterator[list[str]]:
    """Yield texts in lists that are bounded in number and in characters."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if len(batch) == _TEXTS_AT_ONCE or characters > _CHARACTERS_AT_ONCE:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


class TokenizerFile:
    """A `tokenizer.json` that counts the tokens of texts, special tokens left out."""

    def __init__(self, path: Path, name: str) -> None:
        """Name the file; it is read when the first text is counted."""
        self._path = path
        self.name = name

    @cached_property
    def fingerprint(self) -> str:
        """Identify the file's bytes."""
        return hashlib.sha256(content_of(self._path)).hexdigest()

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._path))
        except Exception as error:  # tokenizers raises bare Exception for a bad file
            raise ModelError(
                f"{quoted(str(self._path))} is no tokenizer.json that can be read: {error}"
            ) from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def __call__(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the number of tokens of each text."""
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encodings = self._tokenizer.encode_batch_fast(clean, add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]


def hub_tokenizer(name: str) -> TokenizerFile | None:
    """Return the tokenizer of a Hugging Face model (`gpt2`); None where it is not available."""
    # `hf_hub_download` tries a hub that cannot be reached six times, for half a minute.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(name, allow_patterns=[_FILE])
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError):
        return None
    path = Path(folder) / _FILE
    return TokenizerFile(path, name) if path.is_file() else None
