"""Too few open files are named as what is lacking, not git, a folder or a library."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys

import pytest

from fairgate.cli import cli, main
from fairgate.domain.errors import BaselineError, StoreError
from fairgate.io.git import Repository

LIMITS = (6, 8, 10, 12, 16, 20, 24, 32, 48, 63, 64)


@pytest.mark.walk(2)
@pytest.mark.parametrize("limit", LIMITS)
def test_every_low_limit_is_named_or_does_not_matter(limit, tmp_path):
    policy = (
        "version: 1\nname: few\nsystem:\n"
        "  retriever: {corpus: demo, embedder: minilm, top_k: 4}\n"
        "  generator: {model: demo-slm, decoding: greedy}\n"
        "suites: [{id: s, task: sentiment, sources: demo-reviews, perturbations: [gender]}]\n"
        "gates: [{metric: asr/generation, max: 0.5}]\n"
    )
    (tmp_path / "policy.yaml").write_text(policy)
    run = ["run", "policy.yaml", "--out", "o", "--quiet", "--limit", "2", "--cache", "cache"]
    for arguments in (["check", "policy.yaml"], run):
        done = subprocess.run(
            [sys.executable, "-m", "fairgate", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
        )  # fmt: skip
        if limit < 64:
            assert done.returncode == 4
            assert f"only {limit} files may be open at once" in done.stderr
        else:
            assert done.returncode in (0, 5), done.stderr
        assert "git" not in done.stderr


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("wrapped", [None, StoreError, BaselineError, ImportError])
def test_whatever_it_became_on_its_way(number, wrapped, monkeypatch, capsys):
    def fail(**_):
        error = OSError(number, "x", "some file")
        if wrapped is None:
            raise error
        raise wrapped("cannot be had, ask git") from error

    monkeypatch.setattr(cli, "main", fail)
    assert main([]) == 4
    assert capsys.readouterr().err.startswith("fairgate: error: too many files and connections")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_git_is_not_blamed(number, monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise OSError(number, "x")

    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(OSError, match="x"):
        Repository(tmp_path).ask("status")
