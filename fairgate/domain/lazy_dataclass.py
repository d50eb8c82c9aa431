"""`dataclass` as in the standard library, with methods that are compiled when first called.

The standard library compiles up to six methods for each class when its module is imported. A run
whose answers are stored imports about 280 dataclasses and calls few of their methods: a tenth of
its processor time went there, a fifth of that of `fairgate check`. Here the standard library still
finds the fields and makes the slots, and `fields`, `replace`, `asdict`, `match`, pickles and type
checkers see the same class. Only `__init__`, `__eq__` and `__hash__` differ in when they are made.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The same decorator to type checkers and linters.
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 (makes it public)
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        kw_only: bool = False,
        eq: bool = True,
        order: bool = False,
    ) -> Any:
        """Do as `dataclasses.dataclass` does with these options.

        Classes that are ordered, or inherit from another dataclass, are left to it altogether.
        """

        def made(cls: type) -> type:
            if order or any(map(dataclasses.is_dataclass, cls.__bases__)):
                return dataclasses.dataclass(
                    cls, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, order=order
                )
            written = dict(cls.__dict__)
            cls = dataclasses.dataclass(
                cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
            )
            _add_methods(cls, written, frozen=frozen, slots=slots, eq=eq)
            return cls

        return made if cls is None else made(cls)


def _add_methods(cls: Any, written: dict[str, Any], *, frozen: bool, slots: bool, eq: bool) -> None:
    """Add what the class did not write itself, by the rules of the standard library."""
    parameters = cls.__dataclass_params__
    parameters.init = parameters.repr = True
    parameters.eq, parameters.frozen = eq, frozen
    if "__init__" not in written:
        _compile_later(cls, "__init__", _init_source)
    if "__repr__" not in written:
        cls.__repr__ = _repr
    if eq and "__eq__" not in written:
        _compile_later(cls, "__eq__", _eq_source)
    if eq and written.get("__hash__") is None:
        if frozen:
            _compile_later(cls, "__hash__", _hash_source)
        else:
            cls.__hash__ = None
    if frozen:
        _freeze(cls)
    if frozen and slots and "__getstate__" not in written:
        cls.__getstate__, cls.__setstate__ = _getstate, _setstate


def _compile_later(cls: Any, name: str, source_of: Callable[[Any, dict[str, Any]], str]) -> None:
    """Set a method that replaces itself by the compiled one when it is called."""

    def first(self: object, /, *values: Any, **named: Any) -> Any:
        return _compiled(cls, name, source_of)(self, *values, **named)

    first.__name__, first.__qualname__ = name, f"{cls.__qualname__}.{name}"
    setattr(cls, name, first)


def _compiled(
    cls: Any, name: str, source_of: Callable[[Any, dict[str, Any]], str]
) -> Callable[..., Any]:
    known: dict[str, Any] = {"__name__": cls.__module__}
    exec(source_of(cls, known), known)  # noqa: S102 (of names of fields alone, as dataclasses does)
    method: Callable[..., Any] = known[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, method)
    return method


def _init_source(cls: Any, known: dict[str, Any]) -> str:
    """Return the source of `__init__`; what it refers to is added to `known`.

    Slots are filled by their descriptors, in less time than `object.__setattr__` takes.
    """
    known |= {"_set": object.__setattr__, "_missing": MISSING}
    taken = [field for field in fields(cls) if field.init]
    places = [_parameter(field, known) for field in taken if not field.kw_only]
    named = [_parameter(field, known) for field in taken if field.kw_only]
    lines = []
    for field in fields(cls):
        place = cls.__dict__.get(field.name)
        has_slot = isinstance(place, types.MemberDescriptorType)
        value = _value_of(field, known, has_slot=has_slot)
        if value is None:
            continue
        if has_slot:
            known[f"_set_{field.name}"] = place.__set__
            lines.append(f"_set_{field.name}(self, {value})")
        else:
            lines.append(f"_set(self, {field.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    heads = ["self", *places, *(["*", *named] if named else [])]
    body = "\n ".join(lines or ["pass"])
    return f"def __init__({', '.join(heads)}):\n {body}\n"


def _parameter(field: Field[Any], known: dict[str, Any]) -> str:
    if field.default is not MISSING:
        known[f"_default_{field.name}"] = field.default
        return f"{field.name}=_default_{field.name}"
    return f"{field.name}=_missing" if field.default_factory is not MISSING else field.name


def _value_of(field: Field[Any], known: dict[str, Any], *, has_slot: bool) -> str | None:
    """Return the expression that a field is set to; None: its default stays in the class."""
    if field.default_factory is not MISSING:
        known[f"_make_{field.name}"] = field.default_factory
        fresh = f"_make_{field.name}()"
        return f"{fresh} if {field.name} is _missing else {field.name}" if field.init else fresh
    if field.init:
        return field.name
    if not has_slot or field.default is MISSING:
        return None
    known[f"_default_{field.name}"] = field.default
    return f"_default_{field.name}"


def _eq_source(cls: Any, known: dict[str, Any]) -> str:
    del known
    names = [field.name for field in fields(cls) if field.compare]
    mine, theirs = (_tuple_of(owner, names) for owner in ("self", "other"))
    return (
        "def __eq__(self, other):\n"
        " if other.__class__ is self.__class__:\n"
        f"  return {mine} == {theirs}\n"
        " return NotImplemented\n"
    )


def _hash_source(cls: Any, known: dict[str, Any]) -> str:
    del known
    hashed = [f.name for f in fields(cls) if (f.compare if f.hash is None else f.hash)]
    return f"def __hash__(self):\n return hash({_tuple_of('self', hashed)})\n"


def _tuple_of(owner: str, names: list[str]) -> str:
    return f"({''.join(f'{owner}.{name}, ' for name in names)})"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _freeze(cls: Any) -> None:
    names = frozenset(field.name for field in fields(cls))

    def __setattr__(self: object, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
