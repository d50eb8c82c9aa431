"""Actors without a model and without Ray: their answers follow from the question."""

import importlib.util
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import types
from multiprocessing.connection import Connection
from pathlib import Path

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Execution, GenerationRequest
from fairgate.features.ray import Cluster, RayTeam, Worker

FINGERPRINT = "scripted/1"


def answer_to(request):
    return Execution(
        response=f"{request.prompt} {request.seed} {request.stop}", margin=len(request.prompt) / 3
    )


def scores_of(request):
    return [len(option) / 7 - len(request.prompt) for option in request.options]


class Scripted:
    """A generator that does to some sources what its script says, and logs what it is asked.

    A script is JSON: `log` is a file; `kill`, `crash`, `fail` and `stop` name sources;
    `notices` are texts by source, said with each of its answers;
    `times` is how often a source is killed, by files that are left behind.
    """

    def __init__(self, name):
        self.script = json.loads(name)
        self.fingerprint = self.script.get("fingerprint", FINGERPRINT)
        self.notices = []

    def generate(self, requests):
        for position, request in reversed(list(enumerate(requests))):
            self._asked(request)
            yield position, answer_to(request)
            self.notices += self.script.get("notices", {}).get(request.source, ())

    def score_options(self, requests):
        for request in requests:
            self._asked(request)
        return [scores_of(request) for request in requests]

    def _asked(self, request):
        source, script = request.source, self.script
        if script.get("stop") == source:
            signal.pause()
        if script.get("kill") == source and self._once_more(source):
            os.kill(os.getpid(), signal.SIGKILL)
        if script.get("crash") == source and self._once_more(source):
            raise ValueError(f"\x1b[2J::error::what {request.prompt} says")
        if script.get("fail") == source:
            raise ModelError("the model is broken")
        if "log" in script:
            with Path(script["log"]).open("a") as log:
                log.write(request.prompt + "\n")

    def _once_more(self, source):
        """Return whether a source is to fail again; `mark` is a folder of empty files."""
        left = Path(self.script["mark"])
        for number in range(self.script["times"]):
            try:
                (left / f"{source}-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            return True
        return False


class ScriptedWorker(Worker):
    def opened(self, name):
        return Scripted(name)

    def machine(self):
        return {"node": "here", "fairgate": "1", "threads": str(self.threads)}


class CannotStart(ScriptedWorker):
    def __init__(self, threads):
        raise ValueError(f"no {threads}")


class OfABrokenMachine(ScriptedWorker):
    def machine(self):
        raise ValueError("what is no number of a processor")


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


class Stream:
    """Replies of an actor, until it is lost."""

    def __init__(self, replies):
        self.replies = replies
        self.is_lost = False

    def __next__(self):
        if self.is_lost:
            raise FakeRay.RayError("was lost")
        return next(self.replies)


class FakeRay(types.ModuleType):
    """Ray, as far as it is used: its actors answer when they are listened to.

    `choose` picks of the streams that are under way whose next reply comes, and whether its actor
    is lost instead.
    """

    class RayError(Exception):
        pass

    def __init__(self, joining=None, choose=lambda busy: (busy[-1], False)):
        super().__init__("ray")
        self.exceptions = types.SimpleNamespace(RayError=self.RayError)
        self.joining = joining
        self.choose = choose
        self.started = self.times_shut_down = 0
        self.sent = []
        self.shut_down = threading.Event()

    def init(self, **_):
        if self.joining is not None:
            raise self.joining

    def shutdown(self):
        self.times_shut_down += 1
        self.shut_down.set()

    def nodes(self):
        return [{"Alive": True, "Resources": {"CPU": 8.0}}]

    def remote(self, kind):
        def make(*arguments):
            self.started += 1
            actor = kind(*arguments)

            def answer(*asked):
                self.sent.append(asked)
                return Stream(actor.answer(*asked))

            return types.SimpleNamespace(answer=FakeMethod(answer))

        return FakeMethod(make)

    def wait(self, replies, **_):
        one, is_lost = self.choose(replies)
        one.is_lost = is_lost
        return [one], []

    def get(self, reply):
        return reply

    def kill(self, actor):
        pass


def without_processes(monkeypatch, ray):
    """Let the actors of a run be in this process."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: object() if name == "ray" else find(name)
    )
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setitem(sys.modules, "ray", ray)
    context = types.SimpleNamespace(Pipe=multiprocessing.Pipe, Process=DriverThread)
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: context)
    return ray


def spread(most=2, threads=1, address="local", worker=ScriptedWorker, patience=120.0, **script):
    """Return a generator over actors with a script, and the actors."""
    team = RayTeam(Cluster(address, most, threads, worker, patience))
    named = types.SimpleNamespace(fingerprint=FINGERPRINT)
    return team.generator(named, json.dumps(script)), team


def questions(sizes, **fields):
    """Return requests about sources of these numbers of questions."""
    return [
        GenerationRequest(prompt=f"s{source}-{n}", source=f"s{source}", seed=n, **fields)
        for source, size in enumerate(sizes)
        for n in range(size)
    ]
