"""The run and the process that speaks to Ray, without Ray: what is wrong, and who waits for whom."""

import importlib.util
import multiprocessing
import os
import socket
import sys
import threading
import types
from dataclasses import replace
from multiprocessing.connection import Connection

import pytest
from fakes.workers import answer_to, questions, scripted_side, spread

from fairgate.domain.errors import UsageError, WorkerError
from fairgate.features.ray.executors import RayActors


def installed(monkeypatch, *, is_there):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: (object() if is_there else None) if name == "ray" else find(name),
    )


def test_without_ray_the_message_says_what_to_install(monkeypatch):
    installed(monkeypatch, is_there=False)
    with pytest.raises(UsageError, match=r"pip install 'fairgate\[ray\]'"):
        RayActors(2, 1, scripted_side, "local")


ADDRESSES = [
    "",
    "head",
    "ray://head:10001",
    "head:0",
    "head:65536",
    "head:x",
    ":6379",
    "auto",
    "a/b:1",
]


@pytest.mark.parametrize("address", [*ADDRESSES, "head:\u0663", "h:1\x1b[2J", "x" * 10_000])
def test_what_is_no_address_is_refused(monkeypatch, address):
    installed(monkeypatch, is_there=True)
    with pytest.raises(UsageError, match="expected HOST:PORT of the cluster's head") as error:
        RayActors(2, 1, scripted_side, address)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 400


def test_an_address_where_nothing_listens_is_refused_at_once(monkeypatch):
    installed(monkeypatch, is_there=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    executor = RayActors(2, 1, scripted_side, f"127.0.0.1:{port}")
    with pytest.raises(WorkerError, match=r"nothing can be reached there \(Connection refused\)"):
        executor.start()
    executor.close()


@pytest.mark.parametrize("host", ["nowhere.invalid", "[::1]", "a..b", "\u00fc" * 70])
def test_a_name_that_is_none_is_refused(monkeypatch, host):
    installed(monkeypatch, is_there=True)
    executor = RayActors(2, 1, scripted_side, f"{host}:1")
    with pytest.raises(WorkerError, match="nothing can be reached there"):
        executor.start()


class DriverThread(threading.Thread):
    """Stands for the process that speaks to Ray: a thread with an end of the pipe of its own."""

    def __init__(self, target, args):
        pipe, cluster = args
        self.end = socket.socket(fileno=os.dup(pipe.fileno()))
        own = Connection(os.dup(pipe.fileno()))
        super().__init__(target=target, args=(own, cluster), daemon=True)

    def run(self):
        """Close the pipe at the end, as a process does."""
        with self.end:
            super().run()
            self.end.shutdown(socket.SHUT_RDWR)

    exitcode = property(lambda self: None if self.is_alive() else 0)

    def kill(self):
        """Do nothing: it ends with the test."""

    close = kill


class FakeMethod:
    def __init__(self, call):
        self.remote = call

    def options(self, **_):
        return self


class FakeRay(types.ModuleType):
    """Ray, as far as the driver uses it: its actors answer when they are listened to."""

    class RayError(Exception):
        pass

    def __init__(self, joining=None):
        super().__init__("ray")
        self.exceptions = types.SimpleNamespace(RayError=self.RayError)
        self.joining = joining
        self.shut_down = threading.Event()

    def init(self, **_):
        if self.joining is not None:
            raise self.joining

    def shutdown(self):
        self.shut_down.set()

    def nodes(self):
        return [{"Alive": True, "Resources": {"CPU": 8.0}}]

    def remote(self, kind):
        def make(*arguments):
            actor = kind(*arguments)
            return types.SimpleNamespace(answer=FakeMethod(actor.answer))

        return FakeMethod(make)

    def wait(self, replies, **_):
        return replies[:1], []

    def get(self, text):
        return text

    def kill(self, actor):
        pass


@pytest.fixture
def with_fake_ray(monkeypatch):
    """Let actors run in this process."""

    def install(ray):
        installed(monkeypatch, is_there=True)
        monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        monkeypatch.setitem(sys.modules, "ray", ray)
        context = types.SimpleNamespace(Pipe=multiprocessing.Pipe, Process=DriverThread)
        monkeypatch.setattr(multiprocessing, "get_context", lambda _: context)
        return ray

    return install


def test_actors_answer_and_the_driver_ends_with_its_run(with_fake_ray):
    ray = with_fake_ray(FakeRay())
    generator, team = spread(RayActors(2, 0, scripted_side, "local"))
    requests = questions([2, 3, 1])
    assert dict(generator.generate(requests)) == dict(enumerate(map(answer_to, requests)))
    assert {machine["threads"] for machine in team.machines} == {"4"}
    team.close()
    assert ray.shut_down.wait(20)


LARGE = 4 * 2**20
"""Characters: more than a pipe holds while nobody reads."""


class Echo:
    """A worker whose reply is as long as its task."""

    def answer(self, task):
        yield task


def test_a_task_reaches_the_driver_while_it_sends_what_nobody_reads_yet(with_fake_ray):
    """One pipe has both directions: when each end waited for the other to read, none ever did."""
    ray = with_fake_ray(FakeRay())
    executor = RayActors(2, 1, lambda threads: Echo(), "local")
    first, second = executor.start(), executor.start()
    executor.send(first, "a" * LARGE)
    pipe = executor._driver[1]
    assert pipe.poll(20), "the driver has begun to send, and cannot end before somebody reads"
    sending = threading.Thread(target=executor.send, args=(second, "b" * LARGE), daemon=True)
    sending.start()
    sending.join(20)
    assert not sending.is_alive()
    assert {found.worker: found.text[0] for found in (executor.receive(), executor.receive())} == {
        first: "a",
        second: "b",
    }
    executor.close()
    assert ray.shut_down.wait(20)


def test_a_run_that_leaves_in_the_middle_of_an_answer_ends_the_driver(with_fake_ray):
    ray = with_fake_ray(FakeRay())
    executor = RayActors(1, 1, lambda threads: Echo(), "local")
    executor.send(executor.start(), "a" * LARGE)
    assert executor._driver[1].poll(20)
    executor.close()
    assert ray.shut_down.wait(20)


FAILURES = [
    (ConnectionError("could not reach the GCS"), r"ConnectionError: could not reach the GCS"),
    (PermissionError(13, "Permission denied", "session"), r"PermissionError: \[Errno 13\] Perm"),
    (OSError(28, "No space left on device"), r"OSError: \[Errno 28\] No space left on device"),
    (EOFError("the head hung up"), r"EOFError: the head hung up"),
    (ValueError("one\ntwo"), r"ValueError: one\)"),
]


@pytest.mark.parametrize(("error", "reason"), FAILURES, ids=[str(one) for one, _ in FAILURES])
def test_why_a_cluster_cannot_be_joined_reaches_the_run(with_fake_ray, error, reason):
    ray = with_fake_ray(FakeRay(error))
    executor = RayActors(1, 1, scripted_side, "local")
    with pytest.raises(WorkerError, match=rf"cluster at local cannot be used \({reason}") as found:
        executor.start()
    assert "connection to the cluster is lost" not in str(found.value)
    executor.close()
    assert ray.shut_down.wait(20)


class Lost(FakeRay):
    """A cluster whose one machine is lost: what is started there never answers."""

    def init(self, **_):
        print("(raylet) what Ray prints about a machine")

    def nodes(self):
        return [{"Alive": False, "Resources": {}}]

    def wait(self, *_, **__):
        return [], []


def test_a_lost_machine_ends_the_run_and_what_ray_prints_is_no_output(with_fake_ray, capsys):
    ray = with_fake_ray(Lost())
    executor = RayActors(1, 1, scripted_side, "local")
    executor._cluster = replace(executor._cluster, seconds_to_begin=0.2)
    generator, team = spread(executor)
    with pytest.raises(WorkerError, match="the cluster has 0 machines: lower --workers"):
        list(generator.generate(questions([1])))
    team.close()
    assert ray.shut_down.wait(20)
    said = capsys.readouterr()
    assert not said.out
    assert "what Ray prints" in said.err


def test_a_library_of_ray_that_is_missing_is_named(with_fake_ray, monkeypatch, tmp_path):
    with_fake_ray(FakeRay())
    monkeypatch.delitem(sys.modules, "ray")
    (tmp_path / "ray.py").write_text("raise OSError('libgcc_s.so.1: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    executor = RayActors(1, 1, scripted_side, "local")
    with pytest.raises(WorkerError, match=r"OSError: libgcc_s\.so\.1: cannot open"):
        executor.start()
    executor.close()
