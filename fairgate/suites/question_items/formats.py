"""Rows of each published format to raw items."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from fairgate.domain.errors import DataError
from fairgate.domain.items import Condition
from fairgate.domain.json_text import JsonError, read_json
from fairgate.io.lines import capped
from fairgate.relations.oracles.choice import find_unknown
from fairgate.relations.oracles.folding import folded
from fairgate.suites.question_items.raw_item import (
    RawItem,
    condition_of,
    name_of,
    option_index,
    options_of,
    polarity_of,
    text_of,
)

Wordings = Sequence[str]
RowReader = Callable[[Mapping[str, object], str, Wordings], RawItem]

_SAME_GROUP = {
    **dict.fromkeys(("man", "boy", "husband", "male", "m"), "m"),
    **dict.fromkeys(("woman", "girl", "wife", "female", "f"), "f"),
}
_ANSWERS = ("ans0", "ans1", "ans2")


def read_bbq(row: Mapping[str, object], place: str, wordings: Wordings) -> RawItem:
    """Read BBQ as published (Parrish et al. 2022); JBBQ has the same schema.

    The target is the only answer but "unknown" whose group, or whose short text, is among
    `stereotyped_groups`. A group of four is `example_id // 4`.
    """
    del wordings
    info, groups = _answer_info(row, place), _stereotyped_groups(row, place)
    unknown = [index for index, (_, group) in enumerate(info) if group.lower() == "unknown"]
    hits = [
        index
        for index, (text, group) in enumerate(info)
        if index not in unknown and ({_group(group), _group(text)} & groups)
    ]
    example = option_number(row.get("example_id"), place)
    return RawItem(
        place=place,
        category=name_of(row, "category", place),
        example=str(example),
        template=name_of(row, "question_index", place),
        group=str(example // 4),
        polarity=polarity_of(row.get("question_polarity"), place),
        condition=condition_of(row.get("context_condition"), place),
        context=text_of(row, "context", place),
        question=text_of(row, "question", place),
        options=options_of([text_of(row, name, place) for name in _ANSWERS], place),
        correct=option_index(row.get("label"), place, "label"),
        unknown=unknown,
        target=hits[0] if len(hits) == 1 else None,
        whole=True,
    )


def read_jbbq(row: Mapping[str, object], place: str, wordings: Wordings) -> RawItem:
    """Read JBBQ: BBQ's schema, whose example ids promise no groups of four."""
    raw = read_bbq(row, place, wordings)
    fields = {name: getattr(raw, name) for name in RawItem.__slots__}
    return RawItem(**{**fields, "whole": False, "group": raw.example})


def read_kobbq(row: Mapping[str, object], place: str, wordings: Wordings) -> RawItem:
    """Read KoBBQ's TSV (Jin et al. 2024); `biased_answer` already follows the polarity.

    sample_id = category-TTTx-NNN-(amb|dis)-(bsd|cnt): template TTT, a biased context where x is b
    or d, and the polarity of the question.
    """
    sample = text_of(row, "sample_id", place)
    parts = sample.split("-")
    if len(parts) != 5 or parts[4] not in ("bsd", "cnt") or len(parts[1]) < 2:
        raise DataError(
            f"{place}: sample_id is {capped(sample)}; expected category-001a-002-amb-bsd"
        )
    category, template, number, condition, bias = parts
    options = options_of(_listed(row.get("choices"), place), place)
    return RawItem(
        place=place,
        category=category,
        example="-".join(parts[1:]),
        template=template[:-1],
        group=f"{template}-{number}",
        polarity="neg" if bias == "bsd" else "nonneg",
        condition=condition_of(condition, place),
        context=text_of(row, "context", place),
        question=text_of(row, "question", place),
        options=options,
        correct=_among(text_of(row, "answer", place), options, "answer", place),
        unknown=find_unknown(options, wordings),
        target=None,
        stereotype=_among(text_of(row, "biased_answer", place), options, "biased_answer", place),
        whole=True,
    )


def read_cbbq(row: Mapping[str, object], place: str, wordings: Wordings) -> RawItem:
    """Read CBBQ's CSV (Huang and Xiong 2024).

    Its rows name the stereotyped group in their own words (`bias_targeted_groups`); where that is
    no answer's text, the target must come from a metadata file. Ids repeat between the ambiguous
    and the disambiguated file, so the key contains which.
    """
    options = options_of([text_of(row, name, place) for name in _ANSWERS], place)
    unknown = find_unknown(options, wordings)
    groups = {folded(part) for part in str(row.get("bias_targeted_groups") or "").split("、")}
    hits = [i for i, option in enumerate(options) if i not in unknown and folded(option) in groups]
    condition = condition_of(row.get("context_condition"), place)
    polarity = polarity_of(row.get("question_polarity"), place)
    example = f"{condition}-{polarity}-{option_number(row.get('example_id'), place)}"
    return RawItem(
        place=place,
        category=name_of(row, "category", place),
        example=example,
        template=name_of(row, "question_index", place),
        group=example,
        polarity=polarity,
        condition=condition,
        context=text_of(row, "context", place),
        question=text_of(row, "question", place),
        options=options,
        correct=option_index(row.get("label"), place, "label"),
        unknown=unknown,
        target=hits[0] if len(hits) == 1 else None,
    )


def read_neutral(row: Mapping[str, object], place: str, wordings: Wordings) -> RawItem:
    """Read FairGate's own format, see docs/reference/item-format.md."""
    del wordings
    answers = row.get("options")
    if not isinstance(answers, list) or not all(isinstance(one, str) for one in answers):
        raise DataError(f"{place}: `options` is {capped(answers)}; expected a list of three texts")
    example = name_of(row, "id", place)
    group = row.get("group")
    unknown = option_index(row.get("unknown"), place, "unknown")
    stereotype = option_index(row.get("stereotype"), place, "stereotype")
    condition = condition_of(row.get("condition"), place)
    correct = row.get("correct", unknown if condition is Condition.AMBIGUOUS else None)
    return RawItem(
        place=place,
        category=name_of(row, "category", place),
        example=example,
        template=name_of(row, "template", place),
        group=example if group is None else name_of(row, "group", place),
        polarity=polarity_of(row.get("polarity", "neg"), place),
        condition=condition,
        context=text_of(row, "context", place),
        question=text_of(row, "question", place),
        options=options_of(answers, place),
        correct=option_index(correct, place, "correct"),
        unknown=[unknown],
        target=None,
        stereotype=stereotype,
    )


READERS: Mapping[str, RowReader] = {
    "bbq": read_bbq,
    "kobbq": read_kobbq,
    "cbbq": read_cbbq,
    "jbbq": read_jbbq,
    "neutral": read_neutral,
}


def format_of(columns: Sequence[str], path: str) -> str:
    """Return the format that a file's columns show. Raises DataError."""
    present = set(columns)
    for name, needed in (
        ("kobbq", {"sample_id", "choices", "biased_answer"}),
        ("jbbq", {"answer_info", "is_additional"}),
        ("bbq", {"answer_info", "example_id", "question_index"}),
        ("cbbq", {"bias_targeted_groups", "ans0", "label"}),
        ("neutral", {"options", "stereotype", "unknown", "template"}),
    ):
        if needed <= present:
            return name
    raise DataError(
        f"{path}: no format of question items has the columns {capped(sorted(present), 200)}; "
        "expected BBQ, KoBBQ, CBBQ, JBBQ or the neutral format: name it with `format`"
    )


def option_number(value: object, place: str) -> int:
    """Return an example's number. Raises DataError."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        return int(value.strip()[:18])
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise DataError(f"{place}: `example_id` is {capped(value)}; expected a whole number")


def _answer_info(row: Mapping[str, object], place: str) -> list[tuple[str, str]]:
    info = _decoded(row.get("answer_info"))
    found = []
    for name in _ANSWERS:
        entry = info.get(name) if isinstance(info, dict) else None
        if not isinstance(entry, list) or len(entry) < 2:
            raise DataError(
                f"{place}: `answer_info` has {capped(entry)} for {name}; expected [text, group]"
            )
        found.append((str(entry[0]), str(entry[1])))
    return found


def _stereotyped_groups(row: Mapping[str, object], place: str) -> set[str]:
    metadata = _decoded(row.get("additional_metadata"))
    groups = metadata.get("stereotyped_groups") if isinstance(metadata, dict) else None
    groups = _decoded(groups)
    if not isinstance(groups, list) or not groups:
        raise DataError(
            f"{place}: `additional_metadata.stereotyped_groups` is {capped(groups)}; expected a "
            "list of groups"
        )
    return {_group(str(group)) for group in groups}


def _group(name: str) -> str:
    lowered = folded(name)
    return _SAME_GROUP.get(lowered, lowered)


def _decoded(value: object) -> object:
    """Return nested values that CSV and Parquet carry as JSON text."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return read_json(value, strict=False)
    except JsonError:
        return value


def _listed(value: object, place: str) -> list[str]:
    if isinstance(value, str) and len(value) < 10_000:
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            value = None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise DataError(f"{place}: `choices` is no list of texts; expected ['…', '…', '…']")
    return value


def _among(text: str, options: Sequence[str], column: str, place: str) -> int:
    if text not in options:
        raise DataError(
            f"{place}: {column!r} is {capped(text)}, which is none of the options "
            f"{capped(list(options), 120)}"
        )
    return list(options).index(text)
