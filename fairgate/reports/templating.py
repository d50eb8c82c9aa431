"""The template environments: nothing reaches a report unescaped, even where a filter is forgotten.

Both environments escape HTML by themselves. In Markdown templates every text also goes through one
of the filters `md` (a name), `code` (verbatim) or `prose` (a sentence of ours); `fig` keeps a
figure of ours on one line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairgate.domain.wording import harmless
from fairgate.reports import escaping

if TYPE_CHECKING:
    import jinja2


@functools.cache
def markdown_environment() -> jinja2.Environment:
    """Return the environment of the Markdown templates."""
    environment = _environment()
    environment.filters.update(
        md=_marking(escaping.markdown),
        code=_marking(escaping.markdown_code),
        prose=_marking(escaping.markdown_prose),
        code_element=_marking(escaping.html_code),
        date=_marking(escaping.markdown_date),
        fig=_marking(lambda figure: figure.replace(" ", "&nbsp;")),
        block=_marking(escaping.markdown_block),
    )
    return environment


@functools.cache
def html_environment() -> jinja2.Environment:
    """Return the environment of the HTML templates, where every value is made harmless first."""
    environment = _environment()
    environment.finalize = _visible
    return environment


def _visible(value: object) -> object:
    """Show control characters as escapes; markup of ours passes."""
    return harmless(value) if type(value) is str else value


def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("fairgate.reports", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        undefined=jinja2.StrictUndefined,
    )


def _marking(escape: Callable[[str], str]) -> Callable[[str], str]:
    """Return `escape` with results that the environment does not escape a second time."""

    def marked(text: str) -> str:
        import markupsafe

        return markupsafe.Markup(escape(str(text)))  # noqa: S704 (escaped for Markdown just now)

    return marked
