"""Systems under test with planted behaviour, run through the real plan, gate and statistics.

A fake retriever and a fake generator that follow the port contracts: what is retrieved depends on
the query alone, an answer on its prompt and seed alone.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np
from fakes.perturbation_sets import load_perturbation_sets
from fakes.policies import model

from fairgate.domain.cases import Source, Task, TestPlan
from fairgate.domain.executions import Decoding, Document, Execution, GenerationRequest
from fairgate.domain.outcomes import Provenance, RuleResult
from fairgate.domain.ports import SILENT, ResultStore
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.baseline import AcceptedRuns, Baseline, must_match
from fairgate.gate.changes import Comparison
from fairgate.gate.compare import rule_results
from fairgate.gate.gate import GateInput, GateRun, run_gate
from fairgate.gate.measure import measure, table_with
from fairgate.gate.parity import judge_parity
from fairgate.gate.rules import expand_rules, parity_rules
from fairgate.metrics.retriever_robustness import PAPER_BANDS
from fairgate.policy.schema import Policy
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.suites.suite import Setup
from fairgate.systems.execute import LocalParts, LocalSystem
from fairgate.systems.revisions import NoStore

TEMPLATE = "{instruction}\n\n{documents}{text}\nAnswer:"
TASK = Task(
    id="sentiment", instruction="Is it positive or negative?", labels=("positive", "negative")
)
_SPEAKER = re.compile(r'^(?:(.{1,80}) says the following text: )?"(.*)"$', re.MULTILINE)
_FLAG = "slanted"


def chance(*parts: object) -> float:
    """A number in [0, 1) that follows from the parts."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big") / 2**56


@dataclass(frozen=True, kw_only=True)
class Plant:
    """What is wrong with a system. Shares are of sources; phrases are beginnings of noun phrases."""

    world: int = 0
    sensitive: float = 0.0
    """Sources that turn for any prefix, neutral ones too: prefix sensitivity without bias."""
    biased: Mapping[str, float] = field(default_factory=dict)
    """Noun phrase to the share of sources that turn in the generator."""
    biased_sources: Mapping[str, float] = field(default_factory=dict)
    """The same, but whoever is named turns the same sources."""
    retrieval: Mapping[str, float] = field(default_factory=dict)
    """Noun phrase to the share of sources whose documents are slanted, which turns the answer."""
    neutral_retrieval: float = 0.0
    """Share of (source, phrase) whose documents are others but not slanted."""
    cancelling: Mapping[str, float] = field(default_factory=dict)
    """Noun phrase to the share of sources with slanted documents *and* a generator that undoes it."""
    praised: Mapping[str, float] = field(default_factory=dict)
    """Noun phrase to the share of sources whose negative answer becomes a positive one."""
    refusing: Mapping[str, float] = field(default_factory=dict)
    """Noun phrase to the share of sources that get no answer."""
    unsure: Mapping[str, float] = field(default_factory=dict)
    """Noun phrase, or "" for all others, to the share of sources with an unstable answer."""
    noise: float = 0.0
    """Chance of each answer to turn, anew for every request seed."""
    run: int = 0
    """Another run of a noisy system has another number."""


class PlantedRetriever:
    at_once = 64

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self.fingerprint = f"planted-retriever {plant}"

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        return [self._documents(query, top_k) for query in queries]

    def _documents(self, query: str, top_k: int) -> list[Document]:
        phrase, text = parsed(query)
        plant = self._plant
        kind = ""
        if phrase and chance(plant.world, "other", text, phrase) < plant.neutral_retrieval:
            kind = f"other {phrase}"
        for slants in (plant.retrieval, plant.cancelling):
            if phrase and chance(plant.world, "slant", text, phrase) < slants.get(phrase, 0.0):
                kind = _FLAG
        names = [f"{kind} document {n} on {text}" for n in range(top_k)]
        label = "toxic" if kind == _FLAG else "non-toxic"
        return [Document(id=name, text=name, label=label, score=1.0) for name in names]

    def vectors(self, document_ids: Sequence[str]):
        return np.stack([_vector(name) for name in document_ids])


@cache
def _vector(name: str):
    seed = int(chance(name) * 2**56)
    vector = np.random.default_rng(seed).standard_normal(8).astype(np.float32)
    return vector / np.linalg.norm(vector)


class PlantedGenerator:
    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self.fingerprint = f"planted-generator {plant}"
        self.asked = 0

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Execution]]:
        for position, request in enumerate(requests):
            self.asked += 1
            yield position, self._answer(request)

    def _answer(self, request: GenerationRequest) -> Execution:
        plant, world = self._plant, self._plant.world
        phrase, text = parsed(request.prompt)
        if chance(world, "refuse", text, phrase) < plant.refusing.get(phrase, 0.0):
            return Execution(response="I cannot say.")
        label = chance(world, "label", text) < 0.5
        turned = f"{_FLAG} document" in request.prompt
        turned ^= bool(phrase) and chance(world, "sensitive", text) < plant.sensitive
        turned ^= chance(world, "bias", text, phrase) < plant.biased.get(phrase, 0.0)
        turned ^= chance(world, "bias", text) < plant.biased_sources.get(phrase, 0.0)
        turned ^= chance(world, "slant", text, phrase) < plant.cancelling.get(phrase, 0.0)
        # Half of the sources are negative, so of these twice the share is turned.
        praised = 2 * plant.praised.get(phrase, 0.0)
        turned ^= label == turned and chance(world, "praise", text, phrase) < praised
        turned ^= chance(world, plant.run, request.seed, request.prompt) < plant.noise
        unsure = plant.unsure.get(phrase, plant.unsure.get("", 0.0)) if phrase else 0.0
        margin = 0.0 if chance(world, "unsure", text, phrase) < unsure else 1.0
        return Execution(response=" positive." if label != turned else " negative.", margin=margin)


@cache
def parsed(text: str) -> tuple[str, str]:
    found = _SPEAKER.search(text)
    return (found[1] or "", found[2]) if found else ("", text)


SETS = ("race", "gender", "orientation", "age")
GATES = ({"parity": "all"},)


def policy_of(gates: Sequence[Mapping[str, object]] = GATES, **suite: object) -> Policy:
    """A policy in memory with one suite called `s`, in which one phrase says an identity."""
    return model().model_validate(
        {
            "version": 1,
            "name": "planted",
            "system": {"retriever": {"corpus": "demo"}, "generator": {"model": "demo-slm"}},
            "suites": [{"id": "s", "task": "sentiment", "sources": "x", "phrases": 1, **suite}],
            "gates": [dict(gate) for gate in gates],
        }
    )


@lru_cache(maxsize=64)
def suite_of(
    policy_text: str,
    sources: int,
    sets: tuple[str, ...],
    start: int,
    task: Task = TASK,
    texts: tuple[str, ...] = (),
) -> tuple[MetamorphicSuite, TestPlan]:
    """The suite of a policy and its plan; cached, because worlds share it."""
    policy = model().model_validate_json(policy_text)
    suite = policy.suites[0]
    control = suite.control
    loaded = MetamorphicSuite(
        policy=suite,
        setup=Setup(seed=policy.seed, retriever="default", top_k=4),
        task=task,
        sources=[
            Source(id=f"s{n:05d}", text=texts[n] if texts else f"text number {n}")
            for n in range(start, start + sources)
        ],
        sets=load_perturbation_sets(list(sets), control, phrases=suite.phrases),
    )
    planned = loaded.plan()
    return loaded, TestPlan(cases=planned.cases, units=planned.units, rejected=planned.rejected)


def input_of(policy, suite, plan, accepted_runs=None) -> GateInput:
    """What a gate on one suite starts from."""
    return GateInput(
        policy=policy,
        plan=plan,
        suites={suite.id: suite},
        must_match={suite.id: must_match(suite, {"decoding": "greedy"})},
        accepted_runs=accepted_runs or AcceptedRuns(),
        provenance=Provenance(under_test={}, environment={}, fairgate="0", policy_path="p"),
    )


def system_of(generator, retrievers, store=None, *, temperature=0.0) -> LocalSystem:
    """A system of planted parts, asked anew unless a store has the answers."""
    parts = LocalParts(
        retrievers=retrievers,
        generator=generator,
        template=TEMPLATE,
        document_characters=400,
        decoding=Decoding(temperature=temperature),
        embedder=None,
    )
    return LocalSystem(parts, store or NoStore())


COMPARED_WITH_NOTHING = Comparison(runs={}, contents={})


def judged_columns(
    policy: Policy,
    plan: TestPlan,
    columns: Mapping[str, np.ndarray],
    comparison: Comparison = COMPARED_WITH_NOTHING,
    *,
    suites: Mapping[str, MetamorphicSuite] | None = None,
) -> list[RuleResult]:
    """Judge the rules on columns of the suite `s`, all else as in a run."""
    table = table_with(
        "s", plan.units, values=columns, reasons={}, not_evaluated={}, bands=PAPER_BANDS
    )
    tables = {"s": table}
    measured = measure(tables)
    questions = parity_rules(policy, suites or {})
    return [
        *judge_parity(policy, suites or {}, questions, tables, comparison),
        *rule_results(expand_rules(policy, plan), tables, measured, comparison, policy),
    ]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A policy and its cases, on which planted systems are gated."""

    policy: Policy
    sources: int = 100
    sets: tuple[str, ...] = SETS
    sampling: bool = False
    """Ask with a temperature, so that every case has a sampling seed of its own."""
    start: int = 0
    task: Task = TASK
    texts: tuple[str, ...] = ()
    """What the sources say; none: their numbers."""

    def given(self, baseline: Baseline | None = None) -> GateInput:
        suite, plan = suite_of(
            self.policy.model_dump_json(),
            self.sources,
            self.sets,
            self.start,
            self.task,
            self.texts,
        )
        return input_of(self.policy, suite, plan, AcceptedRuns(baseline=baseline))

    def run(self, plant: Plant, baseline: Baseline | None = None) -> GateRun:
        """Gate a planted system through the whole real line."""
        return run_gate(self.given(baseline), self.system(plant), SILENT)

    def system(self, plant: Plant, store: ResultStore | None = None) -> LocalSystem:
        retrievers = {"default": PlantedRetriever(plant)}
        temperature = 0.1 if self.sampling else 0.0
        return system_of(PlantedGenerator(plant), retrievers, store, temperature=temperature)

    def baseline(self, plant: Plant) -> Baseline:
        """Accept a planted system as the reference; the same one is run once for many tests."""
        key = repr((self, plant))
        if key not in _BASELINES:
            if len(_BASELINES) == _MOST_BASELINES:
                _BASELINES.clear()
            run = self.run(plant)
            _BASELINES[key] = baseline_of(run, reason="planted", date="2026-01-01")
        return _BASELINES[key]


_BASELINES: dict[str, Baseline] = {}
_MOST_BASELINES = 64
