"""Runs of SmolLM2 follow from its stored answers, without the model."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
sys.path.insert(0, str(ROOT / "tools" / "smollm2"))

import recordings  # noqa: E402  its folder is no package


@pytest.mark.skipif(not DATA.is_dir(), reason="the published data are not here")
def test_stored_answers_give_the_runs():
    recordings.prepare(DATA)
    for name in (*recordings.NAMES, *recordings.BEYOND):
        run = recordings.restore(name)
        whole = (run / "executions.jsonl").read_text("utf-8").splitlines()
        assert len(whole) == json.loads((run / "run.json").read_text("utf-8"))["asked"]["questions"]


def test_other_data_than_those_asked_about_are_refused(monkeypatch):
    monkeypatch.setattr(recordings, "_texts", dict)
    with pytest.raises(ValueError, match="not those that were asked about"):
        recordings.restore("reviews")
