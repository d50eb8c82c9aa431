"""Where chat templates run: jinja2's sandbox with what templates of published models expect.

The same names and options as in `transformers`' own (a differential test compares what they give).
Templates come with a model and are hostile: they reach plain data and the functions here, nothing
else.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NoReturn

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock, Node
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

_NOW = datetime(2024, 7, 26, 12, tzinfo=UTC)


def render_chat(template: str, **given: object) -> str:
    """Return what a template makes of messages and arguments. Raises whatever it raises."""
    return _compiled(template).render(tools=None, documents=None, **given)


@lru_cache(maxsize=8)
def _compiled(template: str) -> jinja2.Template:
    # A prompt is text, not HTML: nothing is escaped.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_Generation, loopcontrols],
    )
    environment.filters["tojson"] = _to_json
    environment.globals.update(
        raise_exception=_raise_exception,
        strftime_now=_strftime_now,
        dict=_Dict(),
        namespace=_Namespace,
    )
    return environment.from_string(template)


class _Generation(Extension):
    """`{% generation %}`, which marks what a model has said: its content, as it is."""

    tags = {"generation"}  # noqa: RUF012 (jinja2's own declaration)

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_content"), [], [], body).set_lineno(line)

    def _content(self, caller: Macro) -> str:
        return str(caller())


class _Dict:
    """`dict` without the attributes of a type."""

    def __call__(self, *values: Any, **named: Any) -> dict[Any, Any]:
        return dict(*values, **named)

    def fromkeys(self, *values: Any) -> dict[Any, Any]:
        return dict.fromkeys(*values)


class _Namespace(jinja2.utils.Namespace):
    """`namespace` without names that begin with an underscore."""

    def __init__(*values: Any, **named: Any) -> None:
        self, *given = values
        attributes = dict(*given, **named)
        for name in attributes:
            _require_public(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _require_public(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)


def _require_public(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(
            f"chat templates cannot store {name!r}, a name with an underscore before it"
        )


def _raise_exception(message: object) -> NoReturn:
    raise jinja2.exceptions.TemplateError(str(message))


def _to_json(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 (as templates call it)
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _strftime_now(form: str) -> str:
    # Some templates (Llama 3.2) print today's date into the system turn; answers must not change
    # overnight, so all see the date that those templates use as their own fallback. Seconds since
    # 1970 are the only ones that `strftime` takes from the machine's time zone.
    known = re.sub(r"(%%)|%[-_0^#]*\d*s", lambda one: one[1] or str(int(_NOW.timestamp())), form)
    return _NOW.strftime(known)
