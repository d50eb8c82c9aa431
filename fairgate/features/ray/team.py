"""The workers of a run: whether its policy has a model for them, and who starts them."""

from __future__ import annotations

from fairgate.domain.errors import UsageError
from fairgate.domain.runtime import Runtime
from fairgate.features.ray.workers import Executor, Team
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.systems.catalogue import kind_of


def team_for(loaded: LoadedPolicy, runtime: Runtime) -> Team | None:
    """Return the workers that a run asks for, none started yet; None where it asks for none.

    Raises UsageError where they would have nothing to do.
    """
    if runtime.workers is None:
        return None
    if not _runs_a_model(loaded):
        raise UsageError(
            f"--workers ask models that FairGate runs itself, and {loaded.parsed.path} has none: "
            "its answers are recorded, or asked from outside by one process, so that `budget`, "
            "`concurrency` and `per_second` hold for the whole run. Leave out --workers; more "
            "questions at once are asked with `concurrency`, on several machines with --shard"
        )
    if runtime.device != "cpu":
        raise UsageError(
            f"--workers are for --device cpu, and --device is {runtime.device}: one process keeps "
            "a GPU busy. Leave out one of them; several GPUs take a part of the run each with "
            "--shard"
        )
    return Team(_executor(runtime))


def _runs_a_model(loaded: LoadedPolicy) -> bool:
    from fairgate.systems.judges import JudgePolicy
    from fairgate.systems.onnx_generator import GeneratorPolicy

    policy = loaded.policy
    judges = policy.judge.generators if isinstance(policy.judge, JudgePolicy) else ()
    return kind_of(policy.system).runs_a_model(policy.system) or any(
        isinstance(one, GeneratorPolicy) for one in judges
    )


def _executor(runtime: Runtime) -> Executor:
    chosen = runtime.workers
    assert chosen is not None  # noqa: S101 - asked before
    from fairgate.features.ray.worker_side import worker_side

    if chosen.ray_address is not None:
        from fairgate.features.ray.ray_actors import RayActors

        return RayActors(chosen.count, runtime.threads, worker_side, chosen.ray_address)
    from fairgate.features.ray.worker_processes import WorkerProcesses

    return WorkerProcesses(chosen.count, runtime.threads, worker_side)
