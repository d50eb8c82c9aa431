"""Counts tokens for the length fence of `corpus prepare`, with the `tokenizers` library."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted

_FILE = "tokenizer.json"


class TokenizerFile:
    """A `tokenizer.json` that counts the tokens of texts, special tokens left out."""

    def __init__(self, path: Path, name: str) -> None:
        """Name the file; it is read when the first text is counted."""
        self._path = path
        self.name = name

    @cached_property
    def fingerprint(self) -> str:
        """Identify the file's bytes."""
        return hashlib.sha256(self._path.read_bytes()).hexdigest()

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
