"""A part of a JSON value by its path: `$.answer`, `$.contexts[*].text`, `$['odd name'][0]`.

The subset of JSONPath (RFC 9535) that names parts: members, positions and wildcards. No filters,
slices or descendants, so a path never means something else than it seems to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fairgate.domain.wording import quoted

Step = str | int | None
"""Name of a member, position in a list, or None for all entries of a list."""
_STEP = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*)|\[(?:(?P<position>-?\d{1,6})|(?P<all>\*)|'(?P<quoted>[^'\\]*)'|"""
    r""""(?P<double>[^"\\]*)")\]"""
)
_JAVASCRIPT = re.compile(
    r"""\bjson((?:\??\.[^\W\d]\w*|(?:\?\.)?\[(?:\d{1,6}|'[^'\\]*'|"[^"\\]*")\])+)"""
)
"""What promptfoo's `transformResponse` says of the answer: `json.choices[0].message.content`."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path that was read; equal texts, equal paths."""

    text: str
    steps: tuple[Step, ...]

    @property
    def is_single(self) -> bool:
        """Return whether the path names one part at most."""
        return None not in self.steps

    def find(self, value: Any) -> list[Any]:
        """Return the parts of a JSON value that the path names, in their order."""
        found = [value]
        for step in self.steps:
            found = [inner for outer in found for inner in _inside(outer, step)]
        return found


def json_path(text: str) -> JsonPath:
    """Return the path that a text means. Raises ValueError with what was expected."""
    script = _JAVASCRIPT.search(text)
    if script is not None and not text.startswith("$"):
        path = f"${script[1].replace('?.[', '[').replace('?.', '.')}"
        raise ValueError(f"found {quoted(text)}, which is JavaScript; write `{path[:200]}`")
    if not text.startswith("$"):
        raise ValueError(f"found {quoted(text)}, expected a path such as `$.answer`")
    steps: list[Step] = []
    at = 1
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise ValueError(
                f"found {quoted(text[at:])} behind {quoted(text[:at])}, expected `.name`, "
                "`['name']`, `[0]` or `[*]`"
            )
        steps.append(_step(match))
        at = match.end()
    return JsonPath(text, tuple(steps))


def _step(match: re.Match[str]) -> Step:
    if match["all"]:
        return None
    if match["position"]:
        return int(match["position"])
    return next(match[name] for name in ("name", "quoted", "double") if match[name] is not None)


def _inside(value: Any, step: Step) -> list[Any]:
    if isinstance(step, str):
        return [value[step]] if isinstance(value, dict) and step in value else []
    if not isinstance(value, list):
        return []
    if step is None:
        return value
    return [value[step]] if -len(value) <= step < len(value) else []
