"""What explains the red verdict of a pull request, within a budget; nothing here changes a verdict.

HEAD is the checkout with the policy that decided, BASE the base commit's files as git has them.
"""

from __future__ import annotations

from pathlib import Path

from fairgate.domain.errors import ExitCode, FairGateError
from fairgate.domain.ports import Progress
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless
from fairgate.features.blame.command import blame_line
from fairgate.features.blame.documents import Blame
from fairgate.features.blame.versions import Side, Version, crossed, revision_of, write_blame
from fairgate.github.change import Evaluation, JudgedChange
from fairgate.github.sides import Files
from fairgate.policy.yaml_text import decode_yaml

_MOST = 300


class BlamedChange:
    """Finds what explains a red verdict, and keeps it for the run's folder."""

    def __init__(self, policy: str, runtime: Runtime, budget: int, progress: Progress) -> None:
        """Take the policy's path, how to run, and the most questions; 0 asks for nothing."""
        self._policy = policy
        self._runtime = runtime
        self._budget = budget
        self._progress = progress
        self._found: Blame | None = None

    def remarks(self, judged: JudgedChange[Evaluation], base: Files, commit: str) -> list[str]:
        """Return the sentence for the comment; none where nothing is asked for, or it is green."""
        is_red = judged.decides.run.result.exit_code is ExitCode.GATE_FAILED
        if not self._budget or not is_red:
            return []
        try:
            self._found = self._blamed(judged, base, commit)
        except FairGateError as error:
            why = harmless(str(error).splitlines()[0][:_MOST])
            return [f"Which part of the change explains it is not known: {why}"]
        line = blame_line(self._found) if self._found is not None else ""
        return [line] if line else []

    def write(self, folder: Path) -> None:
        """Write blame.json into the run's folder, if anything was found."""
        if self._found is not None:
            write_blame(folder, self._found)

    def _blamed(self, judged: JudgedChange[Evaluation], base: Files, commit: str) -> Blame | None:
        raw = base.read(self._policy)
        if raw is None:  # the change introduces the gate
            return None
        root = self._runtime.root
        head = Version(named="HEAD", folder=root, is_revision=False)
        with revision_of(commit, root, "the base commit") as before:
            sides = crossed(
                Side(version=before, text=decode_yaml(raw, harmless(self._policy))),
                Side(version=head, text=judged.decides.side.text),
                self._policy,
                self._runtime,
                self._budget,
                self._progress,
            )
            self._progress.note(f"blame: {sides.announcement}")
            return sides.result(self._progress)
