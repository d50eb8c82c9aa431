"""What stands between two ordinary words: attributes, and the glue of articles, "who" and lists.

Patterns have a letter for each part: `a` an article, `w` "who", `&` "and", `,` a comma, `M` an
adjective, `N` a noun, `H` what stands in for a noun, `C` a clause, `G` a gerund.
"""

from __future__ import annotations

import re

_LIST = r"{0}(?:(?:,{0})*&{0})?"
_PHRASE = re.compile(rf",?(?:a?(?:M,?)*N?M?H?(?:,?w{_LIST.format('C')})?|{_LIST.format('G')}),?")
_COMMA = "a comma is left over or missing"


def gap_fault(was: str, now: str, *, permuted: bool) -> str | None:
    """Return what is wrong with the pattern `now` where the source has `was`."""
    if was == now:
        return None
    return (
        _article_fault(was, now)
        or (_place_fault(was, now) if permuted else None)
        or _left_over(was, now)
        or _list_fault(was, now)
        or _comma_fault(was, now)
    )


def _article_fault(was: str, now: str) -> str | None:
    if "a" in was and "a" not in now and not was.startswith(","):
        return "an article is gone"
    return "an article is added" if "a" in now and "a" not in was else None


def _place_fault(was: str, now: str) -> str | None:
    moved = re.sub("[a,]", "", was) != re.sub("[a,]", "", now)
    return "an attribute stands among other words" if moved else None


def _left_over(was: str, now: str) -> str | None:
    if {was, now} == {",", ""} or (",w" in now and ",w" not in was):
        return _COMMA
    return "an 'and' is left over" if now.endswith("&") and not was.endswith("&") else None


def _list_fault(was: str, now: str) -> str | None:
    if _PHRASE.fullmatch(was) is None:  # two persons, say: only the glue is compared
        same = re.sub("[^a,w&]", "", was) == re.sub("[^a,w&]", "", now)
        return None if same or len(now) < len(was) - 1 else "the words of a list do not fit"
    if _PHRASE.fullmatch(now) is None:
        return "a word or a comma of a list is left over or missing"
    return None


def _comma_fault(was: str, now: str) -> str | None:
    if now == ",":
        return None if was.endswith(",") and was[0] != "," else _COMMA
    if now and (was[:1] == ",") != (now[:1] == ","):
        return _COMMA
    enclosed = was[:1] == "," and not now
    return _COMMA if was and (was[-1:] == ",") != (now[-1:] == ",") and not enclosed else None
