"""The frameworks' own retrievers, not our idea of them; `make test-systems`."""

import os
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.systems, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("name", ["langchain", "llamaindex", "haystack"])
def test_retrievers_of_frameworks_are_asked_as_they_are(name, monkeypatch):
    if "systems" not in os.environ.get("FAIRGATE_REQUIRE", "").split():
        for package in ("langchain_core", "llama_index.core", "haystack"):
            pytest.importorskip(package, reason="is not there: `make test-systems`")
    from fairgate.domain.ports import SILENT, Runtime
    from fairgate.systems.budget import Meter
    from fairgate.systems.own_retriever import AskedRetriever, OwnRetrieverPolicy
    from fairgate.systems.resources import Resources

    folder = Path(__file__).parent
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    policy = OwnRetrieverPolicy(python=f"real_retrievers:{name}")
    resources = Resources(Runtime(root=folder, allow_python=True), SILENT)
    (found,) = AskedRetriever(policy, resources, Meter()).retrieve(["text number 3"], 2)
    assert len(found) == 2
    for document in found:
        assert document.text == f"text number {document.id[1:]}"
        assert document.label == "toxic"
        assert document.score is None or isinstance(document.score, float)
