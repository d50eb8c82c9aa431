"""What the hub says is an error of ours, whatever its client raises, and holds no token."""

import traceback

import huggingface_hub
import pytest

from fairgate.domain.errors import DataError, ModelError
from fairgate.io.named_files import fetch_dataset
from fairgate.onnx.model_folder import fetch

TOKEN = "hf_sesame0123456789"  # noqa: S105  # of no account


class ProtocolError(Exception):
    """Of an HTTP library that the adapter has never heard of."""


@pytest.mark.parametrize("raised", [ProtocolError, ValueError, OSError, RuntimeError])
@pytest.mark.parametrize("said", ["illegal status line: Bearer {}", "x" * 55 + "{}", "a\n{}", ""])
def test_no_token_is_in_what_the_hub_says(monkeypatch, tmp_path, raised, said):
    def ask(*_, **__):
        raise raised(said.format(TOKEN))

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", ask)
    for expected, asked in (
        (ModelError, lambda: fetch("org/model", revision=None, models=tmp_path)),
        (DataError, lambda: fetch_dataset("org/data")),
    ):
        with pytest.raises(expected) as caught:
            asked()
        told = "".join(traceback.format_exception(caught.value))
        assert "hf_s" not in told
        assert "hub (" in told
