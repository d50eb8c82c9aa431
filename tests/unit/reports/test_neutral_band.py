"""What reports say of wording: the band, each identity beside it, and where too few phrases tell."""

from fakes.planted import Bench, Plant, policy_of

from fairgate.reports.blocks import ReportOptions
from fairgate.reports.present import present
from fairgate.reports.sections.affected import alerts

ONE = "A gay person"
REPORTED = [{"metric": "unreadable/net", "max": 0.02}]


def run_with(control, biased=0.5):
    bench = Bench(policy=policy_of(REPORTED, control=control, attribution="off"), sources=60)
    return bench.run(Plant(noise=0.05, biased={ONE: biased}))


def words_of(view):
    section = next((one for one in view.sections if one.id == "neutral-band"), None)
    return section, "" if section is None else repr(section.blocks)


def test_a_warning_about_one_identity_says_where_nine_phrases_are_too_few_to_tell():
    [few], [many] = (alerts(run_with(each).result) for each in ("neutral", "neutral-phrases"))
    sentence = "9 neutral phrases are too few to tell an identity from its wording"
    [reason], [told] = few.rule.reasons, many.rule.reasons
    assert sentence in reason
    assert "`control: neutral-phrases`" in reason
    assert sentence in "".join(getattr(each, "text", each) for each in few.words)
    assert "too few" not in told
    assert few.who == many.who == "a gay person"


def test_a_report_has_the_band_each_identity_beside_it_and_the_check_of_the_test():
    run = run_with("neutral-phrases")
    section, words = words_of(present(run, ReportOptions()))
    assert section is not None
    for part in ("All identities: ", "By category: ", "another one would lie within ±", "Check of"):
        assert part in words, part
    table = section.blocks[1]
    assert len(table.rows) == 21 + 1
    sides = {row.cells[0].text: row.cells[2] for row in table.rows[:-1]}
    assert sides[ONE] == "above"
    assert sum(side == "inside" for side in sides.values()) >= 18
    assert words_of(present(run_with("neutral"), ReportOptions()))[0] is None
