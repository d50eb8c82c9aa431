"""Files that stand where another one is expected: a pointer, a web page, a workbook, an archive."""

from __future__ import annotations

import re

BEGINNING = 512
"""Bytes that show what a file is."""
_KINDS = (
    (
        rb"version https://git-lfs\.github\.com/spec/",
        (
            "is a pointer of Git LFS, not the file itself: fetch it with `git lfs pull` (in a "
            "workflow: `actions/checkout` with `lfs: true`)"
        ),
    ),
    (
        rb"\s*(?:(?:<\?xml[^>]*>|<!--.*?-->)\s*)*<(?:!doctype html|html|head\b)",
        (
            "is a web page, not the file itself: a download that asked for a login, or the page "
            "about it; fetch the file"
        ),
    ),
    (
        rb"\s*<\?xml\s|\s*<Error>\s*<Code>",
        (
            "is an XML document, such as the error of a file store: fetch the file, or save "
            "its texts as a table"
        ),
    ),
    (rb"\x1f\x8b", "is compressed with gzip, which is not read: unpack it with `gunzip`"),
    (
        rb"PK\x03\x04|PK\x05\x06|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "is a workbook (.xlsx) or a ZIP archive: unpack it, or save the sheet as `CSV UTF-8`",
    ),
    (rb"%PDF-", "is a PDF: save its texts as a table"),
)


def stand_in(beginning: bytes) -> str:
    """Return, for a sentence, what a file is that begins so, and what to do; empty: what it should.

    Parquet, JSON, CSV, YAML, ONNX and texts begin with none of these.
    """
    text = beginning.removeprefix(b"\xef\xbb\xbf")
    sentences = (
        words for begins, words in _KINDS if re.match(begins, text, re.IGNORECASE | re.DOTALL)
    )
    return next(sentences, "")
