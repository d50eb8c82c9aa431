"""The gate of a change in parts: each job of a matrix asks one, the last job decides.

A part asks what every side of the change asks, the base commit's policy and the change's own. Sides
that differ in their rules alone are asked once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Progress
from fairgate.features.shards.folder import Manifest
from fairgate.features.shards.parts import Found, Identity, expected, merge, objection, run_shard
from fairgate.features.shards.shard import Shard
from fairgate.gate.composition import Composition
from fairgate.github.change import Evaluation
from fairgate.github.sides import Side


@dataclass(slots=True, kw_only=True)
class PartAsker:
    """Asks one part of every side that it is called with, and writes a folder for each."""

    shard: Shard
    folder: Path
    progress: Progress
    identity: Identity
    asked: dict[str, Manifest] = field(default_factory=dict)
    """Name of the folder to what was asked."""
    notices: list[str] = field(default_factory=list)

    def __call__(self, side: Side) -> Manifest:
        """Return what was asked of a side's system, now or for an earlier side."""
        facts = json.dumps(expected(side.loaded, side.runtime, self.identity), sort_keys=True)
        digest = hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{side.loaded.policy.name}-{digest[:12]}"
        if name not in self.asked:
            composition = Composition(side.loaded, side.runtime, self.progress)
            self.asked[name], notices = run_shard(
                composition, self.shard, self.folder / name, self.identity
            )
            self.notices += notices
        return self.asked[name]


@dataclass(slots=True, kw_only=True)
class PartsJudge:
    """Judges every side that it is called with, from the parts that asked its questions."""

    shards: Sequence[Found]
    progress: Progress
    asks: bool
    identity: Identity
    used: set[Path] = field(default_factory=set)

    def __call__(self, side: Side) -> Evaluation:
        """Return the gate's result by a side. Raises UsageError where its parts are not all there.

        Parts of other sides and policies are left to those.
        """
        here = expected(side.loaded, side.runtime, self.identity)
        wrong = {one.folder: objection(one.manifest, here) for one in self.shards}
        own = [one for one in self.shards if wrong[one.folder] is None]
        if not own:
            name = side.loaded.policy.name
            near = [one for one in self.shards if one.manifest.policy == name] or self.shards
            raise UsageError(
                f"{side.loaded.parsed.path}: no part of a run asked its questions; the nearest, "
                f"{near[0].folder}, {wrong[near[0].folder]}. Give the steps with `shard` and this "
                "one the same `policy` and `root`, and run them in one workflow run"
            )
        self.used |= {one.folder for one in own}
        composition = Composition(side.loaded, side.runtime, self.progress)
        done = merge(own, composition, side.references, asks=self.asks)
        return Evaluation(side=side, given=done.given, run=done.run, notices=done.notices)

    def require_all_used(self) -> None:
        """Raise UsageError where a part belongs to nothing that was judged."""
        left = [one for one in self.shards if one.folder not in self.used]
        if left:
            raise UsageError(
                f"{left[0].folder}: is a part of another run, of policy {left[0].manifest.policy!a}"
                f"; {len(left)} of {len(self.shards)} parts belong to nothing that is judged here: "
                "name every policy that was asked, or download the parts of this run alone"
            )
