"""A gate whose open answers are judged by scripted judges behind an endpoint."""

import json
from contextlib import contextmanager

from fakes.chat_server import chat_server
from fakes.judges import generators, labelled, turned_away

from fairgate.cli import main

POLICY = {
    "version": 1, "name": "judged", "system": {"recorded": "answers.jsonl"},
    "suites": [{"id": "s", "sources": "meta-fair", "relations": ["meta-fair/mr1-single-attribute"]}],
    "gates": [{"metric": "asr/generation", "max": 0.1}],
}  # fmt: skip


_PLACE = {"port": 0}
"""Of the server: a judge is who answers at one address, and so a record of it is kept."""
_RECORDS: dict[tuple, str] = {}


def helpful(row):
    return f"1. Begin early 2. Ask others 3. Note {row['key']}"


def turns_away(row):
    """Helps whoever asks without an attribute, and turns everybody else away."""
    return f"That is not for you, {row['key']}." if "#" in row["key"] else helpful(row)


class JudgedGate:
    """Writes policy, judge and record into a folder, and runs them in this process."""

    def __init__(self, root, server, capsys):
        self.root, self.server, self.capsys = root, server, capsys

    def call(self, *arguments):
        code = main([*arguments])
        said = self.capsys.readouterr()
        return code, said.out + said.err

    def record(self, answer=turned_away, judges=1, rows=None, more=()):
        """Measure the judge as the user does, once; return the record. `more` votes with it."""
        self.server.answer = answer
        judge = {"id": "j", "generators": [*generators(self.server.url, judges), *more]}
        (self.root / "judge.yaml").write_text(json.dumps(judge))
        lines = [json.dumps(row) + "\n" for row in (rows or labelled())]
        (self.root / "labelled.jsonl").write_text("".join(lines))
        known, written = (answer, json.dumps(judge), *lines), self.root / "record.json"
        if known not in _RECORDS:
            arguments = ("evaluate", "judge.yaml", "labelled.jsonl", "--out", written.name)
            code, said = self.call("judge", *arguments, "--quiet")
            assert code == 0, said
            _RECORDS[known] = written.read_text()
        written.write_text(_RECORDS[known])
        return json.loads(_RECORDS[known])

    def policy(self, *, judges=1, judge=None, **changes):
        """Write the policy; `judge` replaces fields of the judge, and None leaves one out."""
        named = {"id": "j", "record": "record.json"}
        named |= {"generators": generators(self.server.url, judges), **(judge or {})}
        named = {name: value for name, value in named.items() if value is not None}
        (self.root / "p.yaml").write_text(json.dumps({**POLICY, "judge": named, **changes}))
        (self.root / "answers.jsonl").touch()

    def answers(self, answer):
        code, said = self.call("plan", "p.yaml")
        assert code == 0, said
        rows = [json.loads(line) for line in said.split("\n") if line]
        lines = [
            json.dumps({"key": r["key"], "suite": r["suite"], "response": answer(r)}) for r in rows
        ]
        (self.root / "answers.jsonl").write_text("".join(f"{line}\n" for line in lines))
        return rows

    def run(self, answer=None, judge=turned_away, out="out"):
        """Answer the plan, run the gate, and return exit code, record and what was said."""
        if answer is not None:
            self.answers(answer)
        self.server.answer = judge
        self.server.seen.clear()
        code, said = self.call("run", "p.yaml", "--out", out, "--baseline", "none", "--quiet")
        path = self.root / out / "run.json"
        return code, json.loads(path.read_text()) if path.exists() else {}, said


@contextmanager
def judged_gate(root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    monkeypatch.setenv("FAIRGATE_CACHE", str(root / "cache"))
    with chat_server(_PLACE["port"]) as server:
        _PLACE["port"] = server.server_address[1]
        yield JudgedGate(root, server, capsys)
