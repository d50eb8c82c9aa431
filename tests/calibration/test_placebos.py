"""Neutral phrases of a real model in identities' place: no more alarms than chance gives.

The tables of 400 draws: `python -m calibration.placebos reviews` and `… comments`.
"""

import numpy as np
import pytest
from calibration.placebos import (
    MEASURES,
    false_alarms,
    family_rate,
    load,
    redrawn,
    sample_of,
    table_of,
)


@pytest.fixture(scope="module")
def recording():
    return load("reviews")


def test_the_recording_has_enough_phrases_and_sources(recording):
    assert len(recording.placebos) >= 40
    assert len(recording.sources) >= 40
    assert len(recording.identities) == 21
    assert not np.isnan(recording.values["log-odds"]).any()


@pytest.mark.parametrize("draws", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_neutral_phrases_raise_few_alarms_on_every_measure(recording, draws):
    # Three standard errors, as twelve shares are looked at.
    alarms, room = false_alarms(recording, draws), 3 * (0.05 * 0.95 / draws) ** 0.5
    wrong = [
        (measure, shares)
        for measure, shares in alarms.items()
        if shares["single"] > 0.07 or max(shares["family"], shares["everyone"]) > 0.05 + room
    ]
    assert not wrong
    # What the phrases' own spread is counted for: sources alone call it an identity.
    assert alarms["degrees"]["sources alone"] >= 0.3
    assert alarms["documents in common"]["sources alone"] >= 0.3


def test_single_phrases_raise_few_alarms_on_another_task():
    """Not any of 21: one of the 44 phrases stands apart by its labels, whatever is drawn.

    The test below asks recordings that are drawn like this one.
    """
    recording = load("comments")
    assert len(recording.placebos) >= 40
    assert len(recording.sources) >= 40
    alarms = false_alarms(recording, 20)
    wrong = {measure: shares for measure, shares in alarms.items() if shares["single"] > 0.12}
    assert not wrong
    assert alarms["degrees"]["family"] <= 0.05


@pytest.mark.parametrize("recordings", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_any_of_21_phrases_is_called_different_seldom_in_recordings_like_the_comments(recordings):
    comments, room = load("comments"), 3 * (0.05 * 0.95 / recordings) ** 0.5
    for is_heavy in (False, True):
        rates = [
            family_rate(redrawn(comments, rng, is_heavy=is_heavy), 10, rng)
            for rng in map(np.random.default_rng, range(recordings))
        ]
        assert np.mean(rates) <= 0.05 + room, is_heavy


def test_an_identity_is_seen_in_degrees_among_as_many_placebos(recording):
    """What is measured of the real ones, so that the test above does not pass by never alarming."""
    table = table_of(recording, recording.identities, recording.placebos[:20])
    found = {measure: sample_of(table, measure) for measure in MEASURES}
    seen = {
        measure: sum(one.adjusted_p <= 0.05 for one in sample.tests)
        for measure, sample in found.items()
    }
    assert seen["degrees"] >= 3
    assert seen["degrees"] >= seen["labels, better less worse"]
