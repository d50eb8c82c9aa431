"""Random runs of two checkouts: policies, recorded answers, baselines, and every byte that they write.

Run: python tools/compare_checkouts.py OTHER [--runs 200]. OTHER is another checkout, an older one say; both
have a `.venv`. Each run draws a policy of one or two suites (label, tone, people, written pairs, BBQ), its
gates, and answers that are readable, unreadable or missing. Both checkouts plan, run, accept a baseline, run
again on other answers, judge the stored ones again, test the policy by mutants and write every format. Exit
codes, what is printed and all files are compared, those of refused policies too. With --data (a folder with
`bbq`, `kobbq` and `metal`, as published) suites draw published items and seeds as well. Exits 1 where any
run differs; --ignore and --skip leave out what is meant to differ.
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORK = """
import contextlib, json, os, sys
sys.path.insert(0, sys.argv[1])
import fairgate.cli, fairgate.gate.gate, fairgate.__main__
for line in sys.stdin:
    folder, calls = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        for number, (*arguments,) in enumerate(calls):
            grand = os.fork()
            if not grand:
                sys.argv = ["fairgate", *arguments]
                code = 1
                with open(f"{number}.out", "w") as out, open(f"{number}.err", "w") as err:
                    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                        os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
                        try:
                            code = fairgate.__main__.main()
                        except SystemExit as end:
                            code = end.code
                        sys.stdout.flush(), sys.stderr.flush()
                os._exit(int(code or 0))
            with open(f"{number}.exit", "w") as file:
                file.write(str(os.waitstatus_to_exitcode(os.waitpid(grand, 0)[1])))
        os._exit(0)
    os.waitpid(child, 0)
    print(folder, flush=True)
"""
FORMATS = "md,html,json,rows,sarif,junit"
RUN = ["run", "policy.yaml", "--out", "out", "--cache", "cache", "--format", FORMATS]
CALLS = [
    ["check", "policy.yaml"],
    ["plan", "policy.yaml"],
    RUN,
    ["baseline", "accept", "out", "--reason", "compare", "--cache", "cache"],
    ["power", "policy.yaml", "--cache", "cache"],
]
AFTER = [
    [*RUN[:3], "again", *RUN[4:]],
    ["rescore", "again", "--out", "rescored", "--policy", "policy.yaml", "--cache", "cache"],
]
METRICS = {
    "label": "asr/generation asr/retrieval rrs/mean retrieval/overlap retrieval/mean-distance",
    "people": "asr/generation fdr",
    "pairs": "asr/generation",
    "bbq": "diff-bias/ambiguous diff-bias/disambiguated accuracy/disambiguated accuracy/ambiguous out-of-choice letter/a"
    " amplification/diff-bias/ambiguous bbq/s_amb bbq/s_dis stereotype-share",
}
OUTCOMES = {"label": "answers unreadable documents all", "people": "answers unreadable"}
LESS = {"accuracy/disambiguated", "accuracy/ambiguous", "retrieval/overlap"}
SIGNED = "diff-bias amplification/diff-bias bbq/"
PEOPLE = "genfair/mr1-removal-one genfair/mr2-removal-all genfair/mr3-selective-negation genfair/mr5-substitution-all"
PEOPLE += " genfair/mr6-substitution-one genfair/mr7-counterfactual genfair/mr8-order-permutation intersectional/pairs"
PAIRS = "meta-fair/mr8-inverted-single meta-fair/mr11-score meta-fair/mr12-yes-no meta-fair/mr13-multiple-choice"
PAIRS += " meta-fair/mr14-prioritisation"
DATA = ["bbq/Religion.jsonl", "bbq/Age.jsonl", "kobbq/KoBBQ_test_slice.tsv"]
DATA += ["metal/fairness_sa.csv", "metal/fairness_td.csv"]
TEXTS = ["I cannot say.", "", "Positive or negative, it depends", "yes", "No, never.", "7", "3 of 10", "B", "A.", "(c)",
    "1. tall\n2. short", "<b>negative</b>", "Unknown", "Not enough information"]  # fmt: skip


def policy(dice: random.Random, number: int, data: Path | None) -> dict:
    """Draw a policy: one or two suites and one to four gates of each."""
    suites: list[dict] = []
    gates: list[dict] = []
    for kind in dice.sample(list(METRICS), dice.choice([1, 1, 2])):
        suite: dict = {"id": kind}
        if kind == "label":
            task, sources = dice.choice(
                [("sentiment", "demo-reviews"), ("toxicity", "demo-comments")]
            )
            if data and dice.random() < 0.5:
                file = {"sentiment": "fairness_sa.csv", "toxicity": "fairness_td.csv"}[task]
                sources = {"path": f"data/{file}", "id": "inputID", "text": "input"}
            suite |= {"task": task, "sources": sources, "limit": dice.randint(3, 12)}
            suite["perturbations"] = dice.sample(
                ["race", "gender", "orientation", "age"], dice.randint(1, 3)
            )
            if dice.random() < 0.3:
                suite["control"] = dice.choice(["neutral-phrases", "paper", "none"])
            if dice.random() < 0.2:
                suite["repeats"] = 2
        elif kind == "people":
            suite |= {
                "task": dice.choice(["sentiment", "advice"]),
                "sources": "demo-people",
                "limit": dice.randint(2, 6),
            }
            suite |= {
                "relations": dice.sample(PEOPLE.split(), dice.randint(1, 4)),
                "control": "neutral-phrases",
            }
            suite["attribution"] = "off"
        elif kind == "pairs":
            suite |= {
                "sources": "meta-fair",
                "relations": dice.sample(PAIRS.split(), dice.randint(1, 3)),
            }
            suite["limit"] = dice.randint(3, 10)
        else:
            items = "demo-bbq"
            if data and dice.random() < 0.5:
                items = "data/" + dice.choice(
                    ["Religion.jsonl", "Age.jsonl", "KoBBQ_test_slice.tsv"]
                )
            suite |= {
                "kind": "bbq",
                "items": items,
                "collections": ["demo-stances"],
                "limit": dice.choice([4, 8, 24]),
            }
            suite |= {
                "settings": dice.choice([["none", "full"], ["none", "stereo", "anti"]]),
                "retrievers": ["dense"],
            }
            suite |= {"top_k": dice.choice([3, [1, 3]])}
        suites.append(suite)
        gates += gates_of(dice, kind, suite)
    known = {
        "version": 1,
        "name": f"random-{number}",
        "system": {"recorded": "answers.jsonl"},
        "suites": suites,
        "min_decided": dice.choice([0.1, 0.95]),
        "constant_answers": dice.choice(["allow", "refuse"]),
    }
    if any(suite["id"] == "bbq" for suite in suites):
        known["system"]["embedder"] = "minilm"
    if dice.random() < 0.03:
        known[dice.choice(["gate", "sytem", "x"])] = dice.choice([1, None, []])
    return known | {"gates": gates}


def gates_of(dice: random.Random, kind: str, suite: dict) -> list[dict]:
    """Draw one to four gates of a suite, and a question about parity."""
    gates = []
    metrics = METRICS[kind].split()
    for metric in dice.sample(metrics, min(len(metrics), dice.randint(1, 4))):
        gate: dict = {"metric": metric, "suite": kind}
        signed = metric.startswith(tuple(SIGNED.split()))
        gate["max_abs" if signed else "min" if metric in LESS else "max"] = dice.choice(
            [0.02, 0.1, 0.3, 0.6]
        )
        if dice.random() < 0.5 and not metric.startswith("letter"):
            gate["regression"] = dice.choice([0, 0.02, 0.1])
        if dice.random() < 0.3:
            gate["evidence"] = "significant"
        if kind == "bbq":
            gate["where"] = {"setting": suite["settings"][-1]}
        gates.append(gate)
    for outcome in dice.sample(OUTCOMES.get(kind, "").split(), kind in OUTCOMES):
        limits = {"max": dice.choice([0.02, 0.2])} if dice.random() < 0.5 else {}
        gates.append({"parity": outcome, "suite": kind, **limits})
    return gates


def answers(plan: str, dice: random.Random, bias: float) -> str:
    """Draw an answer for each line of a plan: most as their source's, some by chance, few missing."""
    documents = [
        {
            "id": f"d{n}",
            "text": f"Document number {n} speaks of it.",
            "label": ["positive", "negative"][n % 2],
        }
        for n in range(30)
    ]
    found = []
    for row in map(json.loads, plan.splitlines()):
        own = random.Random(row["key"].partition("#")[0])
        drawn = dice if dice.random() < bias else own
        words = [
            "positive",
            "negative",
            "neutral",
            "toxic",
            "non-toxic",
            "yes",
            "no",
            "8",
            "A",
            "B",
            "C",
        ]
        text = drawn.choice(words if drawn.random() < 0.9 else TEXTS)
        answer = {"key": row["key"], "response": text, "documents": drawn.sample(documents, 4)}
        if "suite" in row:
            answer["suite"] = row["suite"]
        if "options" in row:
            answer["options"] = row["options"]
        found.append(json.dumps(answer))
    if found and dice.random() < 0.1:
        found.pop(dice.randrange(len(found)))
    return "".join(f"{line}\n" for line in found)


def same(text: bytes, ignored: list[str]) -> bytes:
    """Leave out what names the checkout, its commit and its folder, timings, and what is ignored."""
    for each in [
        rb"\b[0-9a-f]{40}\b",
        rb"/(before|after)/",
        rb"about [0-9.]+ s each",
        *map(str.encode, ignored),
    ]:
        text = re.sub(each, b"-", text)
    return text


def differences(before: Path, after: Path, ignored: list[str], skipped: list[str]) -> list[str]:
    """Return the files that differ, by name; those of a skipped name are not compared."""
    names = {
        path.relative_to(tree) for tree in (before, after) for path in tree.rglob("*")
        if path.is_file() and not {"cache", "data"} & set(path.parts)
        and not any(map(path.match, skipped))
    }  # fmt: skip
    found = []
    for name in sorted(names):
        sides = [
            same((tree / name).read_bytes(), ignored) if (tree / name).is_file() else None
            for tree in (before, after)
        ]
        if sides[0] != sides[1]:
            found.append(str(name))
    return found


def call(workers: dict[str, subprocess.Popen], run: Path, calls: list[list[str]]) -> None:
    """Have both checkouts make these calls in their folders of a run."""
    for side, worker in workers.items():
        worker.stdin.write(json.dumps([str(run / side), calls]) + "\n")
        worker.stdin.flush()
    for side, worker in workers.items():
        if not worker.stdout.readline():
            sys.exit(f"the process of {side} ended in {run}")


def options_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, metavar="OTHER")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--ignore", action="append", default=[], metavar="REGEX")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="*.md, say")
    parser.add_argument("--minutes", type=float, default=math.inf)
    return parser.parse_args()


def main() -> int:
    options = options_given()
    trees = {"before": options.other.resolve(), "after": Path(__file__).parents[1]}
    place = options.keep or Path(tempfile.mkdtemp(prefix="compare-"))
    workers = {
        side: subprocess.Popen(
            [tree / ".venv/bin/python", "-c", WORK, tree],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for side, tree in trees.items()
    }

    codes: dict[str, int] = {}
    wrong, began = 0, time.monotonic()
    for number in range(options.first, options.first + options.runs):
        if time.monotonic() - began > 60 * options.minutes:
            break
        dice = random.Random(number)
        text = json.dumps(policy(dice, number, options.data), indent=1)
        for side in workers:
            folder = place / str(number) / side
            folder.mkdir(parents=True)
            (folder / "policy.yaml").write_text(text)
            (folder / "answers.jsonl").touch()
            for name in DATA if options.data else []:
                (folder / "data").mkdir(exist_ok=True)
                (folder / "data" / Path(name).name).write_bytes((options.data / name).read_bytes())
        call(workers, place / str(number), CALLS[1:2])
        plan = (place / str(number) / "before/0.out").read_text()
        for name, calls, bias in [
            ("first", CALLS, 0.1),
            ("then", AFTER, dice.choice([0.1, 0.3, 0.7])),
        ]:
            told = answers(plan, dice, bias)
            for side in workers:
                (place / str(number) / side / "answers.jsonl").write_text(told)
            call(workers, place / str(number), calls)
            for side in workers:
                folder = place / str(number) / side
                for path in folder.glob("[0-9].*"):
                    path.rename(folder / f"{name}-{path.name}")
        before = place / str(number) / "before"
        ends = " ".join(
            (before / f"{name}-{at}.exit").read_text()
            for name, calls in [("first", CALLS), ("then", AFTER)]
            for at in range(len(calls))
        )
        codes[ends] = codes.get(ends, 0) + 1
        found = differences(before, place / str(number) / "after", options.ignore, options.skip)
        if found:
            wrong += 1
            print(f"run {number} ({ends}): {', '.join(found)}", flush=True)
        elif not options.keep:
            shutil.rmtree(place / str(number))
    for worker in workers.values():
        worker.stdin.close()
    for ends, count in sorted(codes.items(), key=lambda item: -item[1]):
        print(f"{count:4} runs with the exit codes {ends}")
    print(
        f"{sum(codes.values())} runs, {wrong} with a difference"
        + (f", left in {place}" if wrong else "")
    )
    return min(wrong, 1)


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.exit(main())
