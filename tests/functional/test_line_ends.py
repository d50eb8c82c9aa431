"""The same files with other line ends ask the same cases: a checkout may change them."""

import json

import pytest

from fairgate.cli import main

POLICY = """\
version: 1
name: ends
system: {retriever: {corpus: corpus.csv, top_k: 2}, generator: {model: demo-slm}}
suites:
  - {id: s, task: task.yaml, sources: SOURCES, perturbations: [gender], control: paper}
gates:
  - {metric: asr/generation, max: 0.9, regression: 0.05}
"""
TASK = """\
id: mood
instruction: |
  Say which mood
  the text is in.
labels: [positive, negative]
"""
TEXTS = ["The soup\nwas cold.", "The lamp\n\nis on.", "One line."]


def sources(ending, named):
    if ending == ".jsonl":
        rows = [{"text": text} | ({"id": f"s{n}"} if named else {}) for n, text in enumerate(TEXTS)]
        return "".join(f"{json.dumps(row)}\n" for row in rows)
    mark = "\t" if ending == ".tsv" else ","
    head = f"id{mark}text" if named else f"text{mark}other"
    lines = [f's{n}{mark}"{text}"' if named else f'"{text}"{mark}x' for n, text in enumerate(TEXTS)]
    return "\n".join([head, *lines]) + "\n"


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl"])
def test_a_plan_is_the_same_whatever_the_line_ends(tmp_path, monkeypatch, capsys, ending, named):
    monkeypatch.chdir(tmp_path)
    corpus = "id,text\n" + "".join(f'd{n},"Document {n}\nof two lines."\n' for n in range(9))
    files = {
        "ends.yaml": POLICY.replace("SOURCES", f"sources{ending}"), "task.yaml": TASK,
        "corpus.csv": corpus, f"sources{ending}": sources(ending, named),
    }  # fmt: skip
    plans = []
    for line_end in ("\n", "\r\n"):
        for name, text in files.items():
            (tmp_path / name).write_bytes(text.replace("\n", line_end).encode())
        assert main(["plan", "ends.yaml"]) == 0
        plans.append(capsys.readouterr().out)
        assert "\\r" not in plans[-1]
    assert plans[0] == plans[1]


def test_check_counts_damaged_sources(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts = ["The cafÃ© was cold.", "Tom &amp; Ada met.", "It donâ€™t work.", "All is well."]
    rows = "".join(f"s{n},{text}\n" for n, text in enumerate(texts))
    (tmp_path / "sources.csv").write_text(f"id,text\n{rows}", encoding="utf-8")
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "corpus.csv").write_text("id,text\nd1,One.\nd2,Two.\n")
    (tmp_path / "ends.yaml").write_text(POLICY.replace("SOURCES", "sources.csv"))
    assert main(["check", "ends.yaml"]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert (
        "3 of 4 sources hold damaged text: UTF-8 that was encoded twice 2, first 's0'; "
        "HTML entities 1, first 's1'" in said
    )
