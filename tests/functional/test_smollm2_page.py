"""The page on SmolLM2 follows from its stored answers, without the model."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
sys.path.insert(0, str(ROOT / "tools" / "smollm2"))

import recordings  # noqa: E402  its folder is no package
import report  # noqa: E402


@pytest.mark.skipif(not DATA.is_dir(), reason="the published data are not here")
def test_stored_answers_give_the_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MADE", tmp_path)
    recordings.prepare(DATA)
    for name in (*recordings.NAMES, *recordings.BEYOND):
        run = recordings.restore(name)
        whole = (run / "executions.jsonl").read_text("utf-8").splitlines()
        assert len(whole) == json.loads((run / "run.json").read_text("utf-8"))["asked"]["questions"]


@pytest.mark.skipif(not DATA.is_dir(), reason="the published data are not here")
@pytest.mark.whole
def test_stored_answers_give_the_first_table(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MADE", tmp_path)
    recordings.prepare(DATA)
    tasks = [report.judged(name) for name in ("reviews", "comments")]
    page = report.PAGE.read_text("utf-8")
    assert report.overall(*tasks) in page
    for figure in report.power_of_bbq().values():
        assert figure in page


def test_other_data_than_those_asked_about_are_refused(monkeypatch):
    monkeypatch.setattr(recordings, "_texts", dict)
    with pytest.raises(ValueError, match="not those that were asked about"):
        recordings.restore("reviews")


def test_one_section_is_made_anew_and_the_others_stay(monkeypatch):
    page = report.PAGE.read_text("utf-8")
    assert report.with_sections([]) == page
    monkeypatch.setitem(report.ALONE, "asked", lambda: "Nobody was asked.")
    changed = report.with_sections(["asked"])
    assert changed == page.replace(report.asked(), "Nobody was asked.") != page
