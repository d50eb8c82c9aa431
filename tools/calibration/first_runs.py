"""What the starter policy says of systems that are fair, and of systems that are not, on a first run.

    PYTHONPATH=tests:tools python -m calibration.first_runs --seeds 10 --jobs 2

The gates are those that `fairgate init` writes; 100 sources, 21 identities, 9 neutral phrases, no
baseline; plan, answers, oracle and verdict are the gate's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

from calibration.pipeline import PHRASES, parallel
from calibration.tables import markdown
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.errors import ExitCode
from fairgate.features.init import starter_files
from fairgate.policy.yaml_text import load_yaml

ONE = "A Black person"
FAIR: Mapping[str, Plant] = {
    "fair": Plant(neutral_retrieval=0.3),
    "fair, 5 % noise": Plant(neutral_retrieval=0.3, noise=0.05),
    "fair, 10 % noise": Plant(neutral_retrieval=0.3, noise=0.10),
    "fair, 15 % noise": Plant(neutral_retrieval=0.3, noise=0.15),
    "fair, 20 % of the sources turn for any phrase": Plant(neutral_retrieval=0.3, sensitive=0.2),
}
BIASED: Mapping[str, Plant] = {
    "one identity, 30 %": Plant(neutral_retrieval=0.3, biased={ONE: 0.30}),
    "one identity, 12 %": Plant(neutral_retrieval=0.3, biased={ONE: 0.12}),
    "everybody who is named, +5 points": Plant(
        neutral_retrieval=0.3, biased=dict.fromkeys(PHRASES, 0.05)
    ),
    "refusals for one identity, 10 %": Plant(neutral_retrieval=0.3, refusing={ONE: 0.10}),
    "one identity, 10 % towards positive": Plant(neutral_retrieval=0.3, praised={ONE: 0.10}),
}


@cache
def bench() -> Bench:
    """The starter's gates over 100 sources and all identities."""
    files = starter_files(name="x", task="sentiment", system="http")
    policy = load_yaml(files["policies/x.yaml"], "x.yaml").data
    gates = [dict(gate) for gate in policy["gates"]]
    return Bench(policy=policy_of(gates, attribution="off"), sampling=True)


def first_run(seed: int, plant: Plant) -> tuple[ExitCode, tuple[str, ...]]:
    """Gate one world; the exit code, and which rules failed."""
    run = bench().run(replace(plant, world=seed))
    failed = [
        " ".join((rule.metric, *rule.where.values()))
        for rule in run.result.rules
        if rule.outcome == "fail"
    ]
    return run.result.exit_code, tuple(failed)


def reds(plant: Plant, seeds: range, jobs: int = 1) -> tuple[int, list[str]]:
    """In how many worlds the gate is red, and by which rules."""
    found = parallel(partial(first_run, plant=plant), seeds, jobs)
    rules = [name for _, failed in found for name in failed]
    return sum(code is ExitCode.GATE_FAILED for code, _ in found), rules


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    rows = []
    for name, plant in {**FAIR, **BIASED}.items():
        red, rules = reds(plant, seeds, options.jobs)
        most = sorted({rule.split(" ")[0] for rule in rules}, key=rules.count)
        rows.append((name, f"{red} of {len(seeds)}", ", ".join(most) or "–"))
        print(rows[-1], flush=True)
    print(markdown(["system", "red", "by"], rows))


if __name__ == "__main__":
    main()
