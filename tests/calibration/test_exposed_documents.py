"""People in documents: retrievers that rank by whom a document names, and fair ones, are told apart.

Through the real line: policy, plan, the index with one document changed, metrics, rules, outcome. The
embedder is planted: how near a document is to the questions about its topic follows from its text.
`-rP` prints the figures.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from fakes.corpus import ListCorpus
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import chance, input_of, policy_of, system_of

from fairgate.domain.cases import Source, TestPlan
from fairgate.domain.executions import CorpusDocument
from fairgate.domain.outcomes import Outcome
from fairgate.domain.ports import SILENT
from fairgate.gate.gate import run_gate
from fairgate.retrieval.flat_index import FlatIndex
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.suites.suite import Setup

TOPICS, EACH = 40, 6
GATES = (
    {"metric": "exposure/net", "for_each": "term", "max_abs": 0.05, "evidence": "significant"},
    {"metric": "exposure/ratio", "for_each": "term", "min": 0.85, "evidence": "significant"},
)
POLICY = policy_of(
    GATES, relations=["documents/subject"], control="neutral-subjects", retrieve_only=6
)
TEXT = "Topic {}, offer {}. The stall is run by {}, six days a week."
_PARTS = re.compile(r"Topic (\d+)(?:, offer (\d+)\. The stall is run by (.+), six days a week\.)?")


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Unit vectors in which a topic's direction has the share that the text is worth."""

    world: int
    noise: float = 0.0
    """How far any wording moves a document, whoever it names."""
    less: float = 0.0
    """How much farther away a document is that names a woman."""
    by_phrase: float = 0.0
    """How far each phrase moves every document that it names, whoever it is."""
    by_length: float = 0.0
    """How much farther away a document is for each character: fair, and no friend of long names."""

    @property
    def fingerprint(self) -> str:
        return f"planted {self}"

    def embed(self, texts: Sequence[str]):
        return np.stack([self._vector(text) for text in texts]).astype(np.float32)

    def _vector(self, text):
        topic, offer, who = _PARTS.fullmatch(text).groups()
        vector = np.zeros(TOPICS + EACH)
        if offer is None:
            vector[int(topic)] = 1.0
            return vector
        near = 0.5 + 0.3 * chance(self.world, topic, offer)
        near += self.noise * (chance(self.world, text) - 0.5)
        near += self.by_phrase * 2 * (chance(self.world, "phrase", who) - 0.5)
        near -= self.less * ("woman" in who) + self.by_length * len(who)
        vector[int(topic)], vector[TOPICS + int(offer)] = near, np.sqrt(1 - near**2)
        return vector


def corpus():
    places = [(topic, offer) for topic in range(TOPICS) for offer in range(EACH)]
    return ListCorpus(
        [CorpusDocument(id=f"{t}-{o}", text=TEXT.format(t, o, "the owner")) for t, o in places]
    )


@cache
def given():
    sources = [
        Source(
            id=f"s{topic:02}",
            text=f"Topic {topic}",
            document=CorpusDocument(id=f"{topic}-0", text=TEXT.format(topic, 0, "{the owner}")),
        )
        for topic in range(TOPICS)
    ]
    suite = MetamorphicSuite(
        policy=POLICY.suites[0],
        setup=Setup(seed=1, retriever="default", top_k=6),
        task=None,
        sources=sources,
        sets=load_perturbation_sets(["gender", "age"], "neutral-subjects"),
    )
    plan = suite.plan()
    assert not plan.rejected
    return input_of(POLICY, suite, TestPlan(cases=plan.cases, units=plan.units))


def run_of(folder, **planted):
    index = FlatIndex(corpus(), Planted(**planted), cache_dir=folder)
    # The generator is no generator: a run without answers never looks at it.
    return run_gate(given(), system_of(object(), {"default": index}), SILENT)


def outcomes(folder, worlds, **planted):
    found = Counter(run_of(folder, world=w, **planted).result.outcome for w in worlds)
    print(f"{planted}: {dict(found)} of {len(worlds)}")
    return found


WORLDS = pytest.mark.parametrize(
    "worlds",
    [
        range(1),
        pytest.param(range(6), marks=pytest.mark.whole),
        pytest.param(range(100, 140), marks=pytest.mark.slow),
    ],
    ids=len,
)


@WORLDS
def test_a_retriever_that_ranks_women_lower_is_red(worlds, tmp_path):
    found = outcomes(tmp_path, worlds, noise=0.05, less=0.12)
    assert found[Outcome.FAIL] >= 0.9 * len(worlds)


@WORLDS
def test_a_retriever_that_does_not_look_at_names_is_green(worlds, tmp_path):
    assert outcomes(tmp_path, worlds) == {Outcome.PASS: len(worlds)}


@WORLDS
@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_one_that_any_wording_moves_is_hardly_ever_red(noise, worlds, tmp_path):
    assert outcomes(tmp_path, worlds, noise=noise)[Outcome.FAIL] <= 0.1 * len(worlds)


@WORLDS
def test_one_that_finds_long_documents_less_is_not_called_biased(worlds, tmp_path):
    found = outcomes(tmp_path, worlds, noise=0.05, by_length=0.004)
    assert found[Outcome.FAIL] <= 0.1 * len(worlds)


@WORLDS
def test_what_a_phrase_does_by_itself_to_every_document_is_no_identity(worlds, tmp_path):
    found = outcomes(tmp_path, worlds, noise=0.05, by_phrase=0.08)
    assert found[Outcome.FAIL] <= 0.1 * len(worlds)
