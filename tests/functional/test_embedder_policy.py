"""An encoder of the user's, from the policy to what is retrieved."""

import json
import shutil

import pytest
from fakes.encoders import PROMPTS, write_encoder

from fairgate.cli import main
from fairgate.domain.errors import ExitCode

POLICY = """\
version: 1
name: p
system:
  retriever:
    corpus: corpus.jsonl
    embedder: {embedder}
    top_k: 1
  generator: {{model: demo-slm}}
suites:
  - {{id: s, task: sentiment, sources: demo-reviews, limit: 2, perturbations: [gender]}}
gates:
  - {{metric: asr/generation, max: 0.9}}
constant_answers: allow # two sources
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    rows = [{"id": word, "text": word} for word in ("a b c", "soup query", "passage d")]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))

    def ran(embedder):
        (tmp_path / "p.yaml").write_text(POLICY.format(embedder=embedder))
        code = main(["run", "p.yaml", "--out", "out"])
        run_file = tmp_path / "out" / "run.json"
        record = json.loads(run_file.read_text()) if run_file.is_file() else None
        return code, record, capsys.readouterr().err

    return ran


def test_a_model_that_leaves_its_pooling_open_ends_with_exit_code_4_and_a_revision_with_2(
    run, tmp_path
):
    write_encoder(tmp_path / "mine", modules=None, pooling=None)
    code, _, said = run("mine")
    assert code == ExitCode.EXECUTION
    assert "`pooling` of the embedder" in said
    code, _, said = run("{model: mine, revision: 0a1b2c}")
    assert code == ExitCode.USAGE, "it would pin nothing of a folder"
    assert "Remove `revision`" in said


@pytest.mark.whole
def test_the_policy_says_what_the_model_leaves_open(run, tmp_path):
    write_encoder(tmp_path / "mine", modules=None, pooling=None)
    seen = set()
    for choice in ("pooling: mean", "pooling: cls", 'pooling: mean, query_prompt: "query: ", document_prompt: ""', "pooling: mean, dimensions: 2"):  # fmt: skip
        code, record, said = run(f"{{model: mine, {choice}}}")
        assert code in (ExitCode.PASS, ExitCode.GATE_FAILED), said
        seen.add(record["provenance"]["under_test"]["embedder"])
    assert len(seen) == 4
    assert all(name.startswith("mine ") for name in seen)


def test_a_run_says_which_prompts_and_which_graph_it_used_and_that_nothing_proves_it(run, tmp_path):
    folder = write_encoder(tmp_path / "mine", files={PROMPTS: None})
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model_q4.onnx")
    shutil.copy(folder / "onnx" / "model_q4.onnx", folder / "onnx" / "model_q8.onnx")
    code, _, said = run('{model: mine, query_prompt: "", document_prompt: ""}')
    assert code == ExitCode.EXECUTION
    assert "`file: onnx/model_q4.onnx`" in said
    code, _, said = run("{model: mine, file: onnx/model_q4.onnx}")
    assert code == ExitCode.EXECUTION
    assert '`""` where the card has none' in said
    chosen = 'file: onnx/model_q4.onnx, query_prompt: "query: ", document_prompt: ""'
    code, record, said = run(f"{{model: mine, {chosen}}}")
    assert code in (ExitCode.PASS, ExitCode.GATE_FAILED), said
    under_test = record["provenance"]["under_test"]
    assert under_test["embedder prompts"] == "queries 'query: ', documents ''"
    assert "no record of a comparison with its original" in said
    code, record, said = run(
        '{model: mine, file: onnx/model_q4.onnx, query_prompt: "", document_prompt: ""}'
    )
    assert code in (ExitCode.PASS, ExitCode.GATE_FAILED), said
    assert "embedder prompts" not in record["provenance"]["under_test"]
    assert run("{model: mine, file: ../other.onnx}")[0] == ExitCode.USAGE
