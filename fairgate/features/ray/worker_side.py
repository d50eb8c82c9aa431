"""What a worker does: open the models that tasks name, each once, and answer."""

from __future__ import annotations

import json
import platform
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from fairgate import __version__
from fairgate.domain.errors import ExitCode, FairGateError, ModelError, UsageError
from fairgate.domain.executions import GenerationRequest
from fairgate.domain.json_text import flat
from fairgate.domain.ports import SILENT, Generator, OptionScorer
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless, quoted
from fairgate.features.ray.workers import Asks, Reply, Way, reply_to, task_from
from fairgate.io.environment import OPTIONAL, describe_environment, libraries_of_answers
from fairgate.systems.generator import GeneratorPolicy, open_here
from fairgate.systems.resources import Resources

_FRAMES = 3
_MOST_CHARACTERS = 200
_SCORED_AT_ONCE = 64


class Model(Generator, Protocol):
    """A generator that says how it ran."""

    @property
    def notices(self) -> Sequence[str]:
        """Return what users should know so far; it grows."""
        ...


class WorkerSide:
    """Answers tasks one after the other; keeps every model that it has opened."""

    def __init__(
        self, open_model: Callable[[str], Model], machine: Callable[[], Mapping[str, str]]
    ) -> None:
        """Take what opens a model by its name, and what tells about this machine.

        Both are called when a task is answered, so that the run learns why they fail.
        """
        self._open = open_model
        self._machine = machine
        self._has_greeted = False
        self._models: dict[str, Model] = {}
        self._reported: Counter[str] = Counter()
        """How many notices of each model the run has."""

    def answer(self, task: str) -> Iterator[str]:
        """Yield the replies to a task, the last one says that it is done or failed.

        Raises nothing but what ends the process.
        """
        try:
            if not self._has_greeted:
                self._has_greeted = True
                yield reply_to(Reply(machine=self._machine()))
            asks, requests = _read(task)
            for position, value in self._answers(asks, requests):
                yield reply_to(Reply(position=position, value=value))
            yield reply_to(Reply(is_done=True, notices=self._new_notices(asks.model)))
        except GeneratorExit:
            raise
        except FairGateError as error:
            is_usage = error.exit_code == ExitCode.USAGE
            yield reply_to(Reply(failed=str(error), is_usage=is_usage))
        except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
            yield reply_to(Reply(crashed=redacted(error)))

    def _answers(
        self, asks: Asks, requests: Mapping[int, GenerationRequest]
    ) -> Iterator[tuple[int, object]]:
        model = self._model(asks)
        positions, asked = list(requests), list(requests.values())
        if asks.way is Way.GENERATE:
            for place, answer in model.generate(asked):
                yield positions[place], flat(answer)
            return
        for start in range(0, len(asked), _SCORED_AT_ONCE):
            part = slice(start, start + _SCORED_AT_ONCE)
            scores = cast("OptionScorer", model).score_options(asked[part])
            yield from zip(positions[part], scores, strict=True)

    def _new_notices(self, name: str) -> list[str]:
        notices = list(self._models[name].notices)[self._reported[name] :]
        self._reported[name] += len(notices)
        return notices

    def _model(self, asks: Asks) -> Model:
        if asks.model not in self._models:
            self._models[asks.model] = self._open(asks.model)
        model = self._models[asks.model]
        if model.fingerprint != asks.fingerprint:
            raise ModelError(f"the worker on {platform.node()} has {_difference(model, asks)}")
        return model


def _read(task: str) -> tuple[Asks, Mapping[int, GenerationRequest]]:
    """Return what a task asks. Raises UsageError where another FairGate has written it."""
    try:
        return task_from(task)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"the worker on {platform.node()} cannot read what this run asks ({redacted(error)}); "
            "expected the same version of FairGate everywhere: install it on every machine"
        ) from error


def _difference(model: Model, asks: Asks) -> str:
    """Return in words how a model differs from the run's: a fingerprint begins with its engine."""
    engine, wanted = (text.partition(":")[0] for text in (model.fingerprint, asks.fingerprint))
    if engine != wanted:
        return (
            f"the engine {quoted(engine)}, this run has {quoted(wanted)}; answers may depend on "
            "it: install the same build of FairGate on every machine"
        )
    return (
        "other files of the model than this run has under this name; expected the same "
        "everywhere: copy them, or name a folder that all machines share"
    )


def redacted(error: BaseException) -> str:
    """Return what an unexpected error was and where: no values of variables, no folders."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = ", ".join(f"{Path(one.filename).name}:{one.lineno} in {one.name}" for one in frames)
    message = harmless(str(error)[:_MOST_CHARACTERS])
    return f"{type(error).__name__}: {message}; at {places}"


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
