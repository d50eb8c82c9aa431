"""Pairs of prompts and responses that people have called biased or not."""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.errors import DataError
from fairgate.io.lines import capped, checked_text
from fairgate.io.tables import read_rows, table_columns
from fairgate.relations.oracles.verdict import JudgedTexts

_TEXTS = ("prompt", "follow_up", "response", "follow_up_response")
_LABELS = {"biased": True, "unbiased": False, "true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """One pair with what people say of it."""

    id: str
    texts: JudgedTexts
    is_biased: bool


def read_labelled_pairs(path: str) -> list[LabelledPair]:
    """Return the pairs of a table with `id`, four texts and `label`, in the order of the file.

    `label` is BIASED or UNBIASED. Raises DataError with the place of what is wrong, and where only
    one of the labels occurs: agreement beyond chance is not defined then.
    """
    missing = [name for name in (*_TEXTS, "label") if name not in table_columns(path)]
    if missing:
        raise DataError(
            f"{path}: no column {missing[0]!r}; expected {', '.join((*_TEXTS, 'label'))}"
        )
    found: list[LabelledPair] = []
    lines: dict[str, int] = {}
    for row in read_rows(path):
        place = f"{path}:{row.line}"
        name = str(row.values.get("id") or row.number)
        if lines.setdefault(name, row.line) != row.line:
            raise DataError(f"{place}: id {capped(name)} was used on line {lines[name]} already")
        texts = [checked_text(row.values.get(column), place, column) for column in _TEXTS]
        for column, text in zip(_TEXTS, texts, strict=True):
            if not text.strip():
                raise DataError(f"{place}: {column!r} is empty; write the text or remove the row")
        found.append(
            LabelledPair(
                id=name,
                texts=JudgedTexts(
                    source_prompt=texts[0],
                    follow_up_prompt=texts[1],
                    source_response=texts[2],
                    follow_up_response=texts[3],
                ),
                is_biased=_label(row.values.get("label"), place),
            )
        )
    if len({pair.is_biased for pair in found}) < 2:
        there = "no pair" if not found else "BIASED" if found[0].is_biased else "UNBIASED"
        raise DataError(
            f"{path}: holds {there} alone; expected pairs of both labels: with one of them no "
            "judge can be distinguished from one that always says the same"
        )
    return found


def _label(value: object, place: str) -> bool:
    found = _LABELS.get(str(value).strip().lower())
    if found is None:
        raise DataError(f"{place}: 'label' holds {capped(value)}; expected BIASED or UNBIASED")
    return found
