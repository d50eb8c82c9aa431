"""A part of attribution's questions, asked once all parts of a run have their answers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fairgate.domain.errors import BudgetError, UsageError
from fairgate.domain.ports import SILENT
from fairgate.features.shards.folder import Manifest, write_shard
from fairgate.features.shards.merge import Found, Live, read_all, united_system
from fairgate.features.shards.shard import AnsweredPart, Shard, ask_attribution, part_of
from fairgate.gate.composition import Composition
from fairgate.gate.waves import answer_waves
from fairgate.io.kept_out_of_git import keep_output_out_of_git


def run_attribution(
    composition: Composition, shard: Shard, earlier: Sequence[Found], folder: Path
) -> tuple[Manifest, list[str]]:
    """Write a part again, with its answers and those to its share of attribution's questions.

    `earlier` are all parts of the run. Raises UsageError where they are not, or are another
    number of parts.
    """
    loaded = composition.loaded
    read = read_all(earlier, loaded, composition.runtime)
    own = next((one for one in read if one.manifest.shard == shard), None)
    if own is None:
        raise UsageError(
            f"--shard is {shard}, but --after names {len(read)} parts; name one of those: "
            f"{shard.number}/{len(read)}"
        )
    plan, suites, seed = loaded.plan, loaded.suites, loaded.policy.seed
    answered = answer_waves(plan, suites, seed, united_system(read, None), SILENT)
    with contextlib.ExitStack() as stack:
        live = Live(composition, own.manifest.under_test, read, stack)
        error = None
        try:
            crossed = ask_attribution(answered, part_of(plan, shard), live, composition.progress)
        except BudgetError as spent:
            crossed, error = {}, spent
        environment = live.environment(own.manifest.environment)
    answers = {**own.part.answers, **crossed}
    manifest = replace(own.manifest, questions=len(answers), environment=environment)
    manifest = manifest if error is None else manifest.ended_by(error)
    keep_output_out_of_git(folder)
    part = AnsweredPart(answers=answers, vectors=own.part.vectors)
    write_shard(folder, manifest, part, {**own.unlabelled, **composition.unlabelled})
    if error is not None:
        raise error
    return manifest, composition.notices
