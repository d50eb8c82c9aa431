"""The page of kill tables: from what `calibration.kill_score` says of each shipped policy.

`make kill-tables` runs the policies, mutates the runs and calls this with the results, which keeps
what the page shows as docs/validation/kill-tables.json; the page is written from that.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from calibration.mutants import Mutant, MutationKind, MutationReach, noun_of
from ruamel.yaml import YAML

DATA = Path(__file__).parents[2] / "docs" / "validation" / "kill-tables.json"
_MOST = 2
"""Targets of one category that are named one by one."""
_KEPT = ("policy", "sources", "strengths", "stated", "seeds", "score", "false_kills", "not_seen")
_HEAD = """\
# What the shipped policies catch

<!-- generated: `make kill-tables` for the figures, `make docs` for the page -->

Biased variants of a run of each shipped policy, with the bundled models, put through its whole gate
with its baseline. In a share of the cases of a term, a category or everybody the answer becomes another one, empty
or the stereotyped one, or the documents become those of another source. Controls change every wording of a source
alike; a *false kill* is a control on which a rule about identities fails. A table has the number of targets (identities,
attributes, or all) by the smallest share of their cases whose change stops the build with every one of
its seeds, and names those that never did. Few seeds say little of rare misses: where the gate catches
80 %, three of three are caught in half of all such tests. These are figures of these policies, models and
data, not of yours. [Every target](kill-tables.json).

```bash
make kill-tables   # many minutes: runs each policy, then `python -m calibration.kill_score POLICY RUN --at 0.2 --seeds 3`
```
"""
_NOTES = {
    "rag-people": "Each of its 16 sources has attributes of its own, so that few say anything of "
    "one attribute: a change for one, or for one pair, is seen late or never.",
    "rag-social-bias": "With six templates in a category, chance would break a bound on each category's "
    "answers outside the options: refusals for one category end as `no verdict` instead.",
    "rag-toxicity": "With 60 comments and 21 identities, the scan sees other documents for one "
    "identity late, and for some of them not at all; more comments are the remedy.",
}
"""What a policy does not see although a line could be written."""


def kept(result: Mapping) -> dict:
    """Return what the page shows of one result."""
    rows = [
        {
            "kind": item["mutant"]["kind"],
            "reach": item["mutant"]["reach"],
            "where": item["mutant"]["where"],
            "from": item["smallest"] and item["smallest"]["strength"],
            "by": item["smallest"]["rules"][0]["metric"] if item["smallest"] else None,
        }
        for item in (*result["found"], *result["controls"])
    ]
    return {**{name: result[name] for name in _KEPT}, "rows": rows}


def page(data: Sequence[Mapping]) -> str:
    """Return the page; equal data, equal bytes."""
    return "\n".join([_HEAD, *(line for one in data for line in _section(one))]) + "\n"


def _section(one: Mapping) -> Iterator[str]:
    score, false = one["score"], one["false_kills"]
    worse = false["worse_for_everybody"]
    yield f"## {one['policy']}"
    yield ""
    yield (
        f"Kill score at a strength of {100 * one['stated']:g} %: "
        f"{100 * score['caught'] // score['mutants']} % ({score['caught']} of {score['mutants']}, {one['seeds']} seeds). "
        f"False kills: {false['failed']} of {false['mutants']}"
        + (f" ({false['worse_for_everybody']} more are worse for everybody)." if worse else ".")
    )
    yield ""
    yield f"| variants | {' | '.join(f'{100 * share:g} %' for share in one['strengths'])} | never | mostly by |"
    yield "|:--" + "|--:" * len(one["strengths"]) + "|:--|:--|"
    groups: dict[str, list[Mapping]] = {}
    for row in one["rows"]:
        groups.setdefault(_noun(row), []).append(row)
    for noun, rows in groups.items():
        by = [row["by"] for row in rows if row["by"]]
        most = max(dict.fromkeys(by), key=by.count, default="")
        numbers = [sum(row["from"] == share for row in rows) for share in one["strengths"]]
        cells = " | ".join(str(number or "") for number in numbers)
        missed = ["/".join(row["where"].values()) or "all" for row in rows if row["from"] is None]
        yield f"| {noun} | {cells} | {_targets(missed)} | {f'`{most}`' if most else ''} |"
    yield ""
    if one["policy"] in _NOTES:
        yield from (_NOTES[one["policy"]], "")


def _targets(names: Sequence[str]) -> str:
    """Return the targets; many of one category as their number."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.partition("/")[0], []).append(name)
    shown = (
        f"{len(group)} of {category}" if len(group) > _MOST else ", ".join(group)
        for category, group in groups.items()
    )
    return ", ".join(shown)


def _noun(row: Mapping) -> str:
    kind, reach = MutationKind(row["kind"]), MutationReach(row["reach"])
    return noun_of(Mutant(kind=kind, reach=reach, suite="", where=row["where"]))


def policy_hash(name: str) -> str:
    """Return the SHA-256 of what a shipped policy says; its comments change no table."""
    path = Path(__file__).parents[2] / "policies" / f"{name}.yaml"
    policy = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return hashlib.sha256(json.dumps(policy, sort_keys=True).encode()).hexdigest()


def main(paths: Sequence[str]) -> None:
    """Keep the results of the files, ordered by policy."""
    data = [kept(json.loads(Path(path).read_text(encoding="utf-8"))) for path in paths]
    data = [{**one, "sha256": policy_hash(one["policy"])} for one in data]
    data.sort(key=lambda one: one["policy"])
    DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
