"""A table of texts, as policies name it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fairgate.domain.fields import Strict, Text
from fairgate.domain.outside import Names, Role


class Columns(Strict):
    """A table of texts: where it is and which columns matter."""

    path: Annotated[Text, Names(Role.SOURCES)] = Field(
        description="CSV, TSV, JSONL or Parquet file, or an embedded name."
    )
    id: str | None = Field(
        default=None, description="Column of the identifier; default: row number."
    )
    text: str | None = Field(
        default=None, description="Column of the text; default: found by name."
    )
    label: str | None = Field(
        default=None,
        description="Column of the label (`toxic`, …); default: found by name, if any.",
    )
