"""Relations in a Python file of the user's own: imported, checked by their examples, and held.

The file runs with all the rights of whoever names it, so only the command line names one, never a
policy. Its hash is a part of what baselines must match.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

from fairgate.domain.cases import Source
from fairgate.domain.errors import UsageError
from fairgate.domain.wording import harmless, listed, quoted, shown
from fairgate.relations.catalogue import CODE_OF, RELATIONS
from fairgate.relations.guarded import Guarded, code_of_the_user
from fairgate.relations.linter import Linter
from fairgate.relations.relation import Example, MetamorphicRelation, NotApplicable

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,40}/[a-z0-9][a-z0-9-]{0,60}")
_METHODS = (
    "oracle", "asks", "source_text", "follow_ups", "most_follow_ups", "fault", "expected", "claims",
)  # fmt: skip


@contextmanager
def own_relations(path: Path) -> Iterator[None]:
    """Hold the relations of a file in the catalogue for a while.

    Raises UsageError for a file that cannot be imported, holds no relations, or whose relations
    lack something, are called like others, or do not do what their examples say.
    """
    module, code = _imported(path)
    found = getattr(module, "RELATIONS", None)
    if not isinstance(found, tuple | list) or not found:
        raise UsageError(
            f"{path}: `RELATIONS` is {shown(found)}; expected a tuple of relations, such as "
            "`RELATIONS = (Mine(),)`"
        )
    with ExitStack() as held:
        for number, relation in enumerate(found):
            place = f"{path}: RELATIONS[{number}]"
            fault = _fault(relation, place)
            if fault is not None:
                raise UsageError(f"{place} {harmless(fault)}")
            held.enter_context(RELATIONS.added(_guarded(relation, path)))
            CODE_OF[relation.id] = code
            held.callback(CODE_OF.pop, relation.id)
        yield


def _guarded(relation: MetamorphicRelation, path: Path) -> MetamorphicRelation:
    """Return the relation, whose faults name the file and, as far as it is known, the line."""

    def where(error: BaseException | None) -> str:
        return str(path) if error is None else f"{path}:{_line(error, path)}"

    return cast("MetamorphicRelation", Guarded(relation, where))


def _imported(path: Path) -> tuple[ModuleType, str]:
    """Return the file as a module, and its hash."""
    code = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
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


def _fault(relation: object, place: str) -> str | None:
    """Return what a relation lacks, or what it does otherwise than it says."""
    fields = [*MetamorphicRelation.__annotations__, *_METHODS]
    missing = [name for name in fields if not hasattr(relation, name)]
    if missing:
        return f"lacks {listed(missing, last='and')}; see `fairgate.relations.relation`"
    fault = _id_fault(relation.id)  # type: ignore[attr-defined]
    if fault is not None:
        return fault
    examples = relation.EXAMPLES  # type: ignore[attr-defined]
    if not isinstance(examples, tuple | list) or not examples:
        return "has no EXAMPLES; give one at least, it is run before anything is asked"
    with code_of_the_user(lambda _, words: f"{place} fails on its example: {words}"):
        faults = (_example_fault(relation, each) for each in examples)  # type: ignore[arg-type]
        return next(filter(None, faults), None)


def _id_fault(name: object) -> str | None:
    if not isinstance(name, str) or _ID.fullmatch(name) is None:
        return f"has the id {shown(name)}; expected a family and a name, such as own/written-by"
    if name in RELATIONS:
        return f"has the id {quoted(name)}, which another one has already"
    family = name.partition("/")[0]
    shipped = {each.partition("/")[0] for each in RELATIONS.ids if each not in CODE_OF}
    if family in shipped:
        return f"has the id {quoted(name)}, of a shipped family; name a family of your own"
    return None


def _example_fault(relation: MetamorphicRelation, example: Example) -> str | None:
    source = Source(
        id="s1", text=example.text, pair=example.pair, frame=example.frame,
        attributes=example.attributes,
    )  # fmt: skip
    own = relation.source_text(source)
    if own != example.source:
        return f"puts {quoted(own)} for its example's source, not {quoted(example.source)}"
    found = relation.follow_ups(source, example.sets)
    if isinstance(found, NotApplicable):
        return f"does not apply to its example: {found.reason}"
    texts = [each.text for each in found]
    if texts != list(example.follow_ups):
        return f"makes the follow-ups {shown(texts)} of its example, which says otherwise"
    if len(found) > relation.most_follow_ups(source, example.sets):
        return "makes more follow-ups of its example than `most_follow_ups` says"
    refused = next(filter(None, Linter(relation.fault, example.sets).rejections(own, found)), None)
    return f"has an example that its own `fault` refuses: {refused}" if refused else None
