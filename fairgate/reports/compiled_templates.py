"""Templates as byte code, kept beside that of our modules.

Read and written where Python keeps its own, and as Python does: nothing is written where Python
writes none, and nothing is read from the folder of a policy, a cache or a run: others write there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sys
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, BytecodeCache

_OPTIONS = ("autoescape", "trim_blocks", "lstrip_blocks")
_DIGEST = 32
"""Length of the SHA-256 before the code: half a file is none."""


class CompiledTemplates(BytecodeCache):
    """Byte code by template; made of another text, by another jinja2 or Python, it is stale."""

    def get_bucket(
        self, environment: jinja2.Environment, name: str, filename: str | None, source: str
    ) -> Bucket:
        """Return the bucket of a template, filled where its code is there."""
        options = [getattr(environment, option) for option in _OPTIONS]
        made_of = f"{jinja2.__version__} {options} {source}"
        return super().get_bucket(environment, name, filename, made_of)

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket; it stays empty where there is nothing, or it is damaged or stale."""
        with contextlib.suppress(OSError):
            stored = _place(bucket).read_bytes()
            digest, code = stored[:_DIGEST], stored[_DIGEST:]
            if hashlib.sha256(code).digest() == digest:
                bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the bucket's code, where Python keeps its own: a folder may be read-only."""
        if sys.dont_write_bytecode:
            return
        place = _place(bucket)
        draft = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
        with contextlib.suppress(OSError):
            place.parent.mkdir(exist_ok=True)
            try:
                code = bucket.bytecode_to_string()
                draft.write_bytes(hashlib.sha256(code).digest() + code)
                os.replace(draft, place)  # noqa: PTH105 - as everywhere else
            finally:
                draft.unlink(missing_ok=True)


def _place(bucket: Bucket) -> Path:
    beside = Path(cache_from_source(__file__))
    return beside.with_name(f"{bucket.key}.{beside.name.removeprefix('compiled_templates.')}")
