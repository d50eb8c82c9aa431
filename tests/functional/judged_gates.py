"""A gate whose open answers are judged by scripted judges behind an endpoint."""

import json
from contextlib import contextmanager
from functools import partial

from fakes.chat_server import chat_server
from fakes.judges import generators, labelled, turned_away

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
    def __init__(self, workspace, server):
        self.space, self.server, self.root = workspace, server, workspace.root
        self.answers = partial(workspace.respond, policy="p.yaml")

    def call(self, *arguments):
        return self.space.run(*arguments), self.space.out + self.space.err

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
        """Write the policy; `judge` replaces fields of the judge, None leaves one out; False: no judge."""
        named = {"id": "j", "record": "record.json"}
        named |= {"generators": generators(self.server.url, judges), **(judge or {})}
        named = {name: value for name, value in named.items() if value is not None}
        own = {} if judge is False else {"judge": named}
        (self.root / "p.yaml").write_text(json.dumps({**POLICY, **own, **changes}))

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
def judged_gate(workspace):
    with chat_server(_PLACE["port"]) as server:
        _PLACE["port"] = server.server_address[1]
        yield JudgedGate(workspace, server)
