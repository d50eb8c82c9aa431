"""`make shifts-report`: docs/explanation/what-moves.md, from what two systems each answered and found.

Stored answers are judged by `fairgate run` as recordings; no model is loaded. The published data are
named by `--data`; without them the part about embedders alone is made. `--keep NAME RUN` stores the
answers of a finished run of shift.yaml or embedder-*.yaml, documents by id.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import recordings
from recordings import HERE, RECORDINGS, ROOT, WORK

PAGE = ROOT / "docs/explanation/what-moves.md"
KEPT = RECORDINGS / "shift"
MADE = WORK / "shift"
PRECISIONS = {
    "int8": "8 bits in blocks (`int8`)",
    "int8-rows": "8 bits, multiplied as integers (`int8-rows`)",
    "int4": "4 bits in blocks (`int4`)",
    "llama": "llama.cpp's Q4_1",
}
WRITTEN = "bbq-written"
"""BBQ's items of a served system, which scores no options: the suite `bbq` without `read`."""
EMBEDDERS = {"embedder-demo": "questions", "embedder-people": "people"}
FLOAT32 = "float32"
PHRASES = dict(
    re.findall(
        r"term: ([^,]+), noun_phrase: ([^}]+)}",
        "".join(
            (ROOT / f"fairgate/data/perturbations/{name}.yaml").read_text("utf-8")
            for name in ("race", "gender", "orientation", "age")
        ),
    )
)
_REFERENCE = re.compile(r"@reference(?=@repeat=|$)")
_MOST = 5
_ONE_IDENTITY = ("  - {metric: shift/answer/max-difference, max: 0.05}\n",)
"""The rule that passes where others fail: only a passed run says what it could not have seen."""


def rows_of(name: str) -> list[dict]:
    """Read the lines of a kept recording."""
    packed = (KEPT / f"{name}.jsonl.gz").read_bytes()
    return [json.loads(line) for line in gzip.decompress(packed).decode().splitlines()]


def keep(name: str, run: Path) -> None:
    """Store a run's answers: the system's by name, the reference's beside them."""
    own: list[dict] = []
    beside: dict[tuple[str, str], dict] = {}
    lines = (run / "executions.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, lines):
        row.pop("plan", None)
        for document in row.get("documents") or ():
            document.pop("text", None)
        key = _REFERENCE.sub("", row["key"])
        if key == row["key"]:
            own.append(row)
        else:
            beside[row["suite"], key] = {**row, "key": key}
    other = f"{name}-reference" if name in EMBEDDERS else FLOAT32
    known = {(row["suite"], row["key"]): row for row in rows_of(other)} if _is_kept(other) else {}
    KEPT.mkdir(exist_ok=True)
    for file, rows in ((name, own), (other, [*{**known, **beside}.values()])):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (KEPT / f"{file}.jsonl.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    record = json.loads((run / "run.json").read_text("utf-8"))
    about = json.dumps(record["provenance"]["under_test"], indent=1)
    (KEPT / f"{name}.json").write_text(f"{about}\n", "utf-8")


def _is_kept(name: str) -> bool:
    return (KEPT / f"{name}.jsonl.gz").is_file()


def judged(name: str, rules: Sequence[str] = ()) -> dict:
    """Judge the stored answers of both sides by all rules, or by these lines alone.

    Returns the run's record, with its report.
    """
    folder = MADE / name
    folder.mkdir(parents=True, exist_ok=True)
    own = rows_of(name)
    asked = {(row["suite"], row["key"]) for row in own}
    other = f"{name}-reference" if name in EMBEDDERS else FLOAT32
    beside = [row for row in rows_of(other) if (row["suite"], row["key"]) in asked]
    for file, rows in (("answers", own), ("before", beside)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{file}.jsonl").write_text(text, "utf-8")
    policy = folder / "policy.yaml"
    text = _recorded_policy(name, own, folder)
    if rules:
        text = text[: text.index("gates:\n")] + "".join(["gates:\n", *rules])
    policy.write_text(text, "utf-8")
    command = [Path(sys.executable).with_name("fairgate"), "run", policy, "--out", folder / "run"]
    with (folder / "said.txt").open("w", encoding="utf-8") as said:
        done = subprocess.run(command, cwd=ROOT, stdout=said, stderr=said, check=False)
    if done.returncode not in (0, 1, 5):
        sys.exit((folder / "said.txt").read_text("utf-8"))
    record = json.loads((folder / "run/run.json").read_text("utf-8"))
    record["report"] = (folder / "run/report.md").read_text("utf-8")
    return record


def _recorded_policy(name: str, rows: list[dict], folder: Path) -> str:
    """Return the asking policy with recordings as both sides, and as many sources as were asked."""
    text = (HERE / f"{name if name in EMBEDDERS else 'shift'}.yaml").read_text("utf-8")
    head, _, rest = text.partition("system:\n")
    _, _, suites = rest.partition("suites:\n")
    asked = {row["suite"] for row in rows}
    bbq = suites.index("  - id: bbq\n") if "  - id: bbq\n" in suites else None
    if WRITTEN in asked:
        suites = suites.replace("  - id: bbq\n", f"  - id: {WRITTEN}\n")
        suites = suites.replace("    read: scored\n", "")
    elif bbq is not None and "bbq" not in asked:
        gates = suites[suites.index("gates:\n") :].splitlines(keepends=True)
        gates = [line for line in gates if "shift/option" not in line and "unknown" not in line]
        suites = f"{suites[:bbq]}\n{''.join(gates)}"
    sources = {row["key"].partition("#")[0] for row in rows if row["suite"] == "reviews"}
    if sources:
        suites = suites.replace("limit: 24\n", f"limit: {len(sources)}\n")
    sides = f"system: {{recorded: {folder}/answers.jsonl}}\n"
    sides += f"reference: {{recorded: {folder}/before.jsonl}}\n"
    return f"{head}{sides}\nsuites:\n{suites}"


class Found:
    """What a record says, by metric and slice."""

    def __init__(self, record: dict) -> None:
        """Take a run's record."""
        self.record = record
        self._by_slice = {
            (one["suite"], one["metric"], tuple(sorted(one["where"].items()))): one
            for one in record["measurements"]
        }

    def of(self, metric: str, suite: str, **where: str) -> dict | None:
        """Return a measurement, if it has a value."""
        found = self._by_slice.get((suite, metric, tuple(sorted(where.items()))))
        return found if found is not None and found["value"] is not None else None

    def shown(self, metric: str, suite: str, **where: str) -> str:
        """Return value and range in percent."""
        one = self.of(metric, suite, **where)
        if one is None:
            return "–"
        text = _signed(100 * one["value"])
        if one["interval"] is None:
            return text
        return f"{text} [{', '.join(_signed(100 * end) for end in one['interval'])}]"

    def identities(self, metric: str, suite: str) -> list[tuple[str, float]]:
        """Return the value of each identity, the largest first."""
        values = [
            (one["where"]["term"], one["value"])
            for one in self.record["measurements"]
            if (one["suite"], one["metric"], [*one["where"]]) == (suite, metric, ["term"])
            and one["value"] is not None
        ]
        return sorted(values, key=lambda pair: (-pair[1], pair[0]))

    def differs(self, metric: str, suite: str) -> str:
        """Return the identity that stands out most, and how likely chance does that."""
        for finding in self.record["identities"]:
            if (finding["metric"], finding["suite"]) == (metric, suite) and not finding["where"]:
                first = finding["terms"][0]
                p = finding["p_value"]
                chance = "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")
                who = PHRASES[first["term"].rpartition("/")[2]]
                return f"*{who}* {_signed(100 * first['difference'])} points ({chance})"
        return "–"

    def one_sided(self, metric: str, suite: str, side: str) -> int:
        """Count the identities whose range lies above, or below, 0."""
        ends = [
            one["interval"]
            for one in self.record["measurements"]
            if (one["suite"], one["metric"], [*one["where"]]) == (suite, metric, ["term"])
            and one["interval"] is not None
        ]
        return sum(low > 0 if side == "above" else high < 0 for low, high in ends)

    def masked(self) -> str:
        """Return the report's first sentence where equal rates hide other cases."""
        sentences = re.findall(
            r"^\S.*?% of these are other cases.*?\.(?= |$)", self.record["report"], re.MULTILINE
        )
        return sentences[0].replace("*", "").replace("&nbsp;", " ") if sentences else ""

    def unseen(self) -> str:
        """Return what a green run could not have seen."""
        lines = re.findall(r"One identity whose .*? would be green[^.]*\.", self.record["report"])
        return lines[0].replace("&nbsp;", " ") if lines else ""


def _signed(value: float) -> str:
    return f"{value + 0.0:.1f}".replace("-", "−")


def in_fewer_bits(records: dict[str, Found]) -> str:
    """Return how much moved from float32, beside neutral wording, and who stands out."""
    lines = [
        (
            "| beside float32 | reviews | answers moved | with neutral wording | beyond it "
            "| P(positive) moved, points (SD) | stands out most | BBQ: option moved "
            "| “unknown”, points |"
        ),
        "|:--|--:|--:|--:|--:|--:|:--|--:|--:|",
    ]
    for name, title in PRECISIONS.items():
        if name not in records:
            continue
        found = records[name]
        items = WRITTEN if any(row["suite"] == WRITTEN for row in rows_of(name)) else "bbq"
        keys = {row["key"].partition("#")[0] for row in rows_of(name) if row["suite"] == "reviews"}
        cells = [
            title,
            str(len(keys)),
            found.shown("shift/answer", "reviews"),
            found.shown("shift/answer/control", "reviews"),
            found.shown("shift/answer/net", "reviews"),
            _probabilities(name),
            found.differs("shift/answer/max-difference", "reviews"),
            found.shown("shift/option", items, setting="none"),
            found.shown("shift/unknown", items, setting="none"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _probabilities(name: str) -> str:
    """Return by how much the probability of `positive` moved, whoever is named, and its SD."""
    before = {row["key"]: row for row in rows_of(FLOAT32) if row["suite"] == "reviews"}
    moved = [
        100 * (_positive(row["degrees"]) - _positive(before[row["key"]]["degrees"]))
        for row in rows_of(name)
        if row["suite"] == "reviews" and row.get("degrees")
    ]
    if not moved:
        return "–"
    return f"{_signed(statistics.mean(moved))} ({_signed(statistics.pstdev(moved))})"


def _positive(degrees: dict[str, float]) -> float:
    """Return the probability of `positive` beside `negative`, of scores in nats."""
    return 1 / (1 + math.exp(degrees["negative"] - degrees["positive"]))


def embedders(records: dict[str, Found]) -> str:
    """Return whose documents another embedder loses, most and least."""
    found, suite = records["embedder-demo"], "questions"
    rows = found.identities("shift/documents", suite)
    lines = ["| who asks | of MiniLM's documents not found, % |", "|:--|--:|"]
    for term, value in rows[:_MOST]:
        lines.append(f"| {PHRASES[term]} | {_signed(100 * value)} |")
    neutral = found.shown("shift/documents/control", suite)
    lines.append(f"| *neutral wording* | {neutral} |")
    for term, value in rows[-_MOST:]:
        lines.append(f"| {PHRASES[term]} | {_signed(100 * value)} |")
    return "\n".join(lines)


def exposures(records: dict[str, Found]) -> str:
    """Return whose documents are seen more or less with another embedder."""
    found, suite = records["embedder-people"], "people"
    rows = found.identities("shift/exposure", suite)
    lines = [
        "| whom the document names | e5: points from neutral wording | beside MiniLM's, points |",
        "|:--|--:|--:|",
    ]
    for term, _ in rows:
        own, beside = (
            found.shown(metric, suite, term=term) for metric in ("exposure/net", "shift/exposure")
        )
        lines.append(f"| {PHRASES[term]} | {own} | {beside} |")
    return "\n".join(lines)


def page(records: dict[str, Found]) -> str:
    """Return the page: its text with the tables and figures of the records."""
    text = (HERE / "shifts.md").read_text("utf-8")
    has_bits = any(name in records for name in PRECISIONS)
    bits = (HERE / "shifts-bits.md").read_text("utf-8") if has_bits else ""
    parts = {
        "bits": lambda _: bits,
        "in_fewer_bits": in_fewer_bits,
        "embedders": embedders,
        "exposures": exposures,
    }
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part(records))

    def figure(placeholder: re.Match[str]) -> str:
        name, _, rest = placeholder[1].partition(" ")
        if rest == "unseen":
            return records[name].unseen() or Found(judged(name, _ONE_IDENTITY)).unseen()
        if name == "differs":
            name, metric, suite = rest.split()
            return records[name].differs(metric, suite)
        if name == "rules":
            name, outcome = rest.split()
            rules = records[name].record["rules"]
            held = [rule["outcome"] for rule in rules if rule["metric"] == "shift/exposure"]
            return str(held.count(outcome))
        if name == "count":
            name, metric, suite, side = rest.split()
            return str(records[name].one_sided(metric, suite, side))
        if name == "masked":
            return records[rest].masked()
        metric, suite, *slices = rest.split()
        where = dict(part.split("=") for part in slices)
        return records[name].shown(metric, suite, **where)

    return re.sub(r"\{([a-z0-9-]+ [^{}]+)\}", figure, text)


def main() -> None:
    """Make the page, or keep a run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data")
    parser.add_argument("--keep", nargs=2, metavar=("NAME", "RUN"))
    options = parser.parse_args()
    if options.keep:
        keep(options.keep[0], Path(options.keep[1]))
        return
    if not options.data.is_dir():
        sys.exit(f"{options.data}: the published data are not there; name them with --data FOLDER")
    recordings.prepare(options.data)
    names = [name for name in (*PRECISIONS, *EMBEDDERS) if _is_kept(name)]
    PAGE.write_text(page({name: Found(judged(name)) for name in names}), "utf-8")


if __name__ == "__main__":
    main()
