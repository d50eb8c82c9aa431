"""A run over a Ray cluster: the bytes of one process, and clear words where there is no cluster."""

import json
import os
import select
import signal
import socket
from collections import Counter
from pathlib import Path

import pytest
from fakes.shards import whole
from fakes.workers import CannotStart, answer_to, questions, spread

from fairgate.cli import main
from fairgate.domain.errors import WorkerError
from fairgate.features import ray as workers

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]
TESTS = Path(__file__).parents[1]
POLICY = {
    "version": 1,
    "name": "w",
    "system": {"generator": {"model": "demo-slm", "decoding": {"max_new_tokens": 8}}},
    "suites": [
        {
            "id": "s",
            "task": "sentiment",
            "sources": "sources.jsonl",
            "perturbations": ["gender", "age"],
        }
    ],
    "gates": [{"metric": "asr/generation", "max": 0.9}],
}


@pytest.fixture
def policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"s{n}", "text": f"Text number {n} is fine."} for n in range(8)]
    Path("sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("p.yaml").write_text(json.dumps(POLICY))


def actors():
    """Return the processes of this machine's Ray actors."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            title = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith((b"ray::Worker", b"ray::ScriptedWorker")):
            found.append(int(folder.name))
    return found


def call(*arguments):
    return main(list(arguments))


def test_a_run_whose_actor_is_killed_gives_the_bytes_of_one_process(
    cluster, policy, monkeypatch, capsys
):
    expected = whole(call, "p.yaml", "--threads", "1", "--cache", "one")
    asked, received, killed = [], [], []
    ask = workers.RayTeam.ask

    def asking(self, *of):
        asked.append(of)
        for found in ask(self, *of):
            received.append(found)
            if len(received) == 5:
                killed.append(actors()[0])
                os.kill(killed[0], signal.SIGKILL)
            yield found

    monkeypatch.setattr(workers.RayTeam, "ask", asking)
    options = ("--workers", "2", "--ray-address", cluster)
    assert whole(call, "p.yaml", *options, "--cache", "of-ray") == expected
    assert killed
    assert "a worker was lost (ActorDiedError" in capsys.readouterr().err
    rows = expected["executions.jsonl"].decode().splitlines()
    assert len(received) <= len(rows), "no answer is taken twice"
    asked.clear()
    assert whole(call, "p.yaml", *options, "--cache", "of-ray") == expected
    assert not asked, "what is stored joins no cluster"


def test_an_actor_that_kills_itself_costs_what_it_had_not_answered(cluster, tmp_path):
    log = tmp_path / "log"
    script = {"kill": "s2", "times": 1, "mark": str(tmp_path), "log": str(log)}
    generator, team = spread(2, 0, cluster, **script)
    requests = questions([3, 3, 3, 3])
    assert dict(generator.generate(requests)) == dict(enumerate(map(answer_to, requests)))
    asked = Counter(log.read_text().split())
    assert set(asked) == {request.prompt for request in requests}
    # Each actor is given two sources; what was on its way when one died is asked again.
    assert asked.total() <= len(requests) + 6
    assert {machine["threads"] for machine in team.machines} == {"1"}
    assert len(team.notices) == 1
    running = [os.pidfd_open(pid) for pid in actors()]
    team.close()
    for process in running:
        assert select.select([process], [], [], 60)[0], "actors end with their run"
        os.close(process)
    assert not actors()


def test_actors_that_cannot_start_or_have_no_place_end_the_run(cluster):
    for most, threads, says, more in (
        (1, 1, "3 workers in a row ended before their first answer", {"worker": CannotStart}),
        (3, 0, "has 2 CPUs on 1 machines, too few for 3 workers", {}),
        (1, 9, r"begun after 1 s; each waits for 9 free CPUs .* 1 machines", {"patience": 1.0}),
    ):
        generator, team = spread(most, threads, cluster, **more)
        with pytest.raises(WorkerError, match=says):
            list(generator.generate(questions([1])))
        team.close()


def test_a_cluster_that_is_gone_is_an_error_and_no_verdict(cluster):
    generator, team = spread(1, 1, cluster, stop="s0")
    coming = generator.generate(questions([1, 1]))
    next(coming)
    team._driver[0].kill()
    with pytest.raises(WorkerError, match="the connection to the cluster is lost"):
        next(coming)
    team.close()


def test_a_cluster_of_the_run_s_own_leaves_nothing_in_the_user_s_home(tmp_path, monkeypatch):
    """Ray 2.60 makes a token for a new cluster, and would write it to `~/.ray/auth_token`."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (TESTS, TESTS.parent))))
    generator, team = spread(1, 1, "local")
    assert len(list(generator.generate(questions([1, 1])))) == 2
    team.close()
    assert list(tmp_path.iterdir()) == []
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_what_is_no_cluster_is_left_after_a_while(monkeypatch):
    monkeypatch.setattr(workers, "_SECONDS_TO_JOIN", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        generator, team = spread(1, 1, f"127.0.0.1:{port}")
        with pytest.raises(WorkerError, match="did not answer as a Ray cluster within 3 s"):
            list(generator.generate(questions([1])))
        team.close()


def test_an_address_where_nothing_listens_is_exit_code_4_at_once(policy, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    options = ("--workers", "2", "--quiet", "--ray-address")
    assert call("run", "p.yaml", *options, f"127.0.0.1:{port}") == 4
    said = " ".join(capsys.readouterr().err.split())
    assert f"'127.0.0.1:{port}': nothing can be reached there (Connection refused)" in said
    assert "ray start --head" in said
