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
    from fairgate.io.replies import ReplyPaths, json_path
    from fairgate.systems.asked_retriever import AskedRetriever
    from fairgate.systems.over_calls import CallApplication, Function

    folder = Path(__file__).parent
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    function = Function(
        target=f"real_retrievers:{name}",
        folder=folder,
        paths=ReplyPaths(answer=None, documents=json_path("$.documents")),
    )
    (found,) = AskedRetriever(CallApplication(function)).retrieve(["text number 3"], 2)
    assert len(found) == 2
    for document in found:
        assert document.text == f"text number {document.id[1:]}"
        assert document.label == "toxic"
        assert document.score is None or isinstance(document.score, float)
