"""Workers without a model: their answers follow from the question, and each question is logged."""

import json
import os
import signal
from pathlib import Path

from fairgate.domain.errors import ModelError
from fairgate.domain.executions import Answer, GenerationRequest
from fairgate.features.ray.worker_side import WorkerSide
from fairgate.features.ray.workers import Received, Team

FINGERPRINT = "scripted/1"


def answer_to(request):
    return Answer(
        text=f"{request.prompt} {request.seed} {request.stop}", margin=len(request.prompt) / 3
    )


def scores_of(request):
    return [len(option) / 7 - len(request.prompt) for option in request.options]


class Scripted:
    """A generator that does to some sources what its script says, and logs what it is asked.

    A script is JSON: `log` is a file; `kill`, `crash`, `fail`, `lie` and `stop` name sources;
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


def scripted_side(threads):
    machine = {"node": "here", "fairgate": "1", "threads": str(threads)}
    return WorkerSide(Scripted, lambda: machine)


def side_that_cannot_start(threads):
    raise ValueError(f"no {threads}")


def side_of_a_broken_machine(threads):
    def machine():
        raise ValueError("what is no number of a processor")

    return WorkerSide(Scripted, machine)


class Here:
    """A port `Executor` in this process: `choose` picks whose next text comes, or who is lost."""

    def __init__(self, most, choose, side=scripted_side):
        self.most = most
        self.choose = choose
        self.side = side
        self.sides = {}
        self.replies = {}
        self.started = 0
        self.closed = 0
        self.sent = []

    def start(self):
        self.started += 1
        self.sides[self.started] = self.side(1)
        return self.started

    def send(self, worker, task):
        self.sent.append(task)
        self.replies[worker] = self.sides[worker].answer(task)

    def receive(self):
        worker, is_lost = self.choose(sorted(self.replies))
        if is_lost:
            del self.replies[worker], self.sides[worker]
            return Received(worker, None, "was lost")
        text = next(self.replies[worker])
        if '"is_done": true' in text:
            del self.replies[worker]
        return Received(worker, text)

    def stop(self, worker):
        self.replies.pop(worker, None)
        del self.sides[worker]

    def close(self):
        self.closed += 1
        self.sides, self.replies = {}, {}


class Named:
    """What gives a spread generator its fingerprint."""

    fingerprint = FINGERPRINT


def spread(executor, **script):
    """Return a generator over workers with a script, and the workers."""
    team = Team(executor)
    return team.generator(Named(), json.dumps(script)), team


def questions(sizes, **fields):
    """Return requests about sources of these numbers of questions."""
    return [
        GenerationRequest(prompt=f"s{source}-{n}", source=f"s{source}", seed=n, **fields)
        for source, size in enumerate(sizes)
        for n in range(size)
    ]
