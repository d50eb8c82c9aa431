"""Relations in a Python file of the user's own: imported, checked by their examples, and held.

The file runs with all the rights of whoever names it, so only the command line names one, never a
policy. Its hash is a part of what baselines must match. What is asked of its relations and of their
oracles is passed on unchanged, and so is what they return; whatever they raise, or return in
another form, is an error that names the place (`Guarded`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import math
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from fairgate.domain.cases import Source, Task
from fairgate.domain.errors import FairGateError, UsageError
from fairgate.domain.units import Reading, Reason
from fairgate.domain.wording import harmless, listed, quoted, shown
from fairgate.io.tables import read_whole
from fairgate.metrics.columns import PoolColumns
from fairgate.relations.catalogue import CODE_OF, RELATIONS
from fairgate.relations.linter import Linter
from fairgate.relations.oracles.oracle import Oracle
from fairgate.relations.relation import Example, FollowUp, MetamorphicRelation, NotApplicable

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,40}/[a-z0-9][a-z0-9-]{0,60}")
_TEXTS = ("variant", "category", "term", "text", "noun_phrase", "inapplicable", "opening")
_COMPARED = ("generation", "controlled")


@contextmanager
def own_relations(path: Path) -> Iterator[None]:
    """Register the relations of a file in the catalogue for the length of a block.

    Raises UsageError for a file that cannot be imported, holds no relations, or whose relations
    lack something, are called like others, or do not do what their examples say.
    """
    module, code = _imported(path)
    listed_relations = getattr(module, "RELATIONS", None)
    if not isinstance(listed_relations, tuple | list) or not listed_relations:
        raise UsageError(
            f"{path}: `RELATIONS` is {shown(listed_relations)}; expected a tuple of relations, "
            "such as `RELATIONS = (Mine(),)`"
        )
    with ExitStack() as additions:
        for number, relation in enumerate(listed_relations):
            location = f"{path}: RELATIONS[{number}]"
            fault = _fault(relation, location)
            if fault is not None:
                raise UsageError(f"{location} {harmless(fault)}")
            additions.enter_context(
                RELATIONS.added(cast("MetamorphicRelation", Guarded(relation, path)))
            )
            CODE_OF[relation.id] = code
            additions.callback(CODE_OF.pop, relation.id)
        yield


def _imported(path: Path) -> tuple[ModuleType, str]:
    """Return the file as a module, and its hash."""
    code = hashlib.sha256(read_whole(path)).hexdigest()[:12]
    name = f"fairgate_own_relations_{code}"
    spec = importlib.util.spec_from_file_location(name, path)
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise UsageError(f"{path}: is no Python file; expected a name that ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module

    def message(error: BaseException, words: str) -> str:
        del sys.modules[name]
        return (
            f"{path}:{_line(error, path)}: cannot be imported ({words}); correct it, or leave out "
            "--relations"
        )

    with code_of_the_user(message):
        spec.loader.exec_module(module)
    return module, code


def _line(error: BaseException, path: Path) -> int:
    """Return the line of the file that an error comes from, 1 where it is not known."""
    if isinstance(error, SyntaxError):
        return error.lineno or 1
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).resolve() == path.resolve()]
    return (lines[-1] if lines else None) or 1


def _fault(relation: object, location: str) -> str | None:
    """Return a missing field of a relation, or a difference from its own declaration."""
    fields = [*MetamorphicRelation.__annotations__, *vars(MetamorphicRelation)]
    missing = [name for name in fields if not (name.startswith("_") or hasattr(relation, name))]
    if missing:
        return f"lacks {listed(missing, last='and')}; see `fairgate.relations.relation`"
    name = relation.id  # type: ignore[attr-defined]
    if not isinstance(name, str) or _ID.fullmatch(name) is None:
        return f"has the id {shown(name)}; expected a family and a name, such as own/written-by"
    if name in RELATIONS:
        return f"has the id {quoted(name)}, which another one has already"
    shipped = {id_.partition("/")[0] for id_ in RELATIONS.ids if id_ not in CODE_OF}
    if name.partition("/")[0] in shipped:
        return f"has the id {quoted(name)}, of a shipped family; name a family of your own"
    examples = relation.EXAMPLES  # type: ignore[attr-defined]
    if not isinstance(examples, tuple | list) or not examples:
        return "has no EXAMPLES; give one at least, it is run before anything is asked"
    with code_of_the_user(lambda _, words: f"{location} fails on its example: {words}"):
        faults = (_example_fault(relation, example) for example in examples)  # type: ignore[arg-type]
        return next(filter(None, faults), None)


def _example_fault(relation: MetamorphicRelation, example: Example) -> str | None:
    source = Source(
        id="s1", text=example.text, pairs=example.pairs, frame=example.frame,
        attributes=example.attributes, document=example.document,
    )  # fmt: skip
    own = relation.source_text(source)
    if own != example.source:
        return f"puts {quoted(own)} for its example's source, not {quoted(example.source)}"
    follow_ups = relation.follow_ups(source, example.sets)
    if isinstance(follow_ups, NotApplicable):
        return f"does not apply to its example: {follow_ups.reason}"
    texts = [follow_up.conversation for follow_up in follow_ups]
    if texts != list(example.follow_ups):
        return f"makes the follow-ups {shown(texts)} of its example, which says otherwise"
    if len(follow_ups) > relation.most_follow_ups(source, example.sets):
        return "makes more follow-ups of its example than `most_follow_ups` says"
    refused = next(
        filter(None, Linter(relation.fault, example.sets).rejections(own, follow_ups)), None
    )
    return f"has an example that its own `fault` refuses: {refused}" if refused else None


@contextmanager
def code_of_the_user(
    message: Callable[[BaseException, str], str], passed: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Run code of the user's: what it raises is an error of theirs, and ends nothing else.

    `message` makes the message of what was raised and of its words; `passed` are errors that are
    passed on as they are.
    """
    try:
        yield
    except passed:
        raise
    except (Exception, SystemExit) as error:
        words = f"{type(error).__name__}: {harmless(str(error)[:300])}"
        raise UsageError(message(error, words)) from error


class Guarded:
    """A relation of the user's, or an oracle of one: faults are reported with place and source."""

    def __init__(self, inner: MetamorphicRelation | Oracle, path: Path, owner: str = "") -> None:
        """Take what is guarded, and its file; an oracle's `owner` is a relation's id."""
        self._inner = inner
        self._path = path
        self._id = owner or inner.id
        self._before = "oracle()." if owner else ""

    def __getattr__(self, name: str) -> Any:
        """Return the relation's own attribute; a method is guarded."""
        value = getattr(self._inner, name)
        return partial(self._called, name, value) if inspect.ismethod(value) else value

    def oracle(self, task: Task | None) -> Oracle:
        """Return the oracle for the answers; one of the user's own is guarded, too."""
        inner = cast("MetamorphicRelation", self._inner)
        oracle = cast("Oracle", self._called("oracle", inner.oracle, task))
        is_shipped = type(oracle).__module__.startswith("fairgate.")
        return oracle if is_shipped else cast("Oracle", Guarded(oracle, self._path, self._id))

    @property
    def pool_columns(self) -> tuple[PoolColumns, ...]:
        """Columns that the user's relation computes; what their functions raise is an error."""
        return tuple(
            replace(columns, compute=partial(self._called, listed(columns.names), columns.compute))
            for columns in cast("MetamorphicRelation", self._inner).pool_columns
        )

    def _called(self, name: str, method: Callable[..., Any], *given: Any) -> Any:
        about = f" at the source {quoted(given[0].id)}" if _is_source(given) else ""
        called = f"`{self._before}{name}` of the relation {quoted(self._id)}"

        def message(error: BaseException, words: str) -> str:
            location = f"{self._path}:{_line(error, self._path)}"
            return f"{location}: {called} fails{about}: {words}; correct it"

        with code_of_the_user(message, passed=(FairGateError,)):
            result = method(*given)
            fault = _RETURNED[name](result) if name in _RETURNED else None
        if fault is not None:
            raise UsageError(f"{self._path}: {called} returns{about} {fault}")
        return result


def _is_source(given: Sequence[object]) -> bool:
    return bool(given) and isinstance(given[0], Source)


def _wrong_follow_ups(returned: object) -> str | None:
    if isinstance(returned, NotApplicable):
        return None
    if not isinstance(returned, list | tuple):
        return f"{shown(returned)}; expected a list of FollowUp, or NotApplicable"
    variants = set()
    for number, follow_up in enumerate(returned):
        if not isinstance(follow_up, FollowUp):
            return f"{shown(follow_up)} at place {number}; expected a FollowUp"
        for name in _TEXTS:
            if not isinstance(getattr(follow_up, name), str):
                value = shown(getattr(follow_up, name))
                return f"a FollowUp (place {number}) whose `{name}` is {value}; expected a text"
        if not follow_up.variant or follow_up.variant in variants:
            return (
                f"a FollowUp (place {number}) with the `variant` {quoted(follow_up.variant)}, "
                "which must not be empty and is another one's already; give each one of its own"
            )
        variants.add(follow_up.variant)
    return None


def _wrong_claims(returned: object) -> str | None:
    if not isinstance(returned, Mapping) or not set(_COMPARED) <= set(returned):
        return f"{shown(returned)}; expected a dict with `generation` and `controlled`"
    for name in _COMPARED:
        value = returned[name]
        is_number = isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1
        if not isinstance(value, Reason) and not is_number:
            return f"`{name}`: {shown(value)}; expected 0.0 to 1.0, or a Reason"
    return None


def _no(kind: type, wanted: str) -> Callable[[object], str | None]:
    return lambda value: None if isinstance(value, kind) else f"{shown(value)}; expected {wanted}"


_RETURNED: Mapping[str, Callable[[Any], str | None]] = {
    "oracle": lambda value: (
        None if hasattr(value, "read") else f"{shown(value)}; expected an Oracle"
    ),
    "source_text": _no(str, "a text"),
    "follow_ups": _wrong_follow_ups,
    "expected": _no(Reading, "a Reading"),
    "claims": _wrong_claims,
    "read": _no(Reading, "a Reading"),
}
"""What is wrong about what a method returned, by its name: what goes into a run's figures."""
