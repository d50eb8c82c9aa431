"""Workers that are processes: they end with their run, whatever ends it."""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from fakes.workers import (
    answer_to,
    questions,
    scripted_side,
    side_of_a_broken_machine,
    side_that_cannot_start,
    spread,
)

from fairgate.domain.errors import WorkerError
from fairgate.features.ray.executors import WorkerProcesses


@pytest.fixture
def processes():
    executor = WorkerProcesses(2, 1, scripted_side)
    yield executor
    executor.close()


def alive(pids):
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def pids(executor):
    return [process.pid for process, _ in executor._running.values()]


def test_a_killed_process_costs_what_it_had_not_answered_and_interrupts_reach_none(
    processes, tmp_path
):
    log = tmp_path / "log"
    script = {"kill": "s2", "times": 1, "mark": str(tmp_path), "log": str(log)}
    generator, team = spread(processes, **script)
    requests = questions([5, 5, 5, 5])
    coming = generator.generate(requests)
    found = dict([next(coming)])
    for pid in pids(processes):
        os.kill(pid, signal.SIGINT)
    found |= dict(coming)
    assert found == dict(enumerate(map(answer_to, requests)))
    assert Counter(log.read_text().split()) == Counter(request.prompt for request in requests)
    assert "ended by signal 9, as where memory is short" in team.notices[0]
    assert {machine["threads"] for machine in team.machines} == {"1"}
    running = pids(processes)
    assert running
    assert alive(running) == running
    team.close()
    assert not alive(running)
    assert not pids(processes)


def test_an_interrupted_run_leaves_no_process(processes):
    generator, _ = spread(processes, stop="s1")
    coming = generator.generate(questions([2, 2]))
    found = [next(coming)[0], next(coming)[0]]
    assert sorted(found) == [0, 1]
    running = pids(processes)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(coming)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not alive(running)


def test_a_process_whose_run_is_gone_ends(processes):
    """A run that is killed closes its pipes; nothing else tells its workers."""
    number = processes.start()
    (pid,) = pids(processes)
    processes.send(number, json.dumps({}))
    assert processes.receive().text is not None
    process, pipe = processes._running.pop(number)
    pipe.close()
    process.join(20)
    assert process.exitcode == 0
    assert not alive([pid])


def test_processes_that_cannot_start_end_the_run(capfd):
    executor = WorkerProcesses(2, 1, side_that_cannot_start)
    generator, _ = spread(executor)
    with pytest.raises(WorkerError, match=r"3 workers in a row .*\(ended with status 1\)"):
        list(generator.generate(questions([1, 1])))
    executor.close()


def test_why_a_process_cannot_begin_reaches_the_run():
    executor = WorkerProcesses(1, 1, side_of_a_broken_machine)
    generator, _ = spread(executor)
    with pytest.raises(WorkerError, match=r"in a row .*ValueError: what is no number of a proc"):
        list(generator.generate(questions([1])))
    executor.close()


def test_cores_are_shared_among_processes():
    cores = len(os.sched_getaffinity(0))
    assert WorkerProcesses(1, 0, scripted_side)._threads == cores
    assert WorkerProcesses(cores + 1, 0, scripted_side)._threads == 1
    assert WorkerProcesses(2, 7, scripted_side)._threads == 7
