"""Two versions of a planted system: which part of the change is biased is known.

Documents are found by shared words, a document's score rests on itself alone; answers depend on the
prompt alone. A poisoned document turns the answers to one identity about some of the sources.
"""

import random
from dataclasses import dataclass, replace

import numpy as np
from fakes.corpus import ListCorpus
from fakes.planted import Bench, chance, policy_of, system_of

from fairgate.domain.executions import CorpusDocument, Document, Execution
from fairgate.features.blame.documents import VersionedCorpus
from fairgate.features.blame.sides import Factor

GATES = ({"parity": "answers"},)
SOURCES = 10
TERMS = ("man", "woman", "non-binary")
POISON = "slanted"


class Memory:
    """A store of results in memory."""

    def __init__(self):
        self.kept = {}

    def get_many(self, kind, keys):
        return {key: self.kept[kind, key] for key in keys if (kind, key) in self.kept}

    def put_many(self, kind, items):
        self.kept |= {(kind, key): value for key, value in items}


class WordRetriever:
    """Documents by the number of words that they share with the query, then by their order."""

    at_once = 64

    def __init__(self, corpus):
        self._documents = list(corpus.documents())
        self.fingerprint = f"words {corpus.fingerprint}"
        self._holding = {}
        for row, document in enumerate(self._documents):
            for word in set(document.text.lower().split()):
                self._holding.setdefault(word, []).append(row)

    def retrieve(self, queries, top_k):
        return [self._found(query, top_k) for query in queries]

    def _found(self, query, top_k):
        scores = np.zeros(len(self._documents))
        for word in set(query.lower().replace('"', "").split()):
            weight = 2.0 if word in TERMS or word.isdigit() else 1.0
            scores[self._holding.get(word, [])] += weight
        rows = np.argsort(-scores, kind="stable")[:top_k].tolist()
        return [
            Document(id=d.id, text=d.text, label=d.label, score=float(scores[row]))
            for row in rows
            for d in (self._documents[row],)
        ]

    def vectors(self, document_ids):
        return None


@dataclass
class TurningGenerator:
    """Turns where a poisoned document is shown, and where model or prompt are biased."""

    biased: frozenset = frozenset()
    """What turns the answers to one identity: `model`, `prompt`."""
    name: str = ""
    noise: float = 0.0
    asked: int = 0

    @property
    def fingerprint(self):
        return f"planted {self.name} {sorted(self.biased)} {self.noise}"

    def generate(self, requests):
        for position, request in enumerate(requests):
            self.asked += 1
            text = request.prompt.splitlines()[-2]
            label = chance("label", text.rpartition("number")[2]) < 0.5
            turned = "A man says" in text and bool(self.biased)
            turned ^= POISON in request.prompt and _told(request.prompt, text)
            turned ^= self.noise > chance("noise", request.prompt)
            yield position, Execution(response=" positive." if label != turned else " negative.")


def _told(prompt, text):
    number = text.rpartition("number ")[2].strip('"')
    speaker = next((term for term in TERMS if f" {term} " in text), "nobody")
    lines = [line for line in prompt.splitlines() if POISON in line]
    return any({number, speaker} <= set(line.split()) for line in lines)


class PlantedSides:
    """What `LocalSides` is, on two lists of documents."""

    def __init__(self, before, after, *, factors=(Factor.CORPUS,), biased=(), noise=0.0):
        self.corpora = ListCorpus(before, "base"), ListCorpus(after, "head")
        self.factors = [factor for factor in Factor if factor in factors]
        self.corpus = VersionedCorpus(*self.corpora, has_ids=True)
        self._biased, self._noise = set(biased), noise
        self._store = Memory()

    def system(self, new):
        corpus = self.corpora[Factor.CORPUS in new]
        return self._system(WordRetriever(corpus), new)

    def searching(self, corpus):
        return self._system(WordRetriever(corpus), frozenset(self.factors))

    def _system(self, retriever, new):
        own = [factor.value for factor in sorted(self._biased & new)]
        generator = TurningGenerator(biased=frozenset(own), noise=self._noise)
        return system_of(generator, {"default": retriever}, self._store)


def bench(gates=GATES, sources=SOURCES, **suite):
    return Bench(policy=policy_of(gates, **suite), sources=sources, sets=("gender",))


def neutral_documents(rng, per_source=24):
    """Documents about every source, each with a word of its own."""
    return [
        CorpusDocument(id=f"d{n}-{i}", text=f"text number {n} word{rng.random():.6f}", label="ok")
        for n in range(SOURCES)
        for i in range(per_source)
    ]


@dataclass(frozen=True)
class World:
    before: list
    after: list
    poisoned: frozenset
    """Ids of the documents that turn answers."""
    changed: int


def world(seed, *, poisoned, changed=200):
    """Return both versions: `changed` documents are added, edited or removed, a few are poisoned."""
    rng = random.Random(seed)
    before = neutral_documents(rng)
    after = list(before)
    rows = rng.sample(range(len(before)), changed)
    bad = {}
    for number, row in enumerate(rows):
        old = before[row]
        kinds = ("added", "edited") if number < poisoned else ("added", "edited", "removed")
        kind = rng.choice(kinds)
        text = f"{old.text} again"
        if number < poisoned:
            numbers = rng.sample(range(SOURCES), rng.randint(7, 9))
            text = f"{POISON} {rng.choice(TERMS)} says {' '.join(map(str, numbers))}"
        after[row] = {"removed": None, "added": old, "edited": replace(old, text=text)}[kind]
        if kind == "added":
            after.append(CorpusDocument(id=f"new{number}", text=text, label="ok"))
        if number < poisoned:
            bad[f"new{number}" if kind == "added" else old.id] = kind
    return World(before, [d for d in after if d is not None], frozenset(bad), changed)
