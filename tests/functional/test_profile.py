"""`run --profile` tells on stderr where the time went, and no file holds it."""


def test_the_command_prints_it_on_stderr_and_writes_it_nowhere(workspace):
    workspace.answers("positive")
    plain = ("run", "policy.yaml", "--baseline", "none", "--quiet")
    code = workspace.run(*plain, "--out", "out")
    shown = workspace.out
    before = {path.name: path.read_bytes() for path in (workspace.root / "out").iterdir()}
    assert workspace.run(*plain, "--out", "out", "--profile") == code
    assert workspace.out == shown
    for part in ("fairgate: profile: ", "read policy and plan", "ask, judge, decide", "in store"):
        assert part in workspace.err
    assert {path.name: path.read_bytes() for path in (workspace.root / "out").iterdir()} == before


def test_a_part_of_a_run_is_not_timed(workspace):
    workspace.answers("positive")
    assert workspace.run("run", "policy.yaml", "--shard", "1/2", "--profile") == 2
    assert "leave out --profile or --shard" in workspace.err
