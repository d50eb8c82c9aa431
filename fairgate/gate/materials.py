"""The data that suites name, from embedded files, paths and the hub; problems keep their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fairgate.domain.cases import Source, Task
from fairgate.domain.errors import DataError, PolicyError, Problem, UsageError
from fairgate.domain.executions import CorpusSpec
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Columns
from fairgate.io.embedded_names import find
from fairgate.io.hub import fetch_dataset, fetch_table
from fairgate.policy.attribute_files import known_dimensions
from fairgate.policy.named_files import load_task, task_from_policy, unknown_wordings
from fairgate.policy.parse import ParsedPolicy, problem
from fairgate.policy.perturbation_files import collect_perturbation_sets
from fairgate.relations.perturbation_sets import PerturbationSet
from fairgate.suites.metamorphic.policy import TaskPolicy
from fairgate.suites.metamorphic.sources import read_source_files, read_sources
from fairgate.suites.question_items.stances import check_collections, stance_files
from fairgate.systems.corpora import find_table, named_on_hub

if TYPE_CHECKING:
    from fairgate.domain.cases import Classifier
    from fairgate.suites.metamorphic.policy import ClassifierPolicy
    from fairgate.suites.question_items.policy import ItemsPolicy
    from fairgate.suites.suite import Items

Loaded = TypeVar("Loaded")


@dataclass(frozen=True, slots=True)
class SuiteMaterials:
    """Reads what one suite names. Implements `suites.suite.Materials`."""

    parsed: ParsedPolicy
    position: int
    """Of the suite in the policy."""
    runtime: Runtime
    problems: list[Problem]
    """Everything that is wrong, with its place in the policy or in a file."""

    def task(self, named: str | TaskPolicy) -> Task | None:
        """Return an embedded task, a task file, or one written in the policy."""
        runtime = self.runtime
        opens = partial(_opened, runtime)
        if isinstance(named, TaskPolicy):
            return self.attempt("task", lambda: task_from_policy(named, opens))
        return self.attempt(
            "task", lambda: load_task(named, opens, folder=runtime.root, confined=runtime.confined)
        )

    def sources(
        self, named: str | Columns, limit: int | None, attributes: Sequence[str] = ()
    ) -> Sequence[Source] | None:
        """Return the sources of a table, with embedded attributes and those of the named files."""
        columns = Columns(path=named) if isinstance(named, str) else named

        def read() -> Sequence[Source]:
            path = find_table("sources", columns.path, self.runtime)
            spec = CorpusSpec(path=str(path), id=columns.id, text=columns.text, label=columns.label)
            if path.is_dir():
                files = [str(file) for file in sorted(path.glob("*.jsonl"))]
                return read_source_files(files, spec, limit)
            own = partial(
                known_dimensions,
                attributes,
                folder=self.runtime.root,
                confined=self.runtime.confined,
            )
            if attributes:
                own()  # wrong files are told, whether the sources need them or not
            return read_sources(spec, limit, own)

        return self.attempt("sources", read)

    def perturbation_sets(
        self, names: Sequence[str], control: str
    ) -> Sequence[PerturbationSet] | None:
        """Return the sets in the order named, the control arm's last."""
        found = collect_perturbation_sets(
            names, control, folder=self.runtime.root, confined=self.runtime.confined
        )
        self.problems.extend(found.problems)
        self.problems.extend(
            problem(self.parsed, ("suites", self.position, *place), sentence)
            for place, sentence in found.misfits
        )
        return None if found.problems or found.misfits else found.sets

    def items(self, named: str | ItemsPolicy, categories: Sequence[str] | None) -> Items | None:
        """Return question items and what was left out."""
        from fairgate.suites.question_items.item_files import ItemFiles, read_items
        from fairgate.suites.question_items.policy import ItemsPolicy
        from fairgate.suites.suite import Items

        chosen = ItemsPolicy(path=named) if isinstance(named, str) else named

        def read() -> Items:
            metadata = None
            if chosen.metadata is not None:
                metadata = str(located("items", chosen.metadata, self.runtime))
            files = ItemFiles(
                path=str(located("items", chosen.path, self.runtime)),
                format=chosen.format,
                metadata=metadata,
                categories=categories,
            )
            found = read_items(files, unknown_wordings())
            return Items(items=found.items, excluded=found.excluded)

        return self.attempt("items", read)

    def unknown_wordings(self) -> tuple[str, ...]:
        """Return the wordings of "unknown", in every language."""
        return tuple(unknown_wordings())

    def check_collections(self, names: Sequence[str], settings: Sequence[str], depth: int) -> None:
        """Read every collection once, so that a missing stance is reported early."""
        self.attempt(
            "collections",
            lambda: check_collections(collection_paths(names, self.runtime), settings, depth),
        )

    def attempt(self, field: str, load: Callable[[], Loaded]) -> Loaded | None:
        """Return what `load` gives; report at the suite's field what it raises."""
        try:
            return load()
        except PolicyError as error:
            self.problems.extend(error.problems)
        except (DataError, UsageError) as error:
            place = ("suites", self.position, field)
            self.problems.append(problem(self.parsed, place, str(error)))
        return None


def _opened(runtime: Runtime, named: ClassifierPolicy, allowed: Sequence[str] | None) -> Classifier:
    from fairgate.systems.classifiers import open_classifier  # most tasks have none

    return open_classifier(runtime, named, allowed)


def located(kind: str, name: str, runtime: Runtime) -> Path:
    """Return an embedded file, a user's file, or the folder of a Hugging Face data set."""
    hub = named_on_hub(name, runtime)
    if hub is not None:
        return fetch_table(*hub) if hub[1] else fetch_dataset(hub[0])
    return find(kind, name, runtime.root, confined=runtime.confined)


def collection_paths(names: Sequence[str], runtime: Runtime) -> list[str]:
    """Return the files of collections. Raises DataError."""
    tested = runtime.under_test
    return stance_files([str(located("collections", name, tested)) for name in names])
