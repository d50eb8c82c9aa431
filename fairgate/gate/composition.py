"""From a loaded policy to what a run needs: the system under test, and all that is known first."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fairgate import __version__
from fairgate.domain.executions import Execution
from fairgate.domain.outcomes import MEASURING, Evidence, Origin, Provenance, short
from fairgate.domain.ports import OpenSystem, Progress, Runtime
from fairgate.domain.schema import Role, named_in
from fairgate.gate.attribution import crosses
from fairgate.gate.baseline import (
    AcceptedRuns,
    environment_notices,
    must_match,
    plan_hash,
)
from fairgate.gate.loaded_policy import (
    NO_BASELINE,
    LoadedPolicy,
    judge_notices,
    unproven,
)
from fairgate.gate.manifest import contents
from fairgate.gate.materials import SuiteRetrievers
from fairgate.gate.origin import Counted
from fairgate.gate.rules import idle_notices, sampled_notices
from fairgate.io.git import current_commit
from fairgate.io.machine import describe_environment, nothing_left_behind
from fairgate.relations.oracles.text import spoken
from fairgate.systems.catalogue import kind_of
from fairgate.systems.labelling import LabelledSystem, labelled
from fairgate.systems.reference import ReferencedSystem, reference_of
from fairgate.systems.resources import Resources

if TYPE_CHECKING:
    from fairgate.gate.gate import GateInput, GateRun
    from fairgate.metrics.columns import VectorsOf
    from fairgate.systems.recorded_answers import RecordedAnswers

_FINISHED = "finished"
"""Kind of a stored mark: a run of this state had all its answers."""
_HARDLY = 0.1
"""Share of the planned units; so few are decided where a model does not do what it is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run that was judged, and by which policy."""

    loaded: LoadedPolicy
    run: GateRun
    notices: Sequence[str]
    """What adapters said."""
    vectors: VectorsOf = lambda _: None
    """Embeds documents where the run is judged again; of one that asked, none."""


class Composition:
    """Builds what a run needs from a loaded policy; every part at most once, when it is asked."""

    def __init__(self, loaded: LoadedPolicy, runtime: Runtime, progress: Progress) -> None:
        """Take a loaded policy and how to run it."""
        self.loaded = loaded
        self.runtime = runtime
        self.progress = progress
        self._kind = kind_of(loaded.policy.system)
        self._beside: list[Resources] = []
        """Those of the policy's reference, once it was opened."""
        self._resources = Resources(
            runtime,
            progress,
            suite_retrievers=lambda: self._suite_retrievers.of_all(loaded.suites.values()),
            suites_under_test=lambda: self._suite_retrievers.under_test(loaded.suites.values()),
        )
        self._resources.questions = lambda: loaded.questions
        self._resources.cases = lambda: loaded.plan.cases
        root = runtime.under_test.root
        deciding = (one.name for one in named_in(loaded.policy) if not one.is_under_test)
        self._resources.not_code = {
            Path(os.path.realpath(root / name))
            for name in (loaded.parsed.path, *deciding)
            if "\0" not in name
        }

    @property
    def notices(self) -> list[str]:
        """Return the adapters' notices: repaired files, left-out rows. Not part of a result."""
        return self._resources.notices

    @property
    def reported_tokens(self) -> int:
        """Return the tokens that answers so far have reported."""
        meters = (resources.meter for resources in (self._resources, *self._beside))
        return sum(meter.tokens for meter in meters if meter is not None)

    def ask_anew(self) -> None:
        """Ask the system for every answer from now on, also for those that are stored."""
        self._resources.asks_anew = True

    def run(self, accepted_runs: AcceptedRuns) -> FinishedRun:
        """Ask the system and judge its answers by the policy and what they are compared with."""
        from fairgate.gate.gate import run_gate

        with self.serving():
            gate_input = self.gate_input(accepted_runs)
            counted = Counted(self.progress)
            judged = run_gate(gate_input, self.system, counted)
            return self.finished(
                judged,
                origin=self.origin(counted.answers, self.reused(counted)),
                environment=self.environment,
            )

    def finished(
        self,
        run: GateRun,
        *,
        origin: Origin | None,
        environment: Mapping[str, str] | None = None,
        notice: str = "",
    ) -> FinishedRun:
        """Add to a judged run what is known once all was asked.

        `environment` is that of the machines that gave the answers; None: as the run began.
        `notice` is what comes first in reports.
        """
        gate_input, result = run.gate_input, run.result
        began = gate_input.provenance.environment
        environment = began if environment is None else environment
        notices = [notice] if notice else []
        if differing := sorted(
            name for name in environment if environment[name] != began.get(name)
        ):
            values = "; ".join(f"{name}: {environment[name]}" for name in differing)
            notices.append(
                f"questions were asked on machines that are not alike ({values}): answers are "
                "those of one process where machines are"
            )
            provenance = replace(gate_input.provenance, environment=environment)
            gate_input = replace(gate_input, provenance=provenance)
        if notices:
            gate_input = replace(gate_input, notices=[*notices, *gate_input.notices])
        result = replace(
            result,
            gate_input=gate_input,
            evidence=self._explained(run),
            origin=origin,
        )
        return FinishedRun(
            loaded=self.loaded, run=replace(run, result=result), notices=self.notices
        )

    def origin(self, answers: int, stored: int) -> Origin | None:
        """Return how many answers were asked for, where the system is asked from outside.

        Answers of a model that runs here are stored by its content: no edit escapes that.
        """
        if not self._kind.is_asked or not answers:
            return None
        return Origin(asked=answers - stored, stored=stored)

    def reused(self, counted: Counted) -> int:
        """Return how many answers an earlier run asked for, once this one has all of its own.

        What a run that was stopped had asked belongs to the one that goes on from there.
        """
        resources = self._resources
        if not resources.reuses:
            return 0
        state = [self.loaded.policy.name, sorted(self.system.under_test().items())]
        key = hashlib.sha256(json.dumps([state, resources.checkout]).encode()).hexdigest()
        is_known = key in resources.store.get_many(_FINISHED, [key])
        resources.store.put_many(_FINISHED, [(key, "true")])
        return counted.stored if is_known else 0

    def _explained(self, run: GateRun) -> Evidence:
        """Add what may be the reason where there are answers and hardly one can be read."""
        evidence = run.result.evidence
        is_read = evidence.decided > _HARDLY * evidence.planned or not evidence.problems
        if is_read or not any(spoken(e.response or "") for e in run.executions.values()):
            return evidence
        why = self._kind.why_unreadable(self._resources)
        return replace(evidence, problems=[*evidence.problems, why]) if why else evidence

    def gate_input(
        self,
        accepted_runs: AcceptedRuns,
        under_test: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> GateInput:
        """Return everything that is known before a model is loaded.

        `under_test` names the system that gave the answers where they are an earlier run's, and
        `environment` the machines that ran it; None: system and machine as they are now.
        """
        from fairgate.gate.gate import GateInput

        policy = self.loaded.policy
        provenance = self.provenance(under_test)
        if environment is not None:
            provenance = replace(provenance, environment=environment)
        of_system = {"decoding": self._kind.capabilities().decoding}
        if measures := contents(policy, self.runtime, Role.EMBEDDER):
            of_system["measures"] = measures
        suites, plan = self.loaded.suites, self.loaded.plan
        judged: list[str] = []
        if policy.judge is not None and self.loaded.is_judged:
            # Only here is known which models judge; a policy knows their names.
            from fairgate.systems.judges import UNDER_TEST

            who = provenance.under_test.get(UNDER_TEST, "")
            judged = judge_notices(self.loaded, who)
            plan = unproven(plan, policy.judge, self.loaded.judge_record, who) if judged else plan
        no_anchor: list[str] = []
        if accepted_runs.anchor_path == NO_BASELINE:
            no_anchor = ["compared with no anchor (`--baseline none`): budgets are not evaluated"]
        elif accepted_runs.anchor_path and accepted_runs.anchor is None:
            no_anchor.append(
                f"no anchor at {accepted_runs.anchor_path}: budgets are not evaluated; pin a "
                "reviewed run with `fairgate baseline anchor RUN --reason …`"
            )
        return GateInput(
            policy=policy,
            suites=suites,
            plan=plan,
            must_match={name: must_match(suite, of_system) for name, suite in suites.items()},
            provenance=provenance,
            accepted_runs=accepted_runs,
            day=str(self.runtime.today or ""),
            notices=[
                *accepted_runs.notices,
                *no_anchor,
                *judged,
                *self._kind.notices(crosses=any(map(crosses, suites.values()))),
                *idle_notices(policy),
                *sampled_notices(policy, self._kind.capabilities().temperature),
                *self._without_base(),
                *environment_notices(provenance, accepted_runs.baseline),
            ],
            footnotes=list(self._kind.footnotes(self._resources)),
        )

    def _without_base(self) -> Iterator[str]:
        """Say that nothing is compared with the base commit where the policy asks for it."""
        base = self.runtime.base
        if self.loaded.policy.compares_with_base and not base.answers:
            yield f"what moved is not known: {base.lacking}; nothing is compared with it"

    def provenance(self, under_test: Mapping[str, str] | None = None) -> Provenance:
        """Return the system under test and its environment, by fingerprint."""
        if under_test is None:
            under_test = {**self.system.under_test(), **self._measured_with()}
        return Provenance(
            under_test=under_test,
            environment=self.environment,
            fairgate=__version__,
            policy_path=self.loaded.parsed.path,
            policy_sha256=self.loaded.parsed.sha256,
            commit=current_commit(self.runtime.under_test.root),
        )

    def _measured_with(self) -> dict[str, str]:
        """Return the embedder that only measures, where the policy names one."""
        if not self._kind.measures_apart():
            return {}
        chosen = self._kind.measuring_embedder()
        fingerprint = self._resources.encoder(chosen).documents.fingerprint
        return {MEASURING: f"{chosen.model} {short(fingerprint)}"}

    @property
    def environment(self) -> dict[str, str]:
        """Return the libraries and the processor of this machine."""
        return describe_environment(self.runtime.device)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Return the block in which the policy's own server runs, where it names one.

        Whatever looks at the system, asks it, or says what is under test belongs inside. Behind it
        no process of a program under test is left that could change what is written.
        """
        reference = reference_of(self.loaded.policy, self.runtime)
        second = nullcontext() if reference is None else reference[0].served(reference[1])
        with nothing_left_behind(), self._kind.served(self.runtime), second:
            yield

    @contextmanager
    def until_it_ends(self, part: str = "") -> Iterator[None]:
        """Return the block of a run that goes on where it was interrupted, with equal results.

        Answers of what has no revision are kept until the block is left without an error: a later
        run asks for them again. `part` names a part of a run.
        """
        where = (str(self.runtime.root.resolve()), self.loaded.parsed.path, part)
        self._resources.run_identity = lambda: hashlib.sha256(
            "\0".join([*where, plan_hash(self.loaded.plan.cases)]).encode("utf-8", "replace")
        ).hexdigest()
        is_interrupted = True
        try:
            yield
            is_interrupted = False
        finally:
            self._resources.end(is_interrupted=is_interrupted)

    @cached_property
    def system(self) -> OpenSystem:
        """Return the policy's system, opened; nothing is loaded before it is asked.

        Where pairs are judged it asks the policy's judge, too.
        """
        policy, opened = self.loaded.policy, self._with_reference(self._inner)
        if policy.judge is None or not self.loaded.is_judged:
            return opened
        from fairgate.systems.judges import JudgedSystem, JudgePolicy, open_judges

        assert isinstance(policy.judge, JudgePolicy)  # noqa: S101 (the only model of a judge)
        return JudgedSystem(opened, open_judges(policy.judge, self._resources))

    def _with_reference(self, opened: OpenSystem) -> OpenSystem:
        """Put the policy's reference beside its system, where it names one."""
        reference = reference_of(self.loaded.policy, self.runtime)
        if reference is None:
            return opened
        kind, runtime = reference
        suites = self.loaded.suites.values()
        resources = self._resources.beside(
            runtime,
            suite_retrievers=lambda: retrievers.of_all(suites),
            suites_under_test=lambda: retrievers.under_test(suites),
        )
        retrievers = SuiteRetrievers(resources=resources, system=kind)
        self._beside.append(resources)
        system = labelled(kind.open(resources), kind.placed_labels(), resources)
        return ReferencedSystem(opened, system)

    @cached_property
    def _inner(self) -> OpenSystem:
        opened = self._kind.open(self._resources)
        return labelled(opened, self._kind.placed_labels(), self._resources)

    @property
    def unlabelled(self) -> dict[tuple[str, str], Execution]:
        """Return executions as they were before their documents were labelled behind the system.

        Empty where the policy names no labels. What is added to it counts as known.
        """
        return self._inner.unlabelled if isinstance(self._inner, LabelledSystem) else {}

    def replayed(self, recording: RecordedAnswers) -> OpenSystem:
        """Return a system whose answers are those of an earlier run (`rescore`)."""
        from fairgate.systems.recorded import RecordedSystem

        chosen = self._kind.measuring_embedder()
        return RecordedSystem(lambda: recording, lambda: self._resources.encoder(chosen).documents)

    @cached_property
    def _suite_retrievers(self) -> SuiteRetrievers:
        return SuiteRetrievers(resources=self._resources, system=self._kind)
