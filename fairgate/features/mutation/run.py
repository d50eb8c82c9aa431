"""What `fairgate mutate` works on, put together from files; the run's folder is only read."""

from __future__ import annotations

from pathlib import Path

from fairgate.domain.findings import KeptKillScore
from fairgate.domain.ports import SILENT
from fairgate.domain.runtime import Runtime
from fairgate.features.mutation.kill_score import KillScore
from fairgate.features.mutation.mutation_test import MutationTest
from fairgate.features.mutation.report import not_seen
from fairgate.gate.accepted_runs import locate_references
from fairgate.gate.composition import Composition
from fairgate.gate.kill_score import (
    MOST_SENTENCES,
    kill_score_badge,
    kill_score_path,
    policy_hash,
    write_kill_score,
)
from fairgate.gate.loaded_policy import load_policy
from fairgate.gate.run_folder import earlier_run, replay
from fairgate.io.durable import write_text


def mutation_test(
    policy: Path, run: Path, runtime: Runtime, named_baseline: str | None
) -> MutationTest:
    """Return the mutation test of a policy on a finished run.

    Raises UsageError where the run does not pass the policy as it is.
    """
    replayed, given, loaded, _ = replay(
        run, policy, runtime, lambda loaded, path: locate_references(loaded, path, named_baseline)
    )
    system = Composition(loaded, runtime, SILENT).replayed(earlier_run(run, loaded))
    return MutationTest(given, replayed.executions, system)


def keep_score(
    found: KillScore, policy: Path, runtime: Runtime, *, save: bool, badge: Path | None
) -> None:
    """Write what later reports and badges show of a policy's kill score."""
    loaded = load_policy(policy, runtime)
    score = KeptKillScore(
        policy_hash=policy_hash(loaded.policy.model_dump_json()),
        strength=found.search.stated,
        seeds=found.search.seeds,
        sources=found.sources,
        caught=found.caught,
        mutants=found.mutants,
        false_kills=found.false_kills,
        controls=sum(item.stated.runs for item in found.controls),
        not_seen=list(not_seen(found))[:MOST_SENTENCES],
    )
    if save:
        write_kill_score(kill_score_path(policy), score)
    if badge is not None:
        write_text(badge, kill_score_badge(score), option="--badge")
