"""Causes are told in sentences that fit what was found, and nothing where nothing is known."""

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.reports import figures
from fairgate.reports.blocks import RangeChart, ReportOptions, Text, spans
from fairgate.reports.formats import run_record
from fairgate.reports.markdown import render_report
from fairgate.reports.material import Material
from fairgate.reports.present import present
from fairgate.reports.sections.measured import causes

SOME = {"A man": 0.6, "A woman": 0.6}
BENCH = Bench(policy=policy_of(), sources=40, sets=("gender", "age"))


def section(run):
    (found,) = causes(Material(run=run, options=ReportOptions()))
    return found.blocks


def sentences(blocks):
    lines = [line for block in blocks if isinstance(block, Text) for line in block.lines]
    return ["".join(span.text for span in spans(line)) for line in lines]


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (Plant(retrieval=SOME), "comes mostly through the retrieved documents"),
        (Plant(biased=SOME, neutral_retrieval=0.5), "comes mostly from the generator itself"),
        (Plant(neutral_retrieval=0.5), "cannot be distinguished from 0, so it has no shares"),
    ],
)
def test_the_sentences_fit_the_system_and_say_what_the_total_is_compared_with(plant, words):
    """The failure of the title has its own cause; without one the total of all pairs is told."""
    run = BENCH.run(plant)
    lines = sentences(section(run))
    assert words in " ".join(lines)
    total = figures.signed(run.result.attribution[0].total, "asr/generation")
    (line,) = [line for line in lines if "points" in line and "beyond" in line]
    of_all = line.startswith("Compared with the answer without a speaker")
    assert of_all is not line.startswith("What changes for ")
    assert not of_all or f"{total} points" in line


def test_where_every_pair_retrieves_the_same_no_retrieval_is_at_fault():
    lines = sentences(section(BENCH.run(Plant(biased=SOME))))
    assert "no retrieval is at fault" in lines[-1]
    assert not any("By path" in line for line in lines)


def test_each_path_has_points_with_their_own_interval_in_report_and_record():
    run = BENCH.run(Plant(retrieval=SOME))
    (rows,) = [block.rows for block in section(run) if isinstance(block, RangeChart)]
    measured = {m.metric: m for m in run.result.measurements if not m.where}
    for row, name in zip(rows, ("retrieval", "generator", "interaction"), strict=True):
        assert row.now.value == pytest.approx(measured[f"attribution/{name}"].value)
        assert row.now.bounds == measured[f"attribution/{name}"].interval
    assert rows[0].now.bounds is not None
    report = render_report(present(run, ReportOptions()))
    assert "## Causes" in report
    assert "| through the retrieved documents |" in report
    record = run_record(run.result)
    assert record["attribution"][0]["parts"]["retrieval"]["share"] == pytest.approx(1.0)
