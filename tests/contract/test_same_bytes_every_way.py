"""One application, four ways to ask it: the same verdict and the same files, byte for byte."""

import json
import re
import sys
from pathlib import Path

import pytest
from fakes import rag_app

RULES = {"biased": ["A Black"], "poisoned": ["An Asian", "A biracial"]}
PROGRAM = """\
import json, sys
sys.path.insert(0, {folder!r})
from fakes import rag_app

def ask(query, documents=None):
    found = rag_app.reply(query, documents, **{rules})
    return {{"answer": found["answer"], "documents": found["contexts"]}}

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({{"id": asked["id"], **ask(asked["query"], asked["documents"])}}), flush=True)
"""


@pytest.fixture
def same(place, start, monkeypatch):
    """Return how a policy asks the same unfair application in each way; recordings come last."""
    place.sources(8)
    folder = str(Path(rag_app.__file__).parents[1])
    (place.root / "same_app.py").write_text(PROGRAM.format(folder=folder, rules=RULES))
    monkeypatch.syspath_prepend(str(place.root))
    monkeypatch.delitem(sys.modules, "same_app", raising=False)
    own = {"revision": "r1", "takes": ["documents"]}
    request = {"question": "{{query}}", "documents": "{{documents}}"}
    fields = {"request": request, "response": {"documents": "$.contexts[*]"}}
    asked = {"url": f"{start(**RULES).url}/ask", "revision": "r1", **fields}
    return {
        "http": {"http": asked},
        "command": {"command": {"run": [sys.executable, "same_app.py"], **own}},
        "python": {"python": {"call": "same_app:ask", **own}},
        "recorded": {"recorded": "answers.jsonl"},
    }


NAMED = {
    "report.md": (
        r"(?m)^(- (system|revision|recorded): |Changed since the baseline: ).*\n"
        r"|^\n> \[!NOTE\]\n> All [0-9,]+ answers were asked for.*\n"  # a recording is not asked
    ),
    "report.html": (
        r"<dt><bdi>(system|revision|recorded)</bdi></dt><dd>.*?</dd>"
        r"|(?m:^(?:<div[^>]*>)?<p>Changed since the baseline: .*\n)"
        r'|<div class="note"><p>All [0-9,]+ answers were asked for.*\n\n'
    ),
}
"""Where a report names the system, or the one of its baseline."""


def files_of(folder):
    """Return the files of a run without the name of the system and what follows from it."""
    found = {file.name: file.read_text() for file in folder.iterdir()}
    record = json.loads(found["run.json"])
    del record["provenance"]["under_test"], record["provenance"]["policy_sha256"]
    record.pop("answers", None)
    record["notices"] = [one for one in record["notices"] if "answers were asked for" not in one]
    found["run.json"] = json.dumps(record, indent=1)
    found["parts.json"] = sorted(json.loads(found["parts.json"])["parts"])  # without the digests
    for file, form in NAMED.items():
        found[file], count = re.subn(form, "", found[file])
        assert count > 2
    return found


def test_every_way_gives_the_same_files_beside_the_same_baseline(place, same, start):
    fair = {"http": {**same["http"]["http"], "url": f"{start().url}/ask"}}
    assert place.gate(fair) == 0, place.err
    assert place.call("baseline", "accept", "out", "--reason", "the first one") == 0, place.err
    (place.root / "out").rename(place.root / "fair")
    found = {}
    for name, system in same.items():
        # The run lies in the same folder each time, because its report names it.
        assert place.gate(system) == 1, place.err
        (place.root / "out").rename(place.root / name)
        found[name] = files_of(place.root / name)
        if name == "http":
            recorded = (place.root / name / "executions.jsonl").read_text()
            (place.root / "answers.jsonl").write_text(recorded)
    first = found.pop("http")
    record = json.loads(first["run.json"])
    assert record["attribution"][0]["crossed"] > 0
    assert [rule["metric"] for rule in record["rules"] if rule["change"]] == [
        "asr/generation",
        "asr/retrieval",
    ]
    for name, files in found.items():
        assert set(files) == set(first), name
        assert not [file for file in files if files[file] != first[file]], name
