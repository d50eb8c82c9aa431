"""What needs an environment of its own: `make test-systems`."""

import os

import pytest


@pytest.fixture(scope="session")
def systems():
    """Return a function that skips where packages are not there, unless they must be."""

    def needs(*packages):
        if "systems" in os.environ.get("FAIRGATE_REQUIRE", "").split():
            return
        for package in packages:
            pytest.importorskip(package, reason=f"{package} is not there: `make test-systems`")

    return needs


@pytest.fixture(scope="session")
def model(tmp_path_factory, systems):
    """Return the address of llama.cpp's server, with the bundled model."""
    systems("gguf", "onnx", "qdrant_client", "xllamacpp")
    from fakes.llama_cpp import demo_gguf, llama_server

    with llama_server(demo_gguf(tmp_path_factory.mktemp("gguf") / "demo.gguf")) as address:
        yield address
