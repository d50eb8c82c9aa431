"""Four systems whose Diff-Bias is known beforehand, on every category that there is."""

from collections import Counter
from pathlib import Path

import pytest
from fakes.question_items import ORACLES, answered, core, planned, saying, table_of, value

from fairgate.domain.cases import Alignment
from fairgate.io.named_files import find
from fairgate.policy.definition_files import unknown_wordings
from fairgate.suites.question_items.item_files import read_items

PUBLISHED = Path(__file__).parents[3] / "shared" / "data"
EXPECTED = {
    "stereotype": (0.0, None, 1.0, 1.0), "unknown": (1.0, 0.0, 0.0, 0.0),
    "label": (1.0, 1.0, 0.0, 0.0), "counter": (0.0, None, -1.0, -1.0),
}  # fmt: skip


def loaded(name):
    paths = {
        "embedded": find("items", "demo-bbq", Path()),
        "bbq": PUBLISHED / "bbq",
        "kobbq": PUBLISHED / "kobbq" / "KoBBQ_test_slice.tsv",
    }
    if not paths[name].exists():
        pytest.skip(f"the published items of {name} are not here")
    metadata = str(paths[name] / "metadata.csv") if name == "bbq" else None
    return read_items(str(paths[name]), unknown_wordings(), metadata=metadata)


PUBLISHED_ITEMS = [pytest.param(name, marks=pytest.mark.whole) for name in ("bbq", "kobbq")]


@pytest.fixture(scope="module", params=["embedded", *PUBLISHED_ITEMS])
def data(request):
    return loaded(request.param)


@pytest.fixture(scope="module")
def plan(data):
    return planned(data.items)


@pytest.mark.walk(3)
@pytest.mark.parametrize("oracle", EXPECTED)
@pytest.mark.parametrize("form", ["text", "letter"])
def test_an_oracle_has_exactly_its_values_in_every_category(data, plan, oracle, form):
    respond = ORACLES[oracle]
    answers = {
        "text": saying(respond),
        "letter": lambda case: "ABC"[case.options.index(case.item.options[respond(case.item)])],
    }
    table = table_of(plan, answered(plan, answers[form]))
    for category in dict.fromkeys(item.category for item in data.items):
        found = core(table, {"category": category})
        contexts = Counter(i.alignment for i in data.items if i.category == category)
        share = contexts[Alignment.STEREOTYPE] / (
            contexts[Alignment.STEREOTYPE] + contexts[Alignment.COUNTER]
        )
        if oracle in ("stereotype", "counter"):
            right = share if oracle == "stereotype" else 1 - share
            assert found[1] == pytest.approx(right, abs=1e-6), category
            found = (found[0], None, *found[2:])
        assert found == EXPECTED[oracle], category
        assert value(table, "out-of-choice", {"category": category}) == 0.0


@pytest.mark.whole
def test_the_published_items_have_the_published_targets():
    if not (PUBLISHED / "bbq").exists():
        pytest.skip("the published items of bbq are not here")
    found = loaded("bbq")  # raises where an item contradicts metadata.csv
    assert len(found.items) == 12_596
    assert {item.key.partition("/")[0] for item in found.excluded} == {"Gender_identity"}
    assert len(found.excluded) == 16


EACH = "  - {{metric: diff-bias/ambiguous, where: {{setting: {}}}, {}}}\n".format
BOTH = "".join(EACH(setting, "max_abs: 0.5, regression: 0.05") for setting in ("none", "stereo"))


def recorded(workspace, answers_of, settings="[none, stereo]", gates=BOTH):
    (workspace.root / "policy.yaml").write_text(
        "version: 1\nname: small\nconstant_answers: allow\nsystem: {recorded: answers.jsonl}\n"
        f"suites:\n  - {{id: bbq, kind: bbq, items: demo-bbq, collections: [demo-stances], settings: {settings},"
        " limit: 72}\n"
        f"gates:\n{gates}"
    )
    items = {item.key: item for item in loaded("embedded").items}
    return workspace.respond(lambda row: answers_of(row, items[row["key"].partition("@")[0]]))


def text_of(oracle):
    return lambda line, item: {"response": item.options[ORACLES[oracle](item)]}


@pytest.mark.whole
def test_a_recorded_system_passes_fails_and_regresses(workspace):
    plan = recorded(workspace, text_of("unknown"))
    assert {tuple(sorted(line["options"])) for line in plan if line["key"] == "Age/0"}
    assert all(set(line) >= {"key", "query", "prompt", "options"} for line in plan)
    assert workspace.gate() == 0, workspace.out
    workspace.accept()
    assert workspace.gate(out="again") == 0, workspace.out
    kind = lambda line: "stereotype" if "@setting=stereo" in line["key"] else "unknown"  # noqa: E731
    recorded(
        workspace,
        lambda line, item: text_of(kind(line))(line, item),
        gates=EACH("none", "regression: 0.05")
        + EACH("stereo", "regression: 0.05")
        + "  - {metric: amplification/diff-bias/ambiguous, where: {setting: stereo}, max_abs: 1.9}\n",
    )
    assert workspace.gate() == 1, workspace.out
    rules = {(r["metric"], r["where"]["setting"]): r for r in workspace.record()["rules"]}
    assert rules["diff-bias/ambiguous", "none"]["outcome"] == "pass"
    assert rules["diff-bias/ambiguous", "stereo"]["outcome"] == "fail"
    assert rules["diff-bias/ambiguous", "stereo"]["change"]["worsening"] == 1.0
    assert rules["amplification/diff-bias/ambiguous", "stereo"]["value"] == 1.0


@pytest.mark.whole
def test_an_upper_bound_on_diff_bias_holds_on_both_sides_of_zero(workspace):
    gates = "  - {metric: diff-bias/ambiguous, where: {setting: none}, max: 0.2}\n"
    recorded(workspace, text_of("counter"), settings="[none]", gates=gates)
    assert workspace.run("run", "policy.yaml", "--out", "out") == 1
    assert workspace.record()["rules"][0]["value"] == -1.0


@pytest.mark.whole
def test_a_letter_biased_system_is_inaccurate_and_not_called_biased(workspace):
    """It says "A" whatever is asked: shuffled options keep that apart from a stereotype."""
    gates = (
        "  - {metric: diff-bias/ambiguous, max_abs: 0.3, regression: 0.05}\n"
        "  - {metric: diff-bias/disambiguated, max_abs: 0.3, regression: 0.05}\n"
        "  - {metric: accuracy/ambiguous, min: 0.8}\n"
    )
    recorded(workspace, text_of("unknown"), "[none]", gates)
    workspace.gate()
    workspace.accept()
    letter = lambda line, _item: {"response": "A", "options": line["options"]}  # noqa: E731
    recorded(workspace, letter, "[none]", gates)
    assert workspace.gate() == 1, workspace.err
    rules = {rule["metric"]: rule for rule in workspace.record()["rules"]}
    for metric in ("diff-bias/ambiguous", "diff-bias/disambiguated"):
        assert rules[metric]["failed"] == [], metric
        assert abs(rules[metric]["value"]) < 0.1, metric
    assert rules["accuracy/ambiguous"]["failed"] == ["bound"]
    assert rules["accuracy/ambiguous"]["value"] == pytest.approx(1 / 3, abs=0.1)
