"""How a worker of a run opens the models that it is asked for."""

from __future__ import annotations

import json
import platform
from pathlib import Path

from fairgate import __version__
from fairgate.adapters.environment import describe_environment
from fairgate.domain.errors import UsageError
from fairgate.domain.runtime import Runtime
from fairgate.engine.ports import SILENT
from fairgate.engine.worker_side import Model, WorkerSide
from fairgate.systems.onnx_generator import GeneratorPolicy, open_here
from fairgate.systems.resources import Resources


def worker_side(threads: int) -> WorkerSide:
    """Return what a worker does, whose models use so many threads."""

    def opened(name: str) -> Model:
        """Open what `named_for_workers` names: a folder of a model, and never code."""
        found = json.loads(name)
        if found["fairgate"] != __version__:
            raise UsageError(
                f"the worker on {platform.node()} has FairGate {__version__}, this run is of "
                f"{found['fairgate']}; install the same version on every machine"
            )
        how = found["runtime"]
        root, cache = Path(how.pop("root")), Path(how.pop("cache"))
        runtime = Runtime(**how, root=root, cache=cache, threads=threads)
        chosen = GeneratorPolicy.model_validate(found["generator"])
        return open_here(chosen, Resources(runtime, SILENT))

    return WorkerSide(opened, lambda: describe_environment("cpu"))
