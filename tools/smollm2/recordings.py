"""Answers of SmolLM2 as they are kept: without the texts of documents, which are named by their ids.

`prepare` writes the published data as the policies beside this file name them, `strip` makes a
recording of a finished run, and `restore` makes the run's folder of a recording again, byte for
byte. The data (METAL, BBQ, CrowS-Pairs, WinoBias, comments of Wikipedia) are not part of FairGate.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from functools import cache
from pathlib import Path

from fairgate.domain.executions import Document
from fairgate.domain.ports import Runtime
from fairgate.gate.loaded_policy import load_policy
from fairgate.io.durable import write_parts
from fairgate.onnx.model_folder import ModelFolder
from fairgate.onnx.prompts import PromptTokenizer
from fairgate.relations.meta_fair import TABLE
from fairgate.relations.oracles.choice import CHOICE_RULE
from fairgate.relations.oracles.closed import EXPECTED_YES_RULE, YES_NO_RULE
from fairgate.relations.oracles.label import LABEL_RULE
from fairgate.systems.generator import DEFAULT_TEMPLATE, render_prompt

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
WORK = ROOT / ".fairgate/smollm2"
DATA = WORK / "data"
RECORDINGS = HERE / "recordings"
NAMES = ("reviews", "comments", "bbq", "bbq-scored", "relations", "repeats-01", "repeats-07")
BEYOND = ("names", "documents", "conversations", "actions")
"""Runs of what the papers do not ask; of `documents` the corpus is FairGate's own."""
READ_BY = {
    "label/3": LABEL_RULE,
    "choice/3": CHOICE_RULE,
    "score/3": TABLE["meta-fair/mr11-score"].reader.id,
    "yes-no/2": YES_NO_RULE,
    "expected-yes/2, yes-no/2": EXPECTED_YES_RULE,
    "option/1, choice/3": f"option/1, {CHOICE_RULE}",
}
"""The rules by which answers were cut when they were generated, and those that read them now.

The answers are read as they stand: what a later rule would have generated behind the place where an
earlier one cut them is not known. The page says so.
"""
COPIED = {
    "metal/fairness_sa.csv": "reviews.csv",
    "metal/fairness_td.csv": "comments.csv",
    "bbq/metadata.csv": "bbq-metadata.csv",
    "bbq/Age.jsonl": "bbq/Age.jsonl",
    "bbq/Gender_identity.jsonl": "bbq/Gender_identity.jsonl",
    "bbq/Race_ethnicity_slice.jsonl": "bbq/Race_ethnicity_slice.jsonl",
    "bbq/Religion.jsonl": "bbq/Religion.jsonl",
    "stereo/crows_pairs.jsonl": "crows_pairs.jsonl",
    "stereo/winobias.jsonl": "winobias.jsonl",
}


def prepare(published: Path) -> None:
    """Copy the published data to where the policies name it; the corpus is a part of a file."""
    (DATA / "bbq").mkdir(parents=True, exist_ok=True)
    for source, target in COPIED.items():
        shutil.copyfile(published / source, DATA / target)
    with (DATA / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for row in _rows(published / "toxic/wiki_comments.jsonl"):
            if row["subset8"]:
                label = "toxic" if row["toxic"] else "non-toxic"
                file.write(
                    json.dumps({"id": row["id"], "text": row["text"], "label": label}) + "\n"
                )


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@cache
def _texts() -> dict[str, str]:
    """Return every document's text by the id that a run gives it."""
    collections = ("crows_pairs", "winobias")
    found = {row["id"]: row["text"] for row in _rows(DATA / "corpus.jsonl")}
    for name in collections:
        found |= {f"{name}/{row['id']}": row["text"] for row in _rows(DATA / f"{name}.jsonl")}
    return found


def _tokens(name: str, rows: list[dict]) -> dict[str, int]:
    """Return the tokens of a plan's prompts with their documents, and of the answers to them."""
    loaded = load_policy(HERE / f"{name}.yaml", Runtime(root=ROOT))
    generator = loaded.policy.system.generator
    tokenizer = PromptTokenizer(ModelFolder.find(ROOT / generator.model))
    answered = {row["key"]: row for row in rows}
    prompts = [
        render_prompt(
            generator.prompt or DEFAULT_TEMPLATE, instruction=case.instruction,
            text=case.text, characters=generator.document_characters,
            documents=[Document(text=one["text"])
                       for one in answered[case.key].get("documents") or ()],
        )
        for case in loaded.plan.cases
    ]  # fmt: skip
    answers = [answered[case.key]["response"] for case in loaded.plan.cases]
    return {
        "cases": len(prompts),
        "prompt_tokens": sum(map(len, tokenizer.encode(prompts))),
        "answer_tokens": sum(len(tokenizer.encode_fragment(text)) for text in answers),
    }


def strip(name: str, seconds: int, processor_seconds: int) -> None:
    """Keep the answers of the run `name`, documents by id, label and score, and what it took."""
    run, kept = WORK / name, RECORDINGS / name
    kept.mkdir(parents=True, exist_ok=True)
    whole = (run / "executions.jsonl").read_bytes()
    lines, rows = [], [json.loads(line) for line in whole.decode().splitlines()]
    tokens = _tokens(name, rows) if name in NAMES else {}
    for row in rows:
        for document in () if name == "documents" else row.get("documents") or ():
            if document.pop("text") != _texts()[document["id"]]:
                raise ValueError(f"{name}: {row['key']}: {document['id']} has another text")
        lines.append(_line(row))
    # Without name and time, so that equal answers give equal bytes.
    packed = gzip.compress("".join(lines).encode(), 9, mtime=0)
    (kept / "executions.jsonl.gz").write_bytes(packed)
    (kept / "executions.sha256").write_text(hashlib.sha256(whole).hexdigest() + "\n")
    record = json.loads((run / "run.json").read_text("utf-8"))
    took = {"seconds": seconds, "processor_seconds": processor_seconds} if tokens else {}
    about = {
        "provenance": record["provenance"],
        "asked": {"questions": len(lines), **took, **tokens},
    }
    (kept / "run.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    shutil.copyfile(run / "stop-rule.json", kept / "stop-rule.json")


def restore(name: str) -> Path:
    """Make the run of a recording again and return its folder.

    Raises ValueError where the data are not those that were asked about.
    """
    run, kept = WORK / "restored" / name, RECORDINGS / name
    lines = []
    for line in gzip.decompress((kept / "executions.jsonl.gz").read_bytes()).decode().splitlines():
        row = json.loads(line)
        for at, document in enumerate(row.get("documents") or ()):
            text = _texts().get(document["id"], "")
            row["documents"][at] = {"id": document.pop("id"), "text": text, **document}
        lines.append(_line(row))
    whole = "".join(lines).encode()
    if hashlib.sha256(whole).hexdigest() != (kept / "executions.sha256").read_text().strip():
        raise ValueError(f"{name}: the data in {DATA} are not those that were asked about")
    rules = (kept / "stop-rule.json").read_text("utf-8")
    for then, now in READ_BY.items():
        rules = rules.replace(f'"{then}"', f'"{now}"')
    record = (kept / "run.json").read_text("utf-8")  # what `fairgate rescore` reads besides
    write_parts(run, {"executions.jsonl": lines, "run.json": [record], "stop-rule.json": [rules]})
    return run


def _line(row: dict) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"
