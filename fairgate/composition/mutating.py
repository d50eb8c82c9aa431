"""What `fairgate mutate` works on, put together from files; the run's folder is only read."""

from __future__ import annotations

from pathlib import Path

from fairgate.composition.accepted_runs import locate_references
from fairgate.composition.building import Composition
from fairgate.composition.run_folder import earlier_run, replay
from fairgate.domain.runtime import Runtime
from fairgate.engine.mutation_test import MutationTest
from fairgate.engine.ports import SILENT


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
