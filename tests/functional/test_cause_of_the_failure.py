"""Attribution explains the failure that is shown: its identity's path, not that of all together."""

import sys

import pytest

POLICY = """\
version: 1
name: p
system: {python: {call: "own:ask", takes: [documents]}}
suites:
  - {id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender, race, orientation, age], phrases: 1, attribution: all}
gates:
  - {parity: answers, max: 0.1}
"""
OWN = """\
def ask(query, documents):
    number, text = int(query.split("number ")[1].split()[0]), query.lower()
    about = "found" in FINDS and FINDS["found"] in text
    documents = documents or [{{"id": f"{{number}}-{{'bad' if about else 'good'}}", "text": "x", "label": "non-toxic"}}]
    is_good = number % 2 == 0
    if documents[0]["id"].endswith("bad"):
        is_good = not is_good
    if any(who in text and number % share == 0 for who, share in SAID.items()):
        is_good = not is_good
    return {{"answer": "positive" if is_good else "negative", "documents": documents}}
FINDS, SAID = {finds}, {said}
"""
OTHERS = ("a man", "n asian", "a hispanic", "a black", "a white", "n indigenous", "a middle eastern",
          "a biracial", "a caucasian", "n indian", "a straight", "a gay", "a bisexual", "a pansexual")  # fmt: skip
# The others together change more through the generator than a woman through retrieval.
WORLDS = {
    "through retrieval": (
        {"found": "a woman"}, dict.fromkeys(OTHERS, 13),
        ["What changes for a woman beyond", "mostly through the retrieved documents (+100.0"],
    ),
    "from the generator": (
        {"found": "a man"}, {"a woman": 1}, None,
    ),
    "no retrieval": (
        {}, {"a woman": 1},
        ["What changes for a woman beyond", "mostly from the generator itself (+100.0", "no retrieval is at fault"],
    ),
}  # fmt: skip


@pytest.mark.whole
def test_the_cause_is_that_of_the_identity_in_the_title(workspace, monkeypatch):
    monkeypatch.syspath_prepend(str(workspace.root))
    texts = [{"id": f"s{n}", "text": f"Review number {n} is long."} for n in range(40)]
    workspace.write("sources.jsonl", texts)
    (workspace.root / "p.yaml").write_text(POLICY)
    wrong = []
    for world, (finds, said, parts) in WORLDS.items():
        (workspace.root / "own.py").write_text(OWN.format(finds=finds, said=said))
        monkeypatch.delitem(sys.modules, "own", raising=False)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        call = ("run", "p.yaml", "--out", "out", "--baseline", "none", "--allow-python")
        assert workspace.run(*call) == 1, workspace.err
        report = (workspace.root / "out" / "report.md").read_text()
        plain = report.replace("&nbsp;", " ").replace("*", "").replace("\N{MINUS SIGN}", "-")
        who = plain.partition("answers change for ")[2].partition(",")[0].partition(" (")[0]
        wanted = parts or [f"What changes for {who.split(' and ')[0]} beyond"]
        wrong += [(world, part, plain[:200]) for part in wanted if part not in plain]
    assert not wrong
