"""The record as a page to print and sign."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING

from fairgate.domain.wording import harmless, probability
from fairgate.features.record.figures import size_text, sizes_text, span_text
from fairgate.features.record.model import Record, as_json

if TYPE_CHECKING:
    import markupsafe


def render_record(whole: Record) -> str:
    """Return the record as a page that needs nothing else and runs nothing."""
    import jinja2
    import markupsafe

    style = resources.files(__package__).joinpath("record.css").read_text("utf-8")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "."),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        finalize=lambda value: (
            harmless(value).replace("`", "'") if type(value) is str else value
        ),
    )  # fmt: skip
    environment.filters.update(
        size=size_text, sizes=sizes_text, span=span_text, marked=_marked, p=probability
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template("record.html.j2").render(
        record=whole,
        digest=hashlib.sha256(as_json(whole).encode()).hexdigest(),
        style=markupsafe.Markup(style),  # noqa: S704 (our own file)
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'",
    )


def _marked(text: str) -> markupsafe.Markup:
    """Return a text of ours or a run's, escaped, with `names` as code and no backtick left."""
    from markupsafe import Markup, escape

    parts = str(escape(harmless(text))).split("`")
    html = "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))
    return Markup(html)  # noqa: S704 (every part is escaped)
