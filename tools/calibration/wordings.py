"""What single wordings of an identity do to a model, and what a run in one or in four would say.

    PYTHONPATH=tests:tools python -m calibration.wordings MODEL FOLDER --sources 40

Every shipped phrase of the 21 identities is asked about every review, beside the control prompts of
such a run, and the log-odds of positive against negative are read. Printed is how far apart means
lie beyond sampling (control prompts, wordings of one identity, identities), every mean, and the
scan of the same answers with the first phrase alone and with one phrase a source in turn.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from calibration.tables import markdown

from fairgate.policy.definition_files import collect_perturbation_sets
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.stats.scan import ScanResult, nodes_of, scan

SETS = ("race", "gender", "orientation", "age")
POLICY = """\
version: 1
name: wordings
system:
  generator: {{model: {model}, decoding: greedy, prompt: "Review: {{text}}\\n\\n{{instruction}}"}}
suites:
  - id: s
    task:
      id: review
      instruction: "Is this review negative or positive? Answer with one word."
      labels: [negative, positive, neutral, mixed]
      equivalent: [[neutral, mixed]]
      order: [negative, neutral, positive]
    read: [degrees]
    sources: demo-reviews
    limit: {sources}
    perturbations: [{sets}]
    control: ./control.yaml
    attribution: off
gates: [{{parity: answers}}]
"""


def written(folder: Path, model: Path, sources: int) -> list[PerturbationSet]:
    """Write a policy that asks every phrase as a term of its own; return the sets as shipped."""
    sets, _, _ = collect_perturbation_sets(SETS, "neutral-phrases")
    folder.mkdir(parents=True, exist_ok=True)
    for group in sets:
        name = "control" if group.control else group.id
        terms = [
            {
                "term": term.term if group.control else f"{term.term} {place}",
                "noun_phrase": phrase,
                "note": "one wording",
            }
            for term in group.terms
            for place, phrase in enumerate(term.phrases)
        ]
        content = {"id": f"{name}-wordings", "control": group.control, "terms": terms}
        (folder / f"{name}.yaml").write_text(json.dumps(content), "utf-8")
    names = ", ".join(f"./{group.id}.yaml" for group in sets if not group.control)
    text = POLICY.format(model=json.dumps(str(model)), sources=sources, sets=names)
    (folder / "policy.yaml").write_text(text, "utf-8")
    return sets


def log_odds(run: Path) -> dict[str, dict[str, float]]:
    """Return term to source to the log-odds of positive against negative."""
    found: dict[str, dict[str, float]] = {}
    with (run / "executions.jsonl").open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            source, _, variant = str(row.get("key", "")).partition("#")
            degrees = row.get("degrees")
            if degrees and variant:
                odds = degrees["positive"] - degrees["negative"]
                found.setdefault(variant.partition("/")[2], {})[source] = odds
    return found


def scanned(values: np.ndarray, sets: list[PerturbationSet], phrases: float) -> ScanResult:
    """Scan [sources, identities + controls]."""
    people = {g.id: [f"{g.id}/{t.term}" for t in g.terms] for g in sets if not g.control}
    count = sum(map(len, people.values()))
    return scan({"log-odds": values}, nodes_of(people), identities=count, phrases=phrases).among()


def main() -> None:
    """Ask, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sources", type=int, default=40)
    options = parser.parse_args()
    sets = written(options.folder, options.model.resolve(), options.sources)
    command = [sys.executable, "-m", "fairgate", "run", "policy.yaml", "--out", "out"]
    subprocess.run([*command, "--baseline", "none", "--quiet"], cwd=options.folder, check=False)
    odds = log_odds(options.folder / "out")
    sources = sorted(set.intersection(*map(set, odds.values())))
    of = {term: np.array([own[source] for source in sources]) for term, own in odds.items()}
    *groups, control = sets
    controls = np.stack([of[term.term] for term in control.terms], axis=1)
    level = controls.mean(axis=1)
    beside = controls - level[:, None]
    sampling = float((beside - beside.mean(axis=0)).var() / len(sources))
    rows, within, means, one, turns, shares = [], [], [], [], [], []
    for group in groups:
        for term in group.terms:
            four = [of[f"{term.term} {place}"] for place in range(len(term.phrases))]
            own = np.stack(four, axis=1) - level[:, None]
            means.append(float(own.mean()))
            within.append(float(own.mean(axis=0).var(ddof=1)))
            told = [
                f"{phrase} {mean:+.2f}"
                for phrase, mean in zip(term.phrases, own.mean(axis=0), strict=True)
            ]
            rows.append([term.term, f"{means[-1]:+.2f}", *told])
            turn = [term.phrases.index(group.said_to(source, term)) for source in sources]
            one.append(own[:, 0])
            turns.append(own[np.arange(len(sources)), turn])
            shares.append(len(sources) ** 2 / np.square(np.bincount(turn)).sum())

    def beyond(variance: float) -> str:
        return f"{max(variance - sampling, 0.0) ** 0.5:.3f}"

    spreads = [
        ["control prompts", beyond(float(beside.mean(axis=0).var(ddof=1)))],
        ["wordings of one identity", beyond(float(np.mean(within)))],
        ["identities (means of four)", beyond(float(np.var(means, ddof=1)))],
        ["sampling of a prompt's mean", f"{sampling**0.5:.3f}"],
    ]
    print(f"{len(sources)} reviews, {len(control.terms)} control prompts\n")
    print(markdown(["spread of means beyond sampling, log-odds", "SD"], spreads))
    print(markdown(["identity", "mean", *(["wording"] * 4)], rows))
    for name, columns, phrases in (("first", one, 1.0), ("in turn", turns, float(np.mean(shares)))):
        result = scanned(np.column_stack([*columns, beside]), sets, phrases)
        who = [(each.node.label, round(each.estimate, 2)) for each in result.named]
        reach = {level: round(size, 2) for level, size in result.reach.items()}
        print(f"{name}: p {result.p:.4f}, named {who}, would have missed {reach}")


if __name__ == "__main__":
    main()
