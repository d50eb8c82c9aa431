"""The page on what moves follows from stored answers of two systems each, without a model."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
sys.path.insert(0, str(ROOT / "tools" / "smollm2"))

import recordings  # noqa: E402  its folder is no package
import shifts  # noqa: E402


def found(names, folder, monkeypatch):
    monkeypatch.setattr(shifts, "MADE", folder)
    return {name: shifts.Found(shifts.judged(name)) for name in names}


def test_the_embedders_tables_follow_from_their_recordings(tmp_path, monkeypatch):
    records = found(shifts.EMBEDDERS, tmp_path, monkeypatch)
    page = shifts.PAGE.read_text("utf-8")
    assert shifts.embedders(records) in page
    assert shifts.exposures(records) in page


@pytest.mark.skipif(not DATA.is_dir(), reason="the published data are not here")
@pytest.mark.whole
def test_the_whole_page_follows(tmp_path, monkeypatch):
    recordings.prepare(DATA)
    names = (*shifts.PRECISIONS, *shifts.EMBEDDERS)
    kept = [name for name in names if (shifts.KEPT / f"{name}.jsonl.gz").is_file()]
    assert shifts.page(found(kept, tmp_path, monkeypatch)) == shifts.PAGE.read_text("utf-8")


def test_recordings_hold_no_text_of_a_document():
    for file in shifts.KEPT.glob("*.jsonl.gz"):
        rows = shifts.rows_of(file.name.removesuffix(".jsonl.gz"))
        documents = [document for row in rows for document in row.get("documents") or ()]
        assert rows, file
        assert not any("text" in document or "query" in document for document in documents), file
