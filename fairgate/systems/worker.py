"""How a worker of a run opens the models that it is asked for."""

from __future__ import annotations

import json
import platform
from pathlib import Path

from fairgate import __version__
from fairgate.adapters.environment import describe_environment
from fairgate.domain.runtime import Runtime
from fairgate.engine.ports import SILENT, Generator
from fairgate.engine.worker_side import WorkerSide
from fairgate.systems.onnx_generator import GeneratorPolicy, open_here
from fairgate.systems.resources import Resources

NODE, VERSION = "node", "fairgate"
"""What a worker says about itself besides its libraries and processor."""


def worker_side(threads: int) -> WorkerSide:
    """Return what a worker does, whose models use so many threads."""

    def opened(name: str) -> Generator:
        """Open what `named_for_workers` names: a folder of a model, and never code."""
        found = json.loads(name)
        how = found["runtime"]
        root, cache = Path(how.pop("root")), Path(how.pop("cache"))
        runtime = Runtime(**how, root=root, cache=cache, threads=threads)
        chosen = GeneratorPolicy.model_validate(found["generator"])
        return open_here(chosen, Resources(runtime, SILENT))

    return WorkerSide(
        opened, {NODE: platform.node(), VERSION: __version__, **describe_environment("")}
    )
