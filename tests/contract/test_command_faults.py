"""Whatever a program does wrong: never green, a clear message, and nothing of it stays behind."""

import os
import sys
import textwrap
import time
from pathlib import Path

import pytest
from contract.conftest import lives

SECRET = "swordfish-0815"  # noqa: S105  # of nothing
HEAD = """\
import json, os, signal, subprocess, sys, time
def told(asked, **more):
    print(json.dumps({"id": asked["id"], "answer": "positive", "documents": [{"id": "a", "text": "x"}], **more}), flush=True)
"""
LOOP = "for line in sys.stdin:\n    asked = json.loads(line)\n"
PROGRAMS = {
    "dies": (LOOP + "    if asked['id'] == 3: sys.exit('no memory')\n    told(asked)", "ended with exit code 1 instead of a reply; the end of its stderr: no memory"),
    "dies at once": ("sys.exit(3)", "exit code 3"),
    "is killed": (LOOP + "    os.kill(os.getpid(), signal.SIGKILL)", "exit code -9"),
    "talks": ("print('loading the model')\n" + LOOP + "    told(asked)", "begins 'loading the model'; expected an object; only replies belong on stdout"),
    "says a line too many": (LOOP + "    told(asked)\n    if asked['id'] == 2: told(asked)", "expected an object with `id` 3"),
    "forgets the id": (LOOP + "    print(json.dumps({'answer': 'positive'}), flush=True)", "expected an object with `id` 0"),
    "gives another form": (LOOP + "    told(asked, answer=['positive'])", "`$.answer` is a list of 1 entry; expected text"),
    "is silent": (LOOP + "    time.sleep(60)", "no reply within 3 s"),
    "never reads": ("time.sleep(60)", "no reply within 3 s"),
    "says half a line": (LOOP + "    sys.stdout.write('{\"id\"'); sys.stdout.flush(); sys.exit(0)", "exit code 0"),
    "says too much": (LOOP + "    told(asked, answer='x' * (17 << 20))", "a line of more than 16,777,216 bytes"),
    "answers too much": (LOOP + "    told(asked, answer='x' * 2_000_000)", "`$.answer` has 2,000,000 characters, at most 1,000,000"),
    "floods stderr": (LOOP + "    sys.stderr.write('x' * (50 << 20) + 'the end'); sys.exit(1)", "xthe end"),
    "says no text on stderr": (LOOP + "    sys.stderr.buffer.write(b'\\xff\\x1b[31m of no memory'); sys.exit(1)", "\\x1b[31m of no memory"),
    "says no UTF-8": (LOOP + "    sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()", "not UTF-8"),
    "shows the secret": (LOOP + "    print(os.environ['RAG_TOKEN'], file=sys.stderr); sys.exit(os.environ['RAG_TOKEN'])", "stderr: ***"),
}  # fmt: skip


@pytest.fixture
def program(place):
    def write(body, **fields):
        (place.root / "app.py").write_text(HEAD + textwrap.dedent(body) + "\n")
        return {"command": {"run": [sys.executable, "app.py"], **fields}}

    return write


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_faults_are_never_green_and_always_explained(place, program, monkeypatch, name):
    monkeypatch.setenv("RAG_TOKEN", SECRET)
    body, words = PROGRAMS[name]
    code = place.gate(program(body, timeout=3, env=["RAG_TOKEN"]))  # lower bound: what hangs
    assert code == 4
    assert words in place.err, place.err
    assert "app.py" in place.err
    assert SECRET not in place.out + place.err
    assert not (place.root / "out" / "run.json").exists()


@pytest.mark.parametrize("run", [["./none.sh"], ["no-such-program-anywhere"], ["app.txt"]])
def test_a_program_that_cannot_be_started(place, run):
    (place.root / "app.txt").write_text("no program")
    assert place.gate({"command": run}) == 4
    assert "cannot be started" in place.err


def test_a_variable_that_is_not_set(place, program, monkeypatch):
    monkeypatch.delenv("RAG_TOKEN", raising=False)
    assert place.gate(program(LOOP + "    told(asked)", env=["RAG_TOKEN"])) == 2
    assert "'RAG_TOKEN', which `env` names, is not set" in place.err


def test_it_is_given_the_variables_that_are_named_and_no_others(place, program, monkeypatch):
    monkeypatch.setenv("RAG_TOKEN", SECRET)
    monkeypatch.setenv("DEPLOY_KEY", "of another job")
    body = LOOP + "    told(asked, answer=' '.join(sorted(os.environ)))"
    place.gate(program(body, env=["RAG_TOKEN"]))
    given = place.executions()[0]["response"].split()
    assert "RAG_TOKEN" in given
    assert "PATH" in given
    assert "DEPLOY_KEY" not in given


@pytest.mark.walk(2)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc who lives")
@pytest.mark.parametrize("end", ["told(asked)", "sys.exit(1)", "time.sleep(60)"])
def test_nothing_of_it_stays_behind(place, program, end):
    """Neither a program that ignores the signal to end, nor what it started."""
    body = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open('pids', 'w').write(f'{{os.getpid()}} {{child.pid}}')\n{LOOP}    {end}"
    )
    place.gate(program(body, timeout=2))  # lower bound: what hangs is waited for
    numbers = [int(number) for number in (place.root / "pids").read_text().split()]
    for _ in range(50):
        if not any(map(lives, numbers)):
            break
        time.sleep(0.1)  # lower bound: the system needs at least so long to end a process
    assert not any(map(lives, numbers))
    assert os.getpid() not in numbers


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc who lives")
@pytest.mark.parametrize("end", ["told(asked)", "sys.exit(1)"])
def test_what_forks_out_of_its_session_does_not_hold_up_the_run(place, program, end):
    """It keeps the program's output open, whose end is not waited for."""
    body = (
        "if os.fork() == 0:\n    os.setsid()\n    open('pids', 'w').write(str(os.getpid()))\n"
        f"    time.sleep(600)\n    os._exit(0)\n{LOOP}    {end}"
    )
    ends = "exit" in end
    code = place.gate(program(body, timeout=1 if ends else 60))  # lower bound: it is waited for
    assert code in ((4,) if ends else (0, 1, 5))
    assert not lives(int((place.root / "pids").read_text()))
