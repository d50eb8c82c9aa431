"""The prompts of the export's comparison are those that the recipe writes."""

import json
from importlib import resources

import make_parity_prompts


def test_the_file_is_what_the_recipe_writes(tmp_path, monkeypatch):
    packaged = make_parity_prompts.DATA / "parity/prompts.jsonl"
    written = tmp_path / "parity" / "prompts.jsonl"
    monkeypatch.setattr(make_parity_prompts, "OUTPUT", tmp_path)
    make_parity_prompts.main()
    assert written.read_bytes() == packaged.read_bytes()
    rows = [json.loads(line) for line in packaged.read_text(encoding="utf-8").splitlines()]
    assert len({row["prompt"] for row in rows}) == 28
    assert resources.files("fairgate").joinpath("data/parity/prompts.jsonl").is_file()
