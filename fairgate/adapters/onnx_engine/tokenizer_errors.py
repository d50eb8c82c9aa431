"""What `tokenizers` raises for a damaged or hostile tokenizer file, panics included."""

from __future__ import annotations


def is_tokenizer_error(error: BaseException) -> bool:
    """Return whether the file is to blame.

    A panic of Rust code arrives as a BaseException whose class no module exports, so that it is
    recognised by its name; an interrupt or an exit is none of ours.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
