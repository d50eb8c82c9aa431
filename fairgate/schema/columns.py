"""A table of texts, as policies name it."""

from __future__ import annotations

from pydantic import Field

from fairgate.schema.fields import Strict, Text


class Columns(Strict):
    """A table of texts: where it is and which columns matter."""

    path: Text = Field(description="CSV, TSV, JSONL or Parquet file, or an embedded name.")
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
