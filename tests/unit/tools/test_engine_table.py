"""What the comparison with other engines prints, and that all of them are given one model."""

import importlib
import io
import json
from types import SimpleNamespace

import pytest
from benchmarks.engine_table import Measured, ratio, table


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


def test_the_limit_counts_tokens_once_and_vocabulary_for_new_ones(
    bench_engines, tmp_path, monkeypatch
):
    (tmp_path / "hf").mkdir()
    config = {"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 3, "vocab_size": 10}
    config |= {"num_attention_heads": 2, "num_key_value_heads": 1}
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    found = SimpleNamespace(encode_batch=lambda texts: [SimpleNamespace(ids=[0] * 7)] * len(texts))
    monkeypatch.setattr(bench_engines, "tokenizer_of", lambda _: found)
    layer = 2 * 4 * 4 + 2 * 4 * 2 + 3 * 4 * 8
    tokens = 2 * 7 + 2 * (5 - 1)  # the last token that is written is not read
    expected = 2 * (3 * layer * tokens + 2 * 5 * 4 * 10)
    assert bench_engines.needed(tmp_path, ["p", "q"], 5) == expected
