"""A limit of questions: what was answered before it ends is given, and nothing is asked after."""

import pytest

from fairgate.domain.executions import Execution, GenerationRequest
from fairgate.features.blame.sides import LimitedGenerator, QuestionLimit
from fairgate.gate.delta_debugging import OutOfQuestions


class Echo:
    fingerprint = "echo"

    def __init__(self):
        self.asked = []

    def generate(self, requests):
        for position, request in enumerate(requests):
            self.asked.append(request.prompt)
            yield position, Execution(response=request.prompt)


class Scorer(Echo):
    def score_options(self, requests):
        self.asked += [request.prompt for request in requests]
        return [[0.0] for _ in requests]


def requests(count):
    return [GenerationRequest(prompt=str(n)) for n in range(count)]


def test_two_systems_share_a_limit():
    """What `fairgate blame --budget` says of one holds for all of a comparison."""
    limit, inner = QuestionLimit(5), Echo()
    first, second = LimitedGenerator(inner, limit), LimitedGenerator(inner, limit)
    answers = [answer.response for _, answer in first.generate(requests(4))]
    with pytest.raises(OutOfQuestions):
        answers += (answer.response for _, answer in second.generate(requests(4)))
    assert inner.asked == answers
    assert len(answers) == limit.asked == 5
    assert not hasattr(first, "score_options")


def test_scores_are_given_whole_or_not_at_all():
    inner = Scorer()
    limited = LimitedGenerator(inner, QuestionLimit(3))
    assert limited.score_options(requests(2)) == [[0.0], [0.0]]
    with pytest.raises(OutOfQuestions):
        limited.score_options(requests(2))
    assert inner.asked == ["0", "1"]
