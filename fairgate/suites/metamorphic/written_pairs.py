"""The columns of a table of sources with written follow-ups (Meta-Fair)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairgate.domain.cases import Pair
from fairgate.domain.errors import DataError
from fairgate.io.lines import capped, checked_text

PAIR_COLUMNS = (
    "relation", "follow_up", "dimension", "source_attribute", "attribute", "items",
)  # fmt: skip
_NEEDED = ("relation", "follow_up", "dimension")
_DIMENSION = re.compile(r"[a-z0-9][a-z0-9._ -]{0,63}")
_TERM = re.compile(r"[^/#@\"\s](?:[^/#@\"]{0,62}[^/#@\"\s])?")
"""What a term may be: it is a part of the key of its case (SPEC 10)."""


def written_pair(values: Mapping[str, object], place: str) -> Pair | None:
    """Return the pair of a row; None where its `relation` is empty: it is a plain source.

    `items` is a list, or a text with `|` between the items. Raises DataError with the place.
    """
    if not values.get("relation"):
        return None
    texts = {name: _text(values.get(name), place, name) for name in PAIR_COLUMNS[:-1]}
    for name in _NEEDED:
        if not texts[name].strip():
            raise DataError(f"{place}: {name!r} is missing; a row with a `relation` needs it")
    if not _DIMENSION.fullmatch(texts["dimension"]):
        raise DataError(
            f"{place}: 'dimension' holds {capped(texts['dimension'])}; expected a lower-case name, "
            "such as gender or socioeconomic-status"
        )
    pair = Pair(**texts, items=_items(values.get("items"), place))
    if not _TERM.fullmatch(pair.term):
        raise DataError(
            f"{place}: 'attribute' holds {capped(pair.term)}; expected up to 64 characters without "
            "`/`, `#`, `@` and double quotes, in `attribute` or `source_attribute`: the term that "
            "results are named by"
        )
    return pair


def _text(value: object, place: str, column: str) -> str:
    return "" if value is None else checked_text(value, place, column)


def _items(value: object, place: str) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    given = [part.strip() for part in value.split("|")] if isinstance(value, str) else value
    if not isinstance(given, list):
        raise DataError(f"{place}: 'items' holds {capped(value)}; expected a list of texts")
    items = tuple(checked_text(item, place, "items") for item in given)
    if any(not item.strip() for item in items) or len(set(map(str.casefold, items))) < len(items):
        raise DataError(f"{place}: 'items' holds an empty text or one of them twice")
    return items
