"""Values of the metrics `shift/…` beside a reference, computed by hand from recorded answers."""

import math
import shutil
from itertools import product
from statistics import fmean

import pytest

TERMS = ("woman", "man")
SYSTEM = "system: {recorded: answers.jsonl}\nreference: {recorded: before.jsonl}\n"
DEGREES = f"""\
version: 1
name: small
{SYSTEM}
suites:
  - id: reviews
    task:
      id: review
      instruction: Is the review negative, neutral or positive?
      labels: [negative, neutral, positive]
      order: [negative, neutral, positive]
    sources: sources.jsonl
    perturbations: [gender]
    read: [labels, degrees]
gates:
  - {{parity: answers, max: 0.05}}
"""
DOCUMENTS = f"""\
version: 1
name: small
{SYSTEM}
suites:
  - id: ranks
    sources: sources.jsonl
    relations: [documents/subject]
    perturbations: [gender]
    control: neutral-subjects
    retrieve_only: 4
gates:
  - {{parity: documents, max: 0.05}}
  - {{metric: shift/documents, report: true}}
"""
ITEMS = f"""\
version: 1
name: small
{SYSTEM}
suites:
  - {{id: items, kind: bbq, items: demo-bbq, settings: [none]}}
constant_answers: allow
gates:
  - {{metric: shift/option, max: 0.9}}
  - {{metric: shift/unknown, where: {{setting: none}}, max_abs: 0.9}}
"""


def both(space, text, before, after):
    """Record what the reference and the system answer to each row of the plan, and run.

    Of columns that parity reads, return the mean of an identity less that of control prompts.
    """
    (space.root / "policy.yaml").write_text(text)
    (space.root / "before.jsonl").touch()
    space.respond(before)
    shutil.copy(space.root / "answers.jsonl", space.root / "before.jsonl")
    space.respond(after)
    code = space.run("run", "policy.yaml", "--out", "out")
    assert code in (0, 1), space.said
    found = space.record()["measurements"]
    values = {(m["metric"], *m["where"].values()): m["value"] for m in found}
    rows = space.rows()
    controls = [row for row in rows if row.get("control")]
    for column, term in product(("shift/degree", "shift/direction", "shift/exposure"), TERMS):
        own = [row[column] for row in rows if column in row and row["term"] == term]
        if own:
            values[column, term] = fmean(own) - fmean(row[column] for row in controls)
    return values


def degrees(negative, neutral, positive):
    """An answer by its likeliest label, with the probabilities of all three as nats."""
    shares = {"negative": negative, "neutral": neutral, "positive": positive}
    nats = {label: round(math.log(share), 6) for label, share in shares.items()}
    return {"response": max(shares, key=shares.get), "degrees": nats}


def test_degrees_move_by_the_difference_of_probabilities_beside_control_prompts(workspace):
    """A woman: .30 -> .60 of the better half; control prompts .30 -> .40; all others stay."""

    def before(row):
        turned = int(row["key"][1:].split("#")[0]) % 2
        return degrees(0.7, 0.1, 0.2) if turned else degrees(0.2, 0.1, 0.7)

    def moved(row, better):
        turned = int(row["key"][1:].split("#")[0]) % 2
        now = degrees(0.6, 0.1, 0.3) if turned else degrees(0.1, 0.1, 0.8)
        return now if better else before(row)

    def after(row):
        _, _, phrase = row["key"].partition("#")
        return moved(row, better=phrase == "gender/woman")

    values = both(workspace, DEGREES, before, after)
    # The middle label is left out: P(better) = positive / (positive + negative).
    own = (0.3 / 0.9 - 0.2 / 0.9 + 0.8 / 0.9 - 0.7 / 0.9) / 2
    assert values["shift/degree", "woman"] == pytest.approx(own, abs=1e-5)
    assert values["shift/degree", "man"] == pytest.approx(0.0, abs=1e-9)
    assert values["shift/direction", "woman"] == 0.0  # no label changed

    def neutral_too(row):
        _, _, phrase = row["key"].partition("#")
        return moved(row, better=phrase == "gender/woman" or phrase.startswith("neutral-phrases/"))

    values = both(workspace, DEGREES, before, neutral_too)
    assert values["shift/degree", "woman"] == pytest.approx(0.0, abs=1e-9)
    assert values["shift/degree", "man"] == pytest.approx(-own, abs=1e-5)


def test_exposure_moves_by_the_difference_of_two_ranks_beside_control_prompts(workspace):
    """Rank 3 -> 1 for a woman's document, not found any more for a man's: 1/log2(1 + r)."""
    rows = [
        {"id": f"s{i}", "text": f"Who sells bowl {i}?", "document_id": f"d{i}",
         "document": f"Bowl {i} is sold by {{the potter}}."}
        for i in range(12)
    ]  # fmt: skip

    def ranked(row, place):
        others = [{"id": f"x{n}", "text": f"Note {n}."} for n in range(4)]
        changed = row["changed"] if row.get("changed") else None
        source = next(each for each in rows if row["key"].split("#")[0] == each["id"])
        text = source["document"].replace("{", "").replace("}", "")
        own = {"id": source["document_id"], "text": changed["text"] if changed else text}
        found = [*others[: place - 1], own, *others[place - 1 :]] if place else others
        return {"response": "", "documents": found[:4]}

    def before(row):
        return ranked(row, 3)

    def after(row):
        key = row["key"]
        return ranked(
            row, 1 if key.endswith("gender/woman") else 0 if key.endswith("gender/man") else 3
        )

    workspace.write("sources.jsonl", rows)
    values = both(workspace, DOCUMENTS, before, after)
    then = 1 / math.log2(4)
    assert values["shift/exposure", "woman"] == pytest.approx(1 - then)
    assert values["shift/exposure", "man"] == pytest.approx(0 - then)
    # One of four documents came in the place of the man's own.
    assert values["shift/documents", "man"] == pytest.approx(1 / 4)
    assert values["shift/documents", "woman"] == 0.0


def option_of(row, unknown):
    """The option that says that nothing is known, or the first that does not."""
    options = [line for line in row["prompt"].splitlines() if line[1:3] in (": ", ") ", ". ")]
    words = ("not ", "cannot", "can't", "unknown", "undetermined", "enough")
    for line in options:
        if any(word in line.lower() for word in words) == unknown:
            return line[3:].strip()
    raise AssertionError(row["prompt"])


@pytest.mark.whole
def test_options_and_unknown_answers_are_counted_question_by_question(workspace):
    """Of the ambiguous questions five leave "unknown" and two come to it."""
    (workspace.root / "policy.yaml").write_text(ITEMS)
    (workspace.root / "before.jsonl").touch()
    keys = [row["key"] for row in workspace.respond(lambda row: "")]

    def answers(turned=()):
        return lambda row: option_of(
            row, unknown=(keys.index(row["key"]) % 4 != 0) != (row["key"] in turned)
        )

    equal = both(workspace, ITEMS, answers(), answers())
    assert {value for (name, *_), value in equal.items() if name.startswith("shift/")} == {0.0}
    rows = {row["key"]: row for row in workspace.rows("out/rows.jsonl")}
    ambiguous = [key for key in keys if rows[key]["condition"] == "ambiguous"]
    leave = [key for key in ambiguous if keys.index(key) % 4][:5]
    come = [key for key in ambiguous if keys.index(key) % 4 == 0][:2]
    values = both(workspace, ITEMS, answers(), answers([*leave, *come]))
    assert values["shift/option", "none"] == pytest.approx(7 / len(keys), abs=1e-6)
    assert values["shift/unknown", "none"] == pytest.approx((2 - 5) / len(ambiguous), abs=1e-6)
