"""What `tokenizers` raises for a damaged or hostile tokenizer file, panics included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairgate.domain.errors import ModelError
from fairgate.domain.wording import harmless
from fairgate.onnx.folder import ModelFolder


def is_tokenizer_error(error: BaseException) -> bool:
    """Return whether the file is to blame.

    A panic of Rust code arrives as a BaseException whose class no module exports, so that it is
    recognised by its name; an interrupt or an exit is none of ours.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@contextmanager
def named_tokenizer(folder: ModelFolder) -> Iterator[None]:
    """Turn what is raised for a damaged file in the block into a ModelError that names the folder.

    ModelError stays what it is.
    """
    try:
        yield
    except BaseException as error:  # neither library documents a narrower class
        if isinstance(error, ModelError) or not is_tokenizer_error(error):
            raise
        raise ModelError(
            f"the tokenizer in {str(folder.path)!r} cannot be loaded ({type(error).__name__}: "
            f"{harmless(' '.join(str(error).split())[:300])}). Copy tokenizer.json, "
            "tokenizer_config.json and config.json from the original model, or export again with "
            "`fairgate export MODEL`."
        ) from error
