"""Models by Hugging Face id: exported here before, in the local hub cache, or on the hub.

Only data files are fetched, never code. Nothing is fetched when HF_HUB_OFFLINE is set.
"""

from __future__ import annotations

import re
from pathlib import Path

from fairgate.adapters.hub_failures import asking_the_hub
from fairgate.domain.errors import ModelError
from fairgate.domain.wording import quoted

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_PATTERNS = ["*.onnx", "*.onnx_data*", "*.onnx.data", "*.json", "*.txt", "*.model", "*.jinja"]


def is_hub_id(name: str) -> bool:
    """Return whether `name` has the form `organisation/model`."""
    return _ID.fullmatch(name) is not None


def exported_folder(name: str, models: Path) -> Path:
    """Return where `fairgate export` puts the model `name`."""
    return models / name.replace("/", "--")


def fetch(name: str, *, revision: str | None, models: Path) -> Path:
    """Return a folder with the model's files. Raises ModelError that says how to get them."""
    local = exported_folder(name, models)
    if local.is_dir():
        return local
    from huggingface_hub import snapshot_download

    def failure(reason: str) -> ModelError:
        return ModelError(
            f"the model {quoted(name)} is neither in {quoted(str(models))} nor to be had from the "
            f"hub ({quoted(reason)}); export it with `fairgate export {name}`, or name a folder "
            "with its ONNX files"
        )

    with asking_the_hub(failure):
        return Path(snapshot_download(name, revision=revision, allow_patterns=_PATTERNS))
