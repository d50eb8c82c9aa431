"""A retriever is handed as many queries as it wants at once, and finds the same."""

import pytest
from fakes.planted import Plant, PlantedRetriever

from fairgate.domain.cases import Case
from fairgate.domain.ports import NOTHING, SILENT
from fairgate.systems.execute import documents_for
from fairgate.systems.revisions import NoStore

ASKED = {"suite": "s", "instruction": "", "labels": (), "cluster": "c", "retriever": "default"}
CASES = [Case(key=f"s{n}", query=f"text {n % 7}", top_k=3, **ASKED) for n in range(10)]


class Listening(PlantedRetriever):
    def __init__(self, at_once):
        super().__init__(Plant())
        self.at_once = at_once
        self.sizes = []

    def retrieve(self, queries, top_k):
        self.sizes.append(len(queries))
        return super().retrieve(queries, top_k)


@pytest.mark.parametrize(("at_once", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (100, [7])])
def test_equal_documents_for_every_size(at_once, sizes):
    asked = Listening(at_once)
    found = documents_for(CASES, {"default": asked}, NoStore(), NOTHING, SILENT)
    assert found == documents_for(CASES, {"default": Listening(64)}, NoStore(), NOTHING, SILENT)
    assert asked.sizes == sizes
