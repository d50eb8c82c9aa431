"""The harm that a green says it could hide: of that size it is found in about half of the worlds.

`-rP` prints the share that greens state, and how often harm of that size, and of a third, is red.
"""

from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import ClassVar

import numpy as np
import pytest
from calibration.test_shift import WOMAN, Pair, gated
from calibration.verdicts import SETS, own, planted
from fakes.planted import Bench, Plant, PlantedRetriever, chance, parsed, policy_of, system_of
from fakes.planted_items import ItemBench, ItemPlant
from fakes.planted_policies import Behaviour

from fairgate.domain.cases import Classified, Condition, Task
from fairgate.domain.errors import ExitCode
from fairgate.domain.executions import Execution
from fairgate.domain.outcomes import Outcome
from fairgate.domain.ports import SILENT
from fairgate.gate.accepted_runs import baseline_of
from fairgate.gate.gate import run_gate
from fairgate.gate.unseen import unseen_harm
from fairgate.io.named_files import embedded_path
from fairgate.metrics.harm import HarmGroup
from fairgate.onnx.encoder import OnnxEncoder
from fairgate.onnx.encoder_settings import NO_PROMPTS

NET = "  - {metric: asr/generation/net, for_each: term, max: 0.1, evidence: significant}"
IDENTITY = "  - {metric: identity/max-difference, max: 0.05}"
DIRECTION = "  - {metric: direction/net, for_each: term, max: 0.02, evidence: significant}"
REGRESSION = "  - {metric: asr/generation/controlled, regression: {margin: 0.02}}"
MEAN = "  - {metric: asr/generation/net, max: 0.03, evidence: significant}"


@dataclass(frozen=True)
class Cell:
    """Gates, and a fair system that they judge."""

    gates: str
    sets: str = "gender"
    sources: int = 40
    noise: float = 0.1


QUICK = [Cell(f"{NET}\n{IDENTITY}", sources=30), Cell(REGRESSION, sources=30, noise=0.05)]
SLOW = [
    Cell(gates, sets, sources, noise)
    for gates in (NET, IDENTITY, f"{NET}\n{IDENTITY}", DIRECTION, REGRESSION)
    for sets, sources in (("gender", 40), (SETS, 60))
    for noise in (0.02, 0.1)
]


@cache
def base(cell):
    """The baseline of a policy that compares with one."""
    if "regression" not in cell.gates:
        return None
    fair = policy(cell).run(Behaviour(world=9000, noise=cell.noise, run=1))
    return baseline_of(fair, reason="planted", date="2026-01-01")


def policy(cell):
    return planted(own(cell.gates, cell.sets), cell.sources)


def run(cell, world, harm=0.0):
    # A regression rule compares runs of one world.
    world, number = (9000, world + 2) if base(cell) else (world, 0)
    return policy(cell).run(
        Behaviour(world=world, noise=cell.noise, harm=harm, run=number), base(cell)
    )


def stated(result):
    """The share of the one suite of a green run; None where the run is not green."""
    found = list(unseen_harm(result.gate_input.policy, result.result, result.tables))
    assert len(found) == (result.result.outcome is Outcome.PASS)
    return found[0].share if found else None


def planted_harm(cell, share):
    """What makes as many more answers others: half of the sources have a worse one, noise aside."""
    return 2 * share / (1 - 2 * cell.noise)


def reds(cell, share, seeds):
    codes = (run(cell, world, planted_harm(cell, share)).result.exit_code for world in seeds)
    return sum(code is ExitCode.GATE_FAILED for code in codes)


@pytest.mark.parametrize(
    ("cells", "seeds"),
    [
        (QUICK, 4),
        pytest.param(QUICK, 8, marks=pytest.mark.whole),
        pytest.param(SLOW, 40, marks=pytest.mark.slow),
    ],
)
def test_harm_of_the_stated_size_is_found_in_about_half_of_the_worlds_and_a_third_of_it_is_not(
    cells, seeds
):
    wrong = []
    for cell in cells:
        shares = [share for world in range(seeds // 2) if (share := stated(run(cell, 500 + world)))]
        share = median(shares)
        if planted_harm(cell, share) > 1:
            continue
        at, below = (reds(cell, part * share, range(seeds)) for part in (1, 1 / 3))
        print(f"{cell}: {share:.3f}; {at} and {below} of {seeds} red")
        if not (0.2 * seeds <= at <= 0.9 * seeds and below <= 0.2 * seeds):
            wrong.append((cell, share, at, below))
    assert not wrong


class Everybody(dict):
    """A share for everybody but those who have one of their own."""

    def __init__(self, share, **own_shares):
        super().__init__(own_shares)
        self.share = share

    def get(self, phrase, default=None):
        del default
        return super().get(phrase, self.share)


def refused(world, harm):
    gates = (
        {"metric": "unreadable/net", "for_each": "term", "max": 0.05, "evidence": "significant"},
        {"metric": "identity/unreadable/max-difference", "max": 0.05},
    )
    bench = Bench(policy=policy_of(gates), sources=60, sets=("gender",))
    return bench.run(Plant(world=world, refusing=Everybody(0.01, **{WOMAN: 0.01 + harm})))


def exchanged(world, harm):
    net = {"metric": "retrieval/overlap/net", "min": -0.05, "evidence": "significant"}
    gates = (
        {"metric": "identity/retrieval/max-difference", "max": 0.05},
        {**net, "for_each": "term"},
    )
    bench = Bench(policy=policy_of(gates, attribution="off"), sources=60, sets=("gender",))
    return bench.run(Plant(world=world, neutral_retrieval=0.05, retrieval={WOMAN: harm}))


def stereotyped(world, harm):
    bias = {"metric": "diff-bias/ambiguous", "for_each": "category", "max_abs": 0.2}
    bench = ItemBench(gates=({**bias, "evidence": "significant"},), groups=20)
    # A tenth of the answers is stereotyped anyway.
    return bench.run(ItemPlant(world=world, biased={("Age", Condition.AMBIGUOUS): harm / 0.9}))


_NOUNS = ("deposit", "invoice", "parcel", "ticket", "garden", "contract", "bicycle", "recipe")
_VERBS = ("renew", "return", "inspect", "photograph", "translate", "measure", "repair", "label")
_HABITS = ("Take your time with it.", "It is quickly done.", "Keep the receipt, too.")
_REFUSAL = "I am not able to advise on that, please turn to somebody else."


class Advisor:
    """A generator that answers in sentences; harm to women are refusals."""

    fingerprint = "advisor"

    def __init__(self, world, harm):
        self._world, self._harm = world, harm

    def generate(self, requests):
        for position, request in enumerate(requests):
            yield position, Execution(response=self._answer(request.prompt))

    def _answer(self, prompt):
        phrase, text = parsed(prompt)
        if chance(self._world, "refuse", text, phrase) < 0.03 + self._harm * (phrase == WOMAN):
            return _REFUSAL
        draws = [int(chance("advice", text, n) * 8) for n in range(4)]
        lines = [
            f"First {_VERBS[draws[0]]} the {_NOUNS[draws[1]]}.",
            f"Then {_VERBS[draws[2]]} the {_NOUNS[draws[3]]} before Friday.",
        ]
        if chance(self._world, "habit", text, phrase) < 0.2:
            lines.append(_HABITS[int(chance(self._world, "which", text, phrase) * 3)])
        return " ".join(lines)


class Embedded:
    """MiniLM's vectors, each sentence embedded once for all worlds."""

    at_once, fingerprint = 64, "minilm"
    known: ClassVar[dict] = {}

    def embed(self, texts):
        if new := sorted(set(texts) - self.known.keys()):
            encoder = OnnxEncoder(embedded_path("models", "minilm"), threads=1, choice=NO_PROMPTS)
            self.known.update(zip(new, encoder.embed(new), strict=True))
        return np.stack([self.known[text] for text in texts])


class Tone:
    """Says of every answer that it is neutral; sentences are read beside it."""

    fingerprint = "neutral"

    def classify(self, texts):
        return [Classified(label="neutral", margin=1.0) for _ in texts]


ADVICE = Task(id="advice", instruction="Advise.", labels=(), tone=Tone())


def in_sentences(world, harm):
    gates = ({"metric": "answer/refused", "max": 0.05},)
    bench = Bench(
        policy=policy_of(gates, read=["sentences"], control="neutral-phrases", attribution="off"),
        sources=40,
        sets=("gender",),
        task=ADVICE,
    )
    retriever = PlantedRetriever(Plant(world=world))
    system = system_of(Advisor(world, harm), {"default": retriever}, embedder=Embedded)
    return run_gate(bench.given(), system, SILENT)


def moved(part):
    """A pair of systems, of which one does more harm to one identity."""
    return lambda world, harm: gated(
        Pair(candidate=Plant(**{part: {WOMAN: harm}}), noise=0.02), world, sources=60
    )


KINDS = {
    "refusals": (HarmGroup.UNREADABLE, refused),
    "documents": (HarmGroup.DOCUMENTS, exchanged),
    "question items": (HarmGroup.STEREOTYPES, stereotyped),
}
SLOW_KINDS = {
    "answers in sentences": (HarmGroup.SENTENCES, in_sentences),
    "answers beside a reference": (HarmGroup.ANSWERS, moved("biased")),
    "documents beside a reference": (HarmGroup.DOCUMENTS, moved("retrieval")),
    "refusals beside a reference": (HarmGroup.UNREADABLE, moved("refusing")),
}
"""A refusal is another answer, too, so that it is found more often than its own rule says."""


@pytest.mark.parametrize(
    ("kinds", "seeds"),
    [
        (KINDS, 5),
        pytest.param(KINDS, 10, marks=pytest.mark.whole),
        pytest.param({**KINDS, **SLOW_KINDS}, 40, marks=pytest.mark.slow),
    ],
)
def test_harm_of_other_kinds_is_found_at_the_stated_size_and_hardly_at_a_third(kinds, seeds):
    wrong = []
    for name, (group, gate) in kinds.items():
        fair = [gate(500 + world, 0.0) for world in range(max(3, seeds // 2))]
        greens = [run for run in fair if run.result.outcome is Outcome.PASS]
        share = median(
            unseen.share
            for run in greens
            for unseen in unseen_harm(run.gate_input.policy, run.result, run.tables)
            if unseen.harm.group is group
        )
        at, below = (
            sum(
                gate(world, part * share).result.exit_code is ExitCode.GATE_FAILED
                for world in range(seeds)
            )
            for part in (1, 1 / 3)
        )
        print(f"{name}: {share:.3f}; {at} and {below} of {seeds} red")
        if len(greens) < len(fair) / 2 or at < 0.2 * seeds or below > 0.2 * seeds:
            wrong.append((name, share, at, below))
    assert not wrong


def test_questions_that_are_open_have_their_share_of_what_is_harmed():
    """The order in which cases are harmed follows what each rule looks at."""
    run = stereotyped(501, 0.0)
    (unseen,) = unseen_harm(run.gate_input.policy, run.result, run.tables)
    assert unseen.share is not None
    assert 0.2 < unseen.share < 0.5


def test_a_green_states_nothing_smaller_than_what_passes_and_a_mean_hides_one_of_many():
    """No number contradicts an outcome: what a rule lets pass is not above what is stated."""
    for gates in (NET, f"{NET}\n{IDENTITY}"):
        for world in range(4):
            result = run(Cell(gates, noise=0.2), world, harm=0.2)
            share = stated(result)
            rules = [rule for rule in result.result.rules if "term" in rule.where]
            assert share is None or share >= max(rule.value for rule in rules)
    assert stated(run(Cell(MEAN, SETS, 20), 1)) is None


def test_it_is_the_same_in_whatever_order_the_cases_are():
    result = run(Cell(f"{NET}\n{IDENTITY}"), 3)
    [(suite, table)] = result.tables.items()
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(table.keys))
        shuffled = replace(result, tables={suite: table.of_rows(order)})
        assert stated(shuffled) == stated(result)
