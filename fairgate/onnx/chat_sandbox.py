"""Chat templates of strangers: jinja2's sandbox with a limit of steps and of sizes.

A template comes with a model. It reaches plain data and the functions that it is given; what it
makes depends on its arguments alone, so nothing here is random and no object prints its address.
Every turn of a loop, call, filter and test is a step, as is every element that one of them goes
through; texts and lists that a template makes are bounded before they are made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import _PassArg, pass_context

MOST_STEPS = 200_000
MOST_CHARACTERS = 4 << 20
"""Of one text, of a list's length, and of all that is put out."""
MOST_SOURCE = 1 << 20
_MOST_NUMBER = 1 << 20
_MOST_PRODUCT = 1 << 25
"""Of the lengths of arguments of `_MULTIPLYING`."""
_KEY = "the budget"
"""No name that a template can say."""
_COUNTED, _JOINED, _WEIGHED, _SEARCHED = "the counted", "the joined", "the weighed", "the searched"
_WIDTH = re.compile(r"%[^%a-zA-Z]*(?:\*|\d{6,})|\{[^{}]*\d{6,}[^{}]*\}")
_LEFT_OUT = ("random", "striptags", "urlize", "wordwrap")
"""Filters that are no template's: one is random, the others take the square of a text's length."""
_MULTIPLYING = frozenset({"format", "format_map", "indent", "join", "replace"})
"""What may make a text as long as the product of two that it is given."""
_OF_ITERATORS = frozenset(
    {
        "batch", "count", "d", "default", "first", "groupby", "items", "join", "last", "length",
        "list", "map", "max", "min", "reject", "rejectattr", "reverse", "select", "selectattr",
        "slice", "sort", "sum", "unique", _COUNTED,
    }
)  # fmt: skip
"""Filters that go through an iterator; the others would print it."""


class _Budget:
    """What one rendering may still do."""

    def __init__(self) -> None:
        self.steps = MOST_STEPS
        self.characters = MOST_CHARACTERS

    def take(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise SecurityError(f"takes more than {MOST_STEPS:,} steps")

    def put_out(self, characters: int) -> None:
        self.characters -= characters
        if self.characters < 0:
            raise SecurityError(f"makes more than {MOST_CHARACTERS:,} characters")

    def measured(self, value: object, *, may_be_called: bool = False) -> int:
        """Length of a value, whose elements are steps. Raises SecurityError for what is no data."""
        size, open_ = 0, [value]
        while open_:
            element = open_.pop()
            self.take(1)
            if isinstance(element, str):
                size += len(element)
                self.take(
                    len(element) >> 10
                )  # what goes through a long text takes time by its length
            elif isinstance(element, bool | float | jinja2.Undefined) or element is None:
                size += 1
            elif isinstance(element, int):
                size += 1
                if element.bit_length() > 4096:
                    raise SecurityError("computes with a number of more than 4,096 bits")
            elif isinstance(element, list | tuple):
                size += len(element)
                open_ += element
            elif isinstance(element, Mapping):
                size += len(element)
                open_ += [*element.keys(), *element.values()]
            elif not may_be_called and not isinstance(element, range | Iterator):
                raise SecurityError(f"uses a {type(element).__name__} as data")
            else:
                size += len(element) if isinstance(element, range) else 1
            if size > MOST_CHARACTERS:
                raise SecurityError(f"makes something longer than {MOST_CHARACTERS:,} characters")
        return size

    def counted(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield the values, each a step and data."""
        for value in values:
            self.measured(value, may_be_called=True)
            yield value

    def checked(
        self, name: str, arguments: Iterable[object], *, may_be_called: bool = False
    ) -> None:
        """Raise SecurityError where `name` could make something too large of the arguments."""
        product = 1
        for value in arguments:
            size = self.measured(value, may_be_called=may_be_called)
            if isinstance(value, str | list | tuple | dict):
                product *= max(size, 1)
            if isinstance(value, int) and abs(value) > _MOST_NUMBER:
                raise SecurityError(f"asks for {_MOST_NUMBER:,} or more of something")
            if isinstance(value, str) and len(value) < 10_000 and _WIDTH.search(value):
                raise SecurityError("pads a text to 100,000 characters or more")
        if name in _MULTIPLYING and product > max(_MOST_PRODUCT, MOST_CHARACTERS):
            raise SecurityError(f"makes something longer than {MOST_CHARACTERS:,} characters")


def _budget(context: Context) -> _Budget:
    budget: _Budget = context.parent[_KEY]
    return budget


def _limited(
    name: str, function: Callable[..., Any], *, of_any: bool = False
) -> Callable[..., Any]:
    """Count what a filter or test is given and what it makes."""
    wanted = _PassArg.from_obj(function)

    @pass_context
    def called(context: Context, value: Any, *values: Any, **options: Any) -> Any:
        budget = _budget(context)
        if isinstance(value, Iterator | range) and not of_any and name not in _OF_ITERATORS:
            raise SecurityError(f"gives `{name}` an iterator")
        if not isinstance(value, jinja2.utils.Namespace | Macro):
            budget.checked(name, (value, *values, *options.values()), may_be_called=of_any)
        first: tuple[Any, ...] = ()
        if wanted is not None:
            arguments = {
                _PassArg.context: context, _PassArg.eval_context: context.eval_ctx,
                _PassArg.environment: context.environment,
            }  # fmt: skip
            first = (arguments[wanted],)
        result = function(*first, value, *values, **options)
        if isinstance(result, Iterator):
            return budget.counted(result)
        budget.measured(result, may_be_called=True)
        return result

    return called


_TESTS_OF_ANY = frozenset(
    {
        "callable", "defined", "undefined", "none", "iterable", "mapping", "number", "sequence",
        "string", "boolean", "false", "true", "integer", "float", "sameas",
    }
)  # fmt: skip


@pass_context
def _loop_over(context: Context, values: Any) -> Iterator[Any] | Any:
    if isinstance(values, jinja2.Undefined):
        return values
    if isinstance(values, list | tuple | dict | range | str):
        _budget(context).take(len(values))
        return values
    return _budget(context).counted(values)


@pass_context
def _joined(context: Context, values: list[Any]) -> str:
    texts = []
    for value in values:
        _budget(context).put_out(_budget(context).measured(value))
        texts.append(str(value))
    return "".join(texts)


@pass_context
def _printed(context: Context, value: Any) -> Any:
    budget = _budget(context)
    if isinstance(value, Iterator | range):
        raise SecurityError("prints an iterator")
    budget.put_out(budget.measured(value))
    return value


@pass_context
def _weighed(context: Context, value: Any) -> Any:
    _budget(context).measured(value, may_be_called=True)
    return value


@pass_context
def _searched(context: Context, value: Any) -> Any:
    if not isinstance(value, Mapping):
        _budget(context).measured(value, may_be_called=True)
    return value


class ChatSandbox(ImmutableSandboxedEnvironment):
    """jinja2's sandbox with limits; templates are rendered by `rendered` alone."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self, **options: Any) -> None:
        """Take jinja2's options."""
        super().__init__(optimized=False, finalize=_printed, **options)
        self.globals = {
            name: self.globals[name] for name in ("range", "cycler", "joiner", "namespace")
        }
        for name in _LEFT_OUT:
            del self.filters[name]

    def limit(self) -> None:
        """Limit every filter and test that there is; call it after the last one was added."""
        filters: dict[str, Any] = dict(self.filters)
        tests: dict[str, Any] = dict(self.tests)
        self.filters = {name: _limited(name, function) for name, function in filters.items()}
        self.tests = {
            name: _limited(name, function, of_any=name in _TESTS_OF_ANY)
            for name, function in tests.items()
        }
        self.filters |= {
            _COUNTED: _loop_over, _JOINED: _joined, _WEIGHED: _weighed, _SEARCHED: _searched,
        }  # fmt: skip

    def rendered(self, template: jinja2.Template, variables: Mapping[str, Any]) -> str:
        """Render a template of this environment. Raises whatever it raises."""
        text = template.render({**variables, _KEY: _Budget()})
        if len(text) > MOST_CHARACTERS:
            raise SecurityError(f"makes more than {MOST_CHARACTERS:,} characters")
        return text

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        if len(source) > MOST_SOURCE:
            raise SecurityError(f"is longer than {MOST_SOURCE:,} characters")
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(nodes.For):
            loop.iter = _filtered(loop.iter, _COUNTED)
        _without_concat(tree)
        _with_weights(tree)
        return tree

    def call(self, context: Context, function: Any, /, *values: Any, **options: Any) -> Any:
        """Call what a template calls, within the limits."""
        budget = _budget(context)
        budget.take(1)
        if isinstance(function, LoopContext) and values:
            values = (budget.counted(values[0]), *values[1:])
        elif function is not self.globals["range"]:  # it has a limit of its own
            method = getattr(function, "__wrapped__", function)
            owner = getattr(method, "__self__", None)
            own, name = ((owner,), method.__name__) if isinstance(owner, str) else ((), "")
            budget.checked(name, (*own, *values, *options.values()), may_be_called=not own)
        result = super().call(context, function, *values, **options)
        if isinstance(result, range):
            budget.take(len(result))
        elif isinstance(result, str | list | tuple | dict):
            budget.measured(result, may_be_called=True)
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute, within the limits."""
        budget = _budget(context)
        sizes = budget.measured(left), budget.measured(right)
        many = [operand for operand in (left, right) if isinstance(operand, str | list | tuple)]
        if operator == "*" and many and sizes[left is many[0]] >= 0:
            number = right if many[0] is left else left
            if isinstance(number, int) and len(many[0]) * number > MOST_CHARACTERS:
                raise SecurityError(f"makes something longer than {MOST_CHARACTERS:,} characters")
        if operator == "**" and isinstance(right, int) and abs(right) > 64:
            raise SecurityError("raises a number to a power above 64")
        if operator == "%" and isinstance(left, str):
            budget.checked("format", (left, *(right if isinstance(right, tuple) else (right,))))
        result = super().call_binop(context, operator, left, right)
        budget.measured(result)
        return result


def _filtered(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(
        node, name, [], [], None, None, lineno=node.lineno, environment=node.environment
    )


def _without_concat(node: nodes.Node) -> None:
    """Have `~` join its parts by a filter that counts them."""
    for field, value in node.iter_fields():
        if isinstance(value, list):
            value[:] = [_replaced(child) for child in value]
        elif isinstance(value, nodes.Node):
            setattr(node, field, _replaced(value))


def _replaced(node: Any) -> Any:
    if not isinstance(node, nodes.Node):
        return node
    _without_concat(node)
    if isinstance(node, nodes.Concat):
        listed = nodes.List(node.nodes, lineno=node.lineno, environment=node.environment)
        return _filtered(listed, _JOINED)
    return node


def _with_weights(tree: nodes.Template) -> None:
    """Count what is compared, searched, cut and hashed: Python goes through all of it at once."""
    for compare in list(tree.find_all(nodes.Compare)):
        compare.expr = _filtered(compare.expr, _WEIGHED)
        for operand in compare.ops:
            is_search = operand.op in ("in", "notin")
            operand.expr = _filtered(operand.expr, _SEARCHED if is_search else _WEIGHED)
    for item in list(tree.find_all(nodes.Getitem)):
        if isinstance(item.arg, nodes.Slice):
            item.node = _filtered(item.node, _WEIGHED)
        elif not isinstance(item.arg, nodes.Const):
            item.arg = _filtered(item.arg, _WEIGHED)
    for pair in list(tree.find_all(nodes.Pair)):
        pair.key = _filtered(pair.key, _WEIGHED)
