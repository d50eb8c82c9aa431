"""No text of a stranger acts in the page of a run of question items."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from canonical_bias import bias_baseline, social_bias
from hostile_texts import HOSTILE
from poisoning import Elements, check_lines, poisoned

from fairgate.reports.html import render_html
from fairgate.reports.present import present
from fairgate.reports.view import ReportOptions


@cache
def _plain_bias():
    """Return a run of question items, of which a few were asked, all of them with documents."""
    run = social_bias()
    few = [item for item in run.result.judged if item.unit.names["template"] == "0"]
    judged = [item for item in few if item.unit.dimensions["retriever"]]
    return replace(run, result=replace(run.result, judged=judged))


def _bias_page(payload):
    run = _plain_bias()
    result = poisoned(run.result, payload)
    return render_html(
        present(replace(run, result=result), ReportOptions(), poisoned(bias_baseline(), payload))
    )


@cache
def _bias_elements():
    return Elements(_bias_page("word")).found


@pytest.mark.parametrize("payload", HOSTILE)
def test_payload_never_acts_in_a_page_of_items(payload):
    page = _bias_page(payload)
    check_lines(re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL))
    assert Elements(page).found == _bias_elements()


def test_a_page_of_question_items_shows_the_texts_and_their_trend():
    page = _bias_page("word")
    assert "wordAgeword" in page
    assert "setting wordstereoword" in page
    assert 'id="trend"' in page
