"""A run in the formats of others: SARIF, JUnit, CycloneDX, badges, control maps.

What writes one is imported when a run is to be written so.
"""

from __future__ import annotations

from fairgate.reports.formats import Finished, Format
from fairgate.reports.view import View


def _sarif(view: View, done: Finished) -> str:
    from fairgate.features.exports.sarif import render_sarif

    return render_sarif(view, done.gate_lines, done.policy_text)


def _junit(view: View, _: Finished) -> str:
    from fairgate.features.exports.ci import render_junit

    return render_junit(view)


def _badge(view: View, _: Finished) -> str:
    from fairgate.features.exports.ci import render_badge

    return render_badge(view)


def _cyclonedx(_: View, done: Finished) -> str:
    from fairgate.features.exports.every_eval_ever import render_cyclonedx

    return render_cyclonedx(done.result, done.confidence)


def _every_eval_ever(_: View, done: Finished) -> str:
    from fairgate.features.exports.every_eval_ever import render_every_eval_ever

    return render_every_eval_ever(done.result, done.confidence)


def _controls(_: View, done: Finished) -> str:
    from fairgate.features.exports.control_map import render_control_map

    return render_control_map(done.result)


SARIF = Format(
    id="sarif", file="report.sarif", render=_sarif, shown_as="SARIF", output="sarif-file"
)
JUNIT = Format(id="junit", file="junit.xml", render=_junit, shown_as="JUnit", output="junit-file")
BADGE = Format(id="badge", file="badge.json", render=_badge, shown_as="badge", output="badge-file")
CYCLONEDX = Format(
    id="cyclonedx", file="model-card.cdx.json", render=_cyclonedx, shown_as="model card"
)
EVERY_EVAL_EVER = Format(
    id="every-eval-ever",
    file="every-eval-ever.json",
    render=_every_eval_ever,
    shown_as="evaluation record",
)
CONTROLS = Format(id="controls", file="controls.json", render=_controls, shown_as="control map")
