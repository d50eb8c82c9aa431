"""What the comparison with other engines prints, and that all of them are given one model."""

import importlib
import io
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks.engine_table import Measured, ratio, table
from benchmarks.engine_worker import request_of

import fairgate
from fairgate.domain.executions import GenerationRequest, Stop
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer

DEMO = Path(fairgate.__file__).parent / "data" / "models" / "demo-slm"


def measured(seconds, answers=("a", "b")):
    found = Measured(start=1.25)
    for took in seconds:
        found.add({"wall": took, "processor": 2 * took, "peak_mib": 90.4, "answers": [*answers]})
    return found


@pytest.fixture
def bench_engines(monkeypatch, request):
    monkeypatch.syspath_prepend(str(request.config.rootpath / "tools" / "benchmarks"))
    return importlib.import_module("bench_engines")


def test_ratios_are_those_of_rounds_so_that_a_slow_minute_of_the_machine_counts_on_both_sides():
    assert ratio([2.0, 20.0, 4.0], [1.0, 10.0, 1.0]) == "2.00 (2.00 to 4.00)"


def test_a_row_tells_seconds_ratios_answers_start_and_memory():
    engines = {"fairgate": measured([1.0, 2.0, 4.0]), "peer": measured([3.0, 5.0, 8.0], ("a", "x"))}
    assert table(engines).splitlines()[3] == (
        "| peer | 5.00 | 2.50 (2.00 to 3.00) | 2.50 (2.00 to 3.00) | 1 of 2 | 1.2 | 90 |"
    )


def test_an_engine_that_was_not_measured_has_a_row_with_the_reason():
    engines = {"fairgate": measured([1.0]), "peer": Measured(failure="there is no .venv-genai")}
    row = table(engines).splitlines()[3]
    assert row.startswith("| peer | not measured: there is no .venv-genai |")


def test_an_engine_that_ends_is_not_measured_and_its_last_words_say_why(bench_engines, tmp_path):
    log = tmp_path / "log"
    log.write_text("Traceback\nModuleNotFoundError: no module | 'xllamacpp'\n\n")
    ended = SimpleNamespace(stdout=io.StringIO(""))
    with pytest.raises(bench_engines.NotMeasured, match=r"no module / 'xllamacpp'$"):
        bench_engines.Worker(ended, log).reply()


def test_the_limit_counts_tokens_once_and_vocabulary_for_new_ones(bench_engines, tmp_path):
    (tmp_path / "hf").mkdir()
    config = {"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 3, "vocab_size": 10}
    config |= {"num_attention_heads": 2, "num_key_value_heads": 1}
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    layer = 2 * 4 * 4 + 2 * 4 * 2 + 3 * 4 * 8
    tokens = 2 * 7 + 2 * (5 - 1)  # the last token that is written is not read
    expected = 2 * (3 * layer * tokens + 2 * 5 * 4 * 10)
    assert bench_engines.needed(tmp_path, 2, 14, 5) == expected


def test_what_prompts_begin_with_in_common_counts_once(bench_engines):
    assert bench_engines.beginnings([[1, 2, 3], [1, 2, 4], [2, 2], [1, 2, 3]]) == 6


def test_rows_are_padded_with_a_control_token_that_no_prompt_holds(bench_engines, tmp_path):
    (tmp_path / "hf").mkdir()
    shutil.copy(DEMO / "tokenizer.json", tmp_path / "hf")
    assert bench_engines.padding_of(tmp_path, [[0, 5], [0, 9]]) == 2
    assert bench_engines.padding_of(tmp_path, [[0, 2, 5]]) == 1


def test_an_engine_is_asked_what_the_gate_asks_and_others_the_tokens_of_it(bench_engines):
    stop = Stop(phrases=("bad", "good"), shown="It works.")
    request = GenerationRequest(prompt="It works. Is it?", labels=("bad", "good"), stop=stop)
    tokenizer = PromptTokenizer(ModelFolder.find(DEMO))
    work = json.loads(json.dumps(bench_engines.work_of([request], tokenizer, 2)))
    assert [request_of(one) for one in work["requests"]] == [request]
    assert (work["ids"], work["new_tokens"]) == (tokenizer.encode([request.prompt]), 2)


@pytest.mark.parametrize(
    ("asked", "absent"),
    [((), "-given-"), (("--model", "."), "-given-"), (("--model", __file__), "-f32-")],
)
def test_no_engine_is_asked_for_a_file_that_such_a_model_does_not_have(
    bench_engines, monkeypatch, asked, absent
):
    monkeypatch.setattr("sys.argv", ["bench", *asked])
    names = bench_engines.arguments().engines
    assert names[0] == "fairgate"
    assert not any(absent in name for name in names)


def test_a_gate_that_asks_nothing_ends_a_comparison_with_what_it_says(bench_engines, tmp_path):
    with pytest.raises(SystemExit, match=r"nowhere\.yaml"):
        bench_engines.prompts_of(tmp_path / "nowhere.yaml")
