"""How a worker of a run opens the models that it is asked for."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path

from fairgate import __version__
from fairgate.domain.errors import UsageError
from fairgate.domain.ports import SILENT
from fairgate.domain.runtime import Runtime
from fairgate.features.ray.worker_side import Model, WorkerSide
from fairgate.io.environment import OPTIONAL, describe_environment, libraries_of_answers
from fairgate.systems.onnx_generator import GeneratorPolicy, open_here
from fairgate.systems.resources import Resources


def worker_side(threads: int) -> WorkerSide:
    """Return what a worker does, whose models use so many threads."""

    def opened(name: str) -> Model:
        """Open what `named_for_workers` names: a folder of a model, and never code."""
        found = json.loads(name)
        _require_alike({"fairgate": found["fairgate"], **found.get("libraries", {})})
        how = found["runtime"]
        root, cache = Path(how.pop("root")), Path(how.pop("cache"))
        runtime = Runtime(**how, root=root, cache=cache, threads=threads)
        chosen = GeneratorPolicy.model_validate(found["generator"])
        return open_here(chosen, Resources(runtime, SILENT))

    return WorkerSide(opened, lambda: describe_environment("cpu"))


def _require_alike(run: Mapping[str, str]) -> None:
    """Raise UsageError where what computes answers has another version here than in the run.

    What is optional is compared where both have it: a model that needs it says so itself. What else
    decides an answer is in the model's fingerprint, which `WorkerSide` compares. The processor is
    not compared: machines that are not alike are named in the record.
    """
    here = {"fairgate": __version__, **libraries_of_answers()}
    on_one_side = here.keys() ^ run.keys()
    differing = [
        f"{name} {here.get(name, 'is not installed')} (the run: {run.get(name, 'not installed')})"
        for name in sorted({*here, *run} - (OPTIONAL & on_one_side))
        if here.get(name) != run.get(name)
    ]
    if differing:
        raise UsageError(
            f"the worker on {platform.node()} has other versions than the run: "
            f"{', '.join(differing)}; answers may depend on them: install the same versions on "
            "every machine"
        )
