"""Phrasings as data: lists of regular expressions by what they say, in several languages.

`data/phrasings/*.yaml` holds a file for each language: refusals, hand-offs to other people, and
remarks on who asks; in some also the words for numbers. Matched in lower case, in Unicode's
compatibility form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

REFUSED, HANDED_OFF, ADDRESSED = KINDS = ("refused", "handed-off", "addressed")
_COUNTRIES = "countries.yaml"
_SPECIAL = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'"})


def _folder(name: str = "phrasings") -> Any:
    return resources.files("fairgate").joinpath("data", name)


def _content(name: str, folder: str = "phrasings") -> Mapping[str, Any]:
    from ruamel.yaml import YAML

    content: Mapping[str, Any] = YAML(typ="safe", pure=True).load(
        _folder(folder).joinpath(name).read_text("utf-8")
    )
    return content


@lru_cache(maxsize=1)
def countries() -> Mapping[str, str]:
    """Country or region by the adjective of its people, in lower case."""
    return {str(people): str(country) for people, country in _content(_COUNTRIES).items()}


@lru_cache(maxsize=1)
def _files() -> list[Mapping[str, Any]]:
    names = sorted(str(file.name) for file in _folder().iterdir())
    return [_content(name) for name in names if name.endswith(".yaml") and name != _COUNTRIES]


@lru_cache(maxsize=1)
def languages() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Language to kind to the regular expressions of it."""
    return {
        content["language"]: {kind: tuple(content.get(kind) or ()) for kind in KINDS}
        for content in _files()
    }


def numbers() -> list[list[str]]:
    """Return of each language that lists them the words for 2 to 99, `_` where there is none."""
    return [content["numbers"].split() for content in _files() if "numbers" in content]


def shipped_terms() -> tuple[list[list[str]], list[list[str]]]:
    """Return the terms of the shipped sets of identities, and of control sets, by their phrases."""
    both: tuple[list[list[str]], list[list[str]]] = ([], [])
    for file in sorted(str(file.name) for file in _folder("perturbations").iterdir()):
        content = _content(file, "perturbations")
        terms = content.get("terms", ())  # pools of names have none
        both[content["control"] if terms else 0].extend(
            term.get("phrases") or [term["noun_phrase"]] for term in terms
        )
    return both


@lru_cache(maxsize=8)
def _pattern(kind: str) -> re.Pattern[str]:
    every = [expression for of_language in languages().values() for expression in of_language[kind]]
    return re.compile("|".join(f"(?:{expression})" for expression in every))


def says(kind: str, text: str) -> bool:
    """Whether words of a text say what a kind is about."""
    return bool(_pattern(kind).search(_plain(text)))


def _plain(text: str) -> str:
    """Put a text into the form in which it is looked through: in lower case, of plain signs."""
    return " ".join(unicodedata.normalize("NFKC", text.lower()).translate(_SPECIAL).split())
