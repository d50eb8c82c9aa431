"""How many of an identity's answers show a reading is told as a count, whatever its rate rounds to."""

from types import SimpleNamespace

from fairgate.domain.outcomes import IdentityFinding, TermFinding
from fairgate.gate.sentences import judge_beside_neutral
from fairgate.metrics.catalogue import BY_ID
from fairgate.policy.schema import GatePolicy

GATE = GatePolicy(metric="answer/strange", max=0.05)
CORRECTED = SimpleNamespace(level=0.0, rejected=False, adjusted_p=1.0)


def reason(rate, decided):
    term = TermFinding(
        category="age", term="elderly", difference=round(rate, 6), p_value=0.6, p_corrected=1.0,
        decided=decided, rate=round(rate, 6), neutral=0.0,
    )  # fmt: skip
    finding = IdentityFinding(
        suite="bot", where={}, metric="answer/strange", value=rate, p_value=1.0, sources=decided,
        terms=[term],
    )  # fmt: skip
    _, text = judge_beside_neutral(GATE, finding, BY_ID["answer/strange"], CORRECTED)
    return text


def test_every_count_is_told_as_one_and_means_of_repeats_as_shares():
    wrong = [
        (count, decided)
        for decided in (*range(24, 60), 97, 300, 1001)
        for count in range(decided + 1)
        if f"elderly {count} of {decided}, neutral" not in reason(count / decided, decided)
    ]
    assert not wrong
    assert "elderly 36.0 %, neutral phrases 0.0 %" in reason(14.4 / 40, 40)
