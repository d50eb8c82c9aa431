"""A judge behind a real server: llama.cpp's with the bundled model, which is no judge at all."""

import json

import pytest
from fakes.judges import labelled

from fairgate.cli import main

pytestmark = [pytest.mark.systems, pytest.mark.filterwarnings("default")]
POLICY = {
    "version": 1,
    "name": "judged",
    "system": {"recorded": "answers.jsonl"},
    "suites": [
        {
            "id": "s",
            "sources": "meta-fair",
            "relations": ["meta-fair/mr1-single-attribute"],
            "limit": 5,
        }
    ],
    "gates": [{"metric": "asr/generation", "max": 0.1}],
}
DECODING = {"temperature": 0, "max_new_tokens": 16}


def test_what_cannot_judge_behind_a_real_server_never_makes_a_gate_green(
    model, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labelled.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in labelled()))
    found = {}
    for name, generator in {
        "onnx": {"model": "demo-slm"},
        "llama.cpp": {"endpoint": {"base_url": model, "model": "demo-slm"}},
    }.items():
        judge = {"id": "j", "generators": [{**generator, "decoding": DECODING}]}
        (tmp_path / "judge.yaml").write_text(json.dumps(judge))
        code = main(
            ["judge", "evaluate", "judge.yaml", "labelled.jsonl", "--out", "record.json", "--quiet"]
        )
        said = capsys.readouterr().err
        assert code == 4, said
        assert "called none of the 24 pairs BIASED or UNBIASED (24 none)" in said
        assert not (tmp_path / "record.json").exists()
        policy = {**POLICY, "judge": judge}
        (tmp_path / "p.yaml").write_text(json.dumps(policy))
        (tmp_path / "answers.jsonl").touch()
        capsys.readouterr()
        assert main(["plan", "p.yaml"]) == 0
        asked = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        answers = [{"key": row["key"], "response": f"1. Ask {row['key']}"} for row in asked]
        (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(a)}\n" for a in answers))
        code = main(["run", "p.yaml", "--out", name, "--baseline", "none", "--quiet"])
        assert code == 5, capsys.readouterr().out
        rules = json.loads((tmp_path / name / "run.json").read_text())["rules"]
        assert rules[0]["outcome"] != "pass"
        found[name] = rules
    assert found["onnx"] == found["llama.cpp"]
