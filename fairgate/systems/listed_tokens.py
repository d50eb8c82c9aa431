"""Degrees from the tokens that an endpoint lists: the likeliest where the answer's label begins.

`logprobs` of OpenAI's chat completions, or of its older ones: for each token of the answer its
log-probability, and those of up to 20 others in its place. A label's probability is that of the
listed tokens that only it can begin with. Where a token begins several labels (`non`), those that
begin with the token that was taken are told apart at the next one. A label that is not listed has
at most the probability of the last token that is, or what the listed ones leave: it is stored as
that bound, and marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from fairgate.domain.degrees import Degrees
from fairgate.domain.executions import GenerationRequest, Stop
from fairgate.domain.wording import shown
from fairgate.io.replies import outline
from fairgate.relations.oracles.label import label_place

MOST_LISTED = 20
"""Tokens that are asked for at each place: as many as OpenAI's endpoints list at most."""
_LEAST_REST = 1e-6
"""Probability left beside the listed tokens below which rounding decides."""
_LEAST_BOUND = 1e-12
"""Some endpoints list what is impossible, too."""
_MOST_TOKENS = 8192
_Listed = list[tuple[str, float]]


def listed_degrees(choice: Mapping[str, Any], request: GenerationRequest) -> Degrees | None:
    """Return the degrees at the label of a completion's choice.

    None where the endpoint lists no tokens, in whatever form, or the answer says no label.
    """
    tokens = _tokens(choice.get("logprobs"))
    labels = _labels(request)
    if not tokens or len(labels) < 2:
        return None
    text = "".join(token for token, _, _ in tokens)
    stop = request.ends_with or Stop(phrases=tuple(labels))
    match = label_place(text, replace(stop, phrases=tuple(labels), choice=False))
    if match is None:
        return None
    end, first = 0, None
    for number, (token, _, _) in enumerate(tokens):
        end += len(token)
        if end > match[1]:
            first = number
            break
    if first is None:
        return None
    return _at(tokens[first:], labels)


def _at(tokens: Sequence[tuple[str, float, _Listed]], labels: Mapping[str, str]) -> Degrees | None:
    """Sum what is listed from the label's first token on."""
    names = list(dict.fromkeys(labels.values()))
    sums = dict.fromkeys(names, 0.0)
    begun, before, bound = "", 0.0, None
    for taken, nats, listed in tokens:
        if not listed:
            break
        if bound is None:
            bound = min(math.exp(log) for _, log in listed)
            bound = min(bound, max(1 - math.fsum(math.exp(n) for _, n in listed), _LEAST_REST))
            bound = max(bound, _LEAST_BOUND)
        goes_on = False
        for token, log in listed:
            possible = _possible(begun + token, labels)
            if len(possible) == 1:
                sums[next(iter(possible))] += math.exp(before + log)
            elif possible and token == taken:
                goes_on = True
        if not goes_on:
            break
        begun, before = (begun + taken).lstrip(), before + nats
    if bound is None or not any(sums.values()):
        return None
    missing = tuple(name for name in names if not sums[name])
    nats_of = [math.log(sums[name] or bound) for name in names]
    # Bounds of several labels together are at most what is left, too.
    degrees = Degrees.summed(names, [min(0.0, log) for log in nats_of])
    return replace(degrees, at_most=missing)


def _possible(text: str, labels: Mapping[str, str]) -> set[str]:
    """Return the labels, one of each group of equals, that an answer may say that begins so."""
    begun = text.strip().lower()
    if not begun:
        return set()
    whole = [label for label in labels if begun.startswith(label)]
    if whole:  # the longest counts
        return {labels[max(whole, key=len)]}
    return {name for label, name in labels.items() if label.startswith(begun)}


def _labels(request: GenerationRequest) -> dict[str, str]:
    """Return each label, lower case, and the one of its group that its forms are scored for."""
    representatives: dict[str, str] = {}
    for name, text in request.forms:
        ends = [label for label in request.labels if text.lower().endswith(label.lower())]
        if ends:
            representatives.setdefault(max(ends, key=len).lower(), name)
    return representatives


def _tokens(reported: object) -> list[tuple[str, float, _Listed]]:
    """Return each token, its log-probability, and the listed ones; empty for what has no form."""
    content = _content(reported)
    if not isinstance(content, list) or len(content) > _MOST_TOKENS:
        return []
    tokens = []
    for entry in content:
        own = next(_entries([entry]), None)
        if own is None:
            return []
        top = entry.get("top_logprobs")
        listed = dict(_entries(top if isinstance(top, list) else []))
        tokens.append((*own, list((dict([own]) | listed).items())))
    return tokens


def lacking_in(reported: object) -> str:
    """Say what log-probabilities lack that degrees are read from; empty where they lack nothing."""
    content, place = _content(reported), "choices[0].logprobs"
    if not isinstance(content, list):
        return (
            f"`{place}` is {outline(reported)}, expected `content` with `token`, `logprob`, "
            "`top_logprobs`"
        )
    place += ".content[0]" * (isinstance(reported, Mapping) and "content" in reported)
    if content and not _tokens(reported):
        return f"`{place}` is {outline(content[0])}, expected `token` and `logprob`"
    tops = [entry.get("top_logprobs") for entry in content]
    if content and not any(tops):
        return f"`{place}.top_logprobs` is {shown(tops[0])}, expected the likeliest tokens"
    return ""


def _content(reported: object) -> object:
    """Return the tokens one by one, also where the lists of older APIs stand beside each other."""
    if not isinstance(reported, Mapping):
        return reported if isinstance(reported, list) else None
    tokens, nats = reported.get("tokens"), reported.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(nats, list):
        return reported.get("content")
    tops = reported.get("top_logprobs")
    likely = tops if isinstance(tops, list) else []
    return [
        {
            "token": token,
            "logprob": log,
            "top_logprobs": [{"token": t, "logprob": n} for t, n in top.items()]
            if isinstance(top, Mapping)
            else top,
        }
        for token, log, top in zip_longest(tokens, nats, likely[: len(tokens)])
    ]


def _entries(values: Sequence[object]) -> Iterator[tuple[str, float]]:
    for value in values:
        token = value.get("token") if isinstance(value, Mapping) else None
        nats = value.get("logprob") if isinstance(value, Mapping) else None
        if not isinstance(token, str) or isinstance(nats, bool):
            continue
        if isinstance(nats, int | float) and math.isfinite(nats):
            yield token, min(0.0, float(nats))
