"""The command line puts back what it changes in its process, and refuses impossible options."""

import gc

import pytest

from fairgate.cli import main


def test_a_caller_keeps_its_garbage_collection(capsys):
    before = gc.get_threshold()
    for command, code in (("--version", 0), ("no-such-command", 2)):
        assert main([command]) == code
        assert gc.get_threshold() == before
    capsys.readouterr()


@pytest.mark.parametrize("share", ["nan", "NaN", "-nan", "0", "1.1", "inf"])
def test_a_share_is_a_number(share, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["corpus", "prepare", "demo", "--output", "c.jsonl", "--sample", share]) == 2
    assert "is not in the range 0<x<=1" in capsys.readouterr().err


@pytest.mark.parametrize("date", ["garbage", "2024-13-01", "01.02.2024", ""])
def test_the_date_of_a_baseline_is_one(date, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["baseline", "accept", ".", "--reason", "r", "--date", date]) == 2
    assert "does not match the format '%Y-%m-%d'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["MyPolicy", "2024", "true", "1e5", "a b", "-a", "no", "a" * 61, ""]
)
def test_a_name_that_its_own_policy_would_refuse_is_refused_by_init(
    name, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--name", name]) == 2
    assert "lower-case letters" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_name_that_init_takes_is_one_of_a_policy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--name", "a-b_9"]) == 0
    assert main(["check", *map(str, tmp_path.glob("policies/*.yaml"))]) == 0, capsys.readouterr()
