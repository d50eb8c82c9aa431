"""Lengths and frequencies of the shipped control prompts and identities."""

from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

from fairgate.policy.definition_files import collect_perturbation_sets, load_perturbation_set

SETS = ("race", "gender", "orientation", "age")
EMBEDDER = Path(__file__).parents[2] / "fairgate/data/models/minilm/tokenizer.json"


@cache
def tokenizer():
    """Return the embedder's tokenizer, whose vocabulary is sorted by frequency."""
    found = Tokenizer.from_file(str(EMBEDDER))
    found.no_padding()
    return found


def ranks(phrases, head):
    """Where a phrase's rarest word stands in the embedder's vocabulary, most frequent first.

    The words of BERT's vocabulary are sorted by how often Wikipedia and books have them; a word
    that is not in it counts as its rarest part. Articles and the head do not count.
    """
    found = []
    for phrase in phrases:
        words = phrase.split(" ", 1)[1]
        words = words.removesuffix(f" {head}")
        found.append(max(tokenizer().encode(words, add_special_tokens=False).ids))
    return found


def phrases_of_both():
    """Return name, phrases and head of the identities and of the pool, form by form."""
    pool = load_perturbation_set("neutral-phrases")
    sets, _, _ = collect_perturbation_sets(SETS, "neutral-phrases")
    named = [phrase for group in sets[:-1] for term in group.terms for phrase in term.phrases]
    asked = [term.noun_phrase for term in sets[-1].terms]
    neutral = [term.noun_phrase for term in pool.terms]

    def forms(phrases):
        marked = [each for each in phrases if pool.head in each.split() and len(each.split()) > 2]
        return marked, [each for each in phrases if each not in marked]

    groups = {"identities": named, "the pool": neutral, f"the {len(asked)} drawn": asked}
    return {name: forms(phrases) for name, phrases in groups.items()}, pool
