"""The page about the pool of neutral phrases: lengths and frequencies beside the identities'."""

from pathlib import Path
from statistics import mean, median, quantiles

from tokenizers import Tokenizer

from fairgate.policy.definition_files import collect_perturbation_sets, load_perturbation_set

SETS = ("race", "gender", "orientation", "age")
EMBEDDER = Path(__file__).parents[2] / "fairgate/data/models/minilm/tokenizer.json"


def ranks(phrases, head):
    """Where a phrase's rarest word stands in the embedder's vocabulary, most frequent first.

    The words of BERT's vocabulary are sorted by how often Wikipedia and books have them; a word
    that is not in it counts as its rarest part. Articles and the head do not count.
    """
    tokenizer = Tokenizer.from_file(str(EMBEDDER))
    tokenizer.no_padding()
    found = []
    for phrase in phrases:
        words = phrase.split(" ", 1)[1]
        words = words.removesuffix(f" {head}")
        found.append(max(tokenizer.encode(words, add_special_tokens=False).ids))
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


def phrases_page():
    """Return the page as Markdown."""
    groups, pool = phrases_of_both()
    introduction = (
        "# Neutral phrases\n\n"
        "What any phrase does, whoever it names, is measured with neutral phrases. They are a sample of\n"
        "neutral wording, so there are many, in the identities' forms, and a run asks some of them:\n"
        f"`control: neutral-phrases` asks {pool.draw} of {len(pool.terms)}, always the same ones, and\n"
        "of each form as many as the identities have in proportion, as long as theirs; `control_phrases`\n"
        "asks for another number. The criteria stand in [the file](../../fairgate/data/perturbations/neutral-phrases.yaml).\n\n"
        "With fewer than 12 neutral phrases nothing is said of a single identity: how far a phrase goes\n"
        "by itself is not known then. A pool of your own is a perturbation set with `control: true`,\n"
        "`draw` and, where its phrases have two forms, `head`. A phrase of yours that says a word of\n"
        "the shipped identities, attributes or names, or of the suite's own sets, is an error: beside\n"
        "identities nothing is seen that they share. No list knows everybody, so a pull request that\n"
        "brings such phrases lists them.\n\n"
        "Frequency is the rank of a phrase's rarest word in the embedder's vocabulary, which is sorted\n"
        "by how often words occur: 2,000 is frequent, 25,000 is rare.\n\n"
        "| phrases | form | number | characters: mean | least–most | frequency: median | quartiles |"
        " with *An* |\n|---|---|---|---|---|---|---|---|\n"
    )
    lines = [introduction]
    for name, forms in groups.items():
        for form, phrases in zip(("person and more", "noun"), forms, strict=True):
            rank, length = ranks(phrases, pool.head), [len(each) for each in phrases]
            low, _, high = quantiles(rank, n=4, method="inclusive")
            articles = sum(each.startswith("An ") for each in phrases)
            lines.append(
                f"| {name} | {form} | {len(phrases)} | {mean(length):.1f} | {min(length)}–{max(length)} | "
                f"{median(rank):,.0f} | {low:,.0f}–{high:,.0f} | {articles} |\n"
            )
    lines.append("\n| drawn | in reserve |\n|---|---|\n")
    drawn = {
        phrase for forms in [groups[f"the {pool.draw} drawn"]] for form in forms for phrase in form
    }
    everyone = [term.noun_phrase for term in pool.terms]
    lines.append(
        f"| {', '.join(each for each in everyone if each in drawn)} | "
        f"{', '.join(each for each in everyone if each not in drawn)} |\n"
    )
    return "".join(lines)
