"""The lazy `dataclass` against the standard library's, over every option that it takes."""

import copy
import dataclasses
import functools
import itertools
import pickle
from typing import ClassVar

import pytest

from fairgate.domain import lazy_dataclass

OPTIONS = [
    {"frozen": frozen, "slots": slots, "kw_only": kw_only, "eq": eq}
    for frozen, slots, kw_only, eq in itertools.product((False, True), repeat=4)
]


def plain():
    class Kind:
        """One field with nothing, one with a default, one with a factory."""

        first: int
        second: str = "two"
        third: list[int] = dataclasses.field(default_factory=list)
        shared: ClassVar[int] = 7

    return Kind


def settings_of_fields():
    class Kind:
        """Fields with settings of their own."""

        first: int
        hidden: int = dataclasses.field(default=3, repr=False, compare=False)
        made: list[int] = dataclasses.field(init=False, default_factory=lambda: [1])
        given: int = dataclasses.field(init=False, default=5)
        last: tuple[int, ...] = dataclasses.field(default=(), hash=False, kw_only=True)

    return Kind


def own_methods():
    class Kind:  # noqa: PLW1641 (without a hash, to see what becomes of it)
        """Methods that the class writes itself stay."""

        first: int
        second: int = 0

        def __post_init__(self):
            if self.first < 0:
                raise ValueError(self.first)

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return NotImplemented

    return Kind


def no_fields():
    class Kind:
        """Nothing at all."""

    return Kind


CALLS = [
    ((), {}),
    ((1,), {}),
    ((-1,), {}),
    ((1, "x"), {}),
    ((), {"first": 1}),
    ((), {"first": 1, "last": (2,)}),
    ((), {"first": 1, "third": [4]}),
    ((), {"first": 1, "unknown": 2}),
    ((1, 2, 3, 4, 5, 6), {}),
    ((), {"first": 1, "made": [2]}),
    ((), {"first": 1, "given": 2}),
]


def outcome(call):
    try:
        return "returned", call()
    except Exception as error:  # noqa: BLE001 - what is compared
        return type(error), str(error)


def changed(item, name):
    """Return what setting and deleting come to.

    The standard library's class with slots refuses what is no field by a TypeError about `super`:
    there, only that it is refused is compared.
    """
    calls = (
        lambda: setattr(copy.copy(item), name, 9),
        lambda: delattr(copy.copy(item), name),
    )
    found = [outcome(call) for call in calls]
    is_field = name in {field.name for field in dataclasses.fields(item)}
    return found if is_field else [kind == "returned" for kind, _ in found]


def described(kind, values, named):
    """Return all that can be seen of an instance, without anything that names its class object."""
    made, item = outcome(lambda: kind(*values, **named))
    if made != "returned":
        return made, item
    other = kind(*values, **named)
    state = {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
    return [
        repr(item),
        state,
        item == other,
        item == object(),
        kind.__eq__(item, 3),
        outcome(lambda: hash(item) == hash(other)),
        changed(item, "first"),
        changed(item, "stranger"),
        repr(copy.deepcopy(item)),
        outcome(lambda: dataclasses.asdict(item)),
        outcome(lambda: repr(dataclasses.replace(item, first=2))),
        kind.__match_args__,
        [(f.name, f.kw_only, f.init) for f in dataclasses.fields(kind)],
        repr(kind.__dataclass_params__),
        kind.__hash__ is None,
        kind.__doc__,
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", [plain, settings_of_fields, own_methods, no_fields])
def test_a_class_is_as_the_standard_library_makes_it(shape, options):
    for values, named in CALLS:
        # A class of its own for each call: the first call of a method is the special one.
        ours = lazy_dataclass.dataclass(**options)(shape())
        theirs = dataclasses.dataclass(**options)(shape())
        assert described(ours, values, named) == described(theirs, values, named)
        assert described(ours, values, named) == described(theirs, values, named)


@lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What pickles by name."""

    first: int
    second: tuple[int, ...] = ()


@lazy_dataclass.dataclass
class Loop:
    """May hold itself."""

    inner: object = None


def test_a_frozen_class_with_slots_can_be_pickled():
    kept = Kept(first=1, second=(2,))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        text = pickle.dumps(kept, protocol)
        assert pickle.loads(text) == kept  # noqa: S301 (our own)


def test_a_representation_of_what_holds_itself_ends():
    loop = Loop()
    loop.inner = loop
    assert repr(loop) == "Loop(inner=...)"


def test_a_subclass_may_set_what_is_no_field():
    class Wider(Kept):
        """Has a dictionary."""

        @functools.cached_property
        def total(self):
            return self.first + 1

    item = Wider(first=1)
    item.note = "x"
    assert (item.note, item.total) == ("x", 2)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'first'"):
        item.first = 2


def test_what_inherits_or_is_ordered_is_the_standard_librarys():
    @lazy_dataclass.dataclass(frozen=True)
    class Further(Kept):
        """One more field."""

        third: int = 3

    @lazy_dataclass.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        """Compared by its fields."""

        first: int

    @dataclasses.dataclass(frozen=True)
    class Theirs(Kept):
        """A user's class over one of ours."""

    assert Further(first=1, third=4) == Further(third=4, first=1) != Further(first=1)
    assert Ordered(1) < Ordered(2)
    assert Theirs(first=1).second == ()
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        lazy_dataclass.dataclass(type("Loose", (Kept,), {}))


def test_methods_are_compiled_when_they_are_called_and_once():
    @lazy_dataclass.dataclass(frozen=True, slots=True)
    class Kind:
        """One field."""

        first: int

    before = Kind.__init__
    Kind(1)
    compiled = Kind.__init__
    Kind(2)
    assert before is not compiled
    assert compiled is Kind.__init__
    assert before.__qualname__ == compiled.__qualname__
    before(item := Kind(3), 4)  # whoever kept the first one calls the same method
    assert item.first == 4
