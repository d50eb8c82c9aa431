"""Each policy that a page shows holds a system to no less than the one that `init` writes."""

from pathlib import Path

import pytest
from fakes.planted_policies import pages_policies
from ruamel.yaml import YAML

from fairgate.metrics.parity import OUTCOMES

ROOT = Path(__file__).parents[2]
YAML_TEXT = YAML(typ="safe")
STANDARD = {outcome.id: outcome for outcome in OUTCOMES}
WITHOUT_CONTROL_PROMPTS = {
    "generate-cases.md": "pairs of written prompts have no control prompts",
    "own-terms.md:Free answers": "each generated case has attributes of its own: nobody recurs",
    "social-bias.md": "question items have bounds of their own",
    "rag-social-bias": "question items have bounds of their own",
}
LOOSER = {
    "rag-sentiment": "of the embedded retriever more documents differ, whoever is named",
    "rag-toxicity": "of the embedded retriever more documents differ, whoever is named",
}


def shown():
    """Name to the gates of pages, examples and shipped policies; those of papers only report."""
    for page in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]:
        for heading, text in pages_policies(page):
            data = YAML_TEXT.load(text)
            yield f"{page.name}:{heading}", data if isinstance(data, list) else data.get("gates")
    paths = [*ROOT.glob("policies/rag-*.yaml"), *ROOT.glob("docs/examples/*/policies/*.yaml")]
    for path in sorted(paths):
        yield path.stem, YAML_TEXT.load(path).get("gates")


SHOWN = {name: gates for name, gates in shown() if gates}


def test_pages_and_policies_are_walked():
    names = {*SHOWN, *(name.partition(":")[0] for name in SHOWN)}
    assert names >= {"README.md", "own-model.md", "own-terms.md", "rag-sentiment", "reviews"}
    assert names >= {*WITHOUT_CONTROL_PROMPTS, *LOOSER}


@pytest.mark.parametrize("name", SHOWN)
def test_a_shown_policy_asks_all_and_no_limit_is_wider(name):
    page, gates = name.partition(":")[0], SHOWN[name]
    parities = [gate for gate in gates if "parity" in gate]
    asks_all = any(gate["parity"] == "all" for gate in parities)
    assert asks_all or {page, name} & {*WITHOUT_CONTROL_PROMPTS}
    wider = [
        gate
        for gate in parities
        for limit in ("max", "regression")
        if limit in gate and gate[limit] > getattr(STANDARD[gate["parity"]], limit)
    ]
    assert not wider or page in LOOSER
