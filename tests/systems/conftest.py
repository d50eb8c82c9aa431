"""What needs an environment of its own: `make test-systems`."""

import os

import pytest

PACKAGES = ("gguf", "onnx", "qdrant_client", "xllamacpp")


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Return the address of llama.cpp's server, with the embedded model."""
    if "systems" not in os.environ.get("FAIRGATE_REQUIRE", "").split():
        for package in PACKAGES:
            pytest.importorskip(package, reason="is not there: `make test-systems`")
    from fakes.llama_cpp import demo_gguf, llama_server

    with llama_server(demo_gguf(tmp_path_factory.mktemp("gguf") / "demo.gguf")) as address:
        yield address
