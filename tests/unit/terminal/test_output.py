"""What the command line says on stderr cannot act, whoever wrote a part of it."""

import errno
import re
import sys
from unittest import mock

import click
import pytest
from golden.hostile_texts import HOSTILE, HUGE

from fairgate.cli import cli, explain, main
from fairgate.domain.errors import DataError, ExitCode, ModelError, PolicyError, Problem
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS
from fairgate.terminal.output import Heartbeat, report_run

COMMAND = re.compile(r"^\s*::|::|##\[")


def check(text):
    for line in set(text.split("\n")):
        assert not COMMAND.search(line), line[:200]
        assert line.isprintable(), line[:200]


class RustPanicError(BaseException):
    """What a panic of a Rust extension is: no Exception."""


ERRORS = (
    DataError,
    ModelError,
    lambda text: PolicyError([Problem(text, 1, 2, text), Problem("p.yaml", 3, 4, text)]),
    click.ClickException,
    click.UsageError,
    RuntimeError,
    RustPanicError,
)


@pytest.mark.walk(1)
@pytest.mark.parametrize("make", ERRORS)
def test_no_error_message_is_a_command(make, capsys):
    for text in (*HOSTILE, *HUGE):
        explain(make(f"first line\n{text}"))
    check(capsys.readouterr().err)


def test_messages_keep_their_own_lines(capsys):
    explain(PolicyError([Problem("p.yaml", 1, 1, "one"), Problem("p.yaml", 2, 1, "  two")]))
    assert capsys.readouterr().err == "fairgate: error: p.yaml:1:1: one\np.yaml:2:1:   two\n"


def test_no_progress_line_is_a_command(capsys, monkeypatch):
    monkeypatch.setattr("fairgate.terminal.output._HEARTBEAT_SECONDS", -1.0)
    beat = Heartbeat()
    for text in HOSTILE:
        beat.start(f"x\n{text}", 2, 0)
        beat.advance(1)
        beat.finish()
    check(capsys.readouterr().err)


def test_no_notice_is_a_command(capsys, monkeypatch):
    for name in ("gate.run_folder.write_run", "reports.present.local_view"):
        monkeypatch.setattr(f"fairgate.{name}", lambda *_, **__: None)
    monkeypatch.setattr("fairgate.reports.console.render_console", lambda *_, **__: "")
    done = mock.Mock(notices=[f"x\n{text}" for text in HOSTILE])
    options = {"report_only": False, "formats": ""}
    report_run(done, mock.Mock(), (), options)
    err = capsys.readouterr().err
    assert len(err.split("\n")) == len(HOSTILE) + 1
    check(err)


def test_a_tokenizer_file_puts_no_command_into_the_message(tmp_path, monkeypatch):
    class Tokenizer:
        @staticmethod
        def from_file(_):  # noqa: ANN205
            raise ValueError("unknown type `a\n::error::owned\n##[group]x`")

    monkeypatch.setattr("tokenizers.Tokenizer", Tokenizer)
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ModelError) as refused:
        OnnxEncoder(tmp_path, choice=NO_PROMPTS).embed(["x"])
    check(str(refused.value))
    assert "\n" not in str(refused.value)


@pytest.fixture
def raising(monkeypatch):
    """Return a function after which every command raises an error."""

    def fail(error):
        monkeypatch.setattr(cli, "main", mock.Mock(side_effect=error))

    return fail


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RustPanicError("index out of range"), ExitCode.EXECUTION),
        (MemoryError(), ExitCode.EXECUTION),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (RecursionError(), ExitCode.EXECUTION),
        (RuntimeError("x"), ExitCode.EXECUTION),
        (DataError("x"), ExitCode.EXECUTION),
    ],
)
def test_whatever_is_raised_has_an_exit_code_with_and_without_its_traceback(
    error, code, raising, capsys
):
    raising(error)
    assert main([]) == code
    assert "Traceback" not in capsys.readouterr().err
    assert main(["--debug"]) == code
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(0), "stopped before the end (status 0)"),
        (SystemExit(1), "stopped before the end (status 1)"),
        (SystemExit("::error::x"), "status : :error: :x"),
        (MemoryError("std::bad_alloc"), "not enough memory, or no further thread (std: :bad_alloc)"),
        (OSError(12, "Cannot allocate memory"), "there is not enough memory"),
        (ImportError("x.so: failed to map segment"), "a library cannot be loaded (x.so: failed"),
        (ImportError("libgomp.so.1: cannot allocate memory in static TLS block"), "a library cannot be loaded (libgomp.so.1: cannot allocate memory in static"),
        (OSError(errno.ENOSPC, "No space left on device"), "the output cannot be written (No"),
        (PermissionError(errno.EACCES, "Permission denied", "a\x1b.txt"), "check the path"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "the output cannot be written (Broken"),
    ],
)  # fmt: skip
def test_what_the_machine_refuses_is_no_bug_and_no_verdict(error, said, raising, capsys):
    raising(error)
    assert main([]) == ExitCode.EXECUTION
    told = capsys.readouterr().err
    assert said in told
    assert "bug" not in told


@pytest.mark.parametrize(
    "text", ["unknown sign 'alloc failed'", "expected 'bad_alloc'", "no 'cannot allocate memory'"]
)
def test_a_bug_that_quotes_words_for_too_little_memory_is_a_bug(text, raising, capsys):
    raising(ValueError(text))
    assert main([]) == ExitCode.EXECUTION
    assert f"internal error: ValueError: {text}" in capsys.readouterr().err


def test_the_interpreter_may_still_leave(raising):
    raising(GeneratorExit())
    with pytest.raises(GeneratorExit):
        main([])


def test_without_onnx_runtime_the_extra_to_install_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "p.yaml").write_text(
        "version: 1\nname: p\nsystem:\n  generator: {model: demo-slm}\n"
        "suites:\n  - {id: s, task: sentiment, sources: demo-reviews, limit: 1,"
        " perturbations: [gender]}\n"
        "gates:\n  - {parity: answers, max: 0.15}\n"
    )
    assert main(["run", "p.yaml", "--out", "out"]) == ExitCode.EXECUTION
    said = capsys.readouterr().err
    assert "fairgate[cpu]" in said
    assert "fairgate[cuda]" in said
    assert "bug" not in said
