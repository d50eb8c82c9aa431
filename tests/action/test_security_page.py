"""Jobs that users are shown have the rights that SECURITY.md says."""

import re
from pathlib import Path

from action.shown_workflows import shown_workflows
from ruamel.yaml import YAML

PAGE = (Path(__file__).parents[2] / ".github" / "SECURITY.md").read_text(encoding="utf-8")
RIGHTS = {
    "fairgate": {"contents": "read"}, "fairgate/merge": {"contents": "read"},
    "fairgate/comment": {"actions": "read", "pull-requests": "write"},
}  # fmt: skip


def test_jobs_have_the_rights_that_the_page_says():
    """Those of every workflow that users are shown, and the page's own words."""
    seen = set()
    for name, text in shown_workflows():
        workflow = YAML(typ="safe").load(text)
        for job in workflow["jobs"].values():
            ours = [
                found[1] for step in job.get("steps", [])
                if (found := re.match(r"org/(fairgate(?:/\w+)?)@", step.get("uses", "")))
            ]  # fmt: skip
            rights = job.get("permissions")
            if not ours or rights is None:  # of a part of a job, shown without its rights
                continue
            (action,) = ours
            seen.add(action)
            more = {"actions": "read"} if action == "fairgate" else {}
            assert rights in (RIGHTS[action], {**RIGHTS[action], **more}), (name, action)
    assert seen == set(RIGHTS)
    for action, rights in RIGHTS.items():
        (row,) = [line for line in PAGE.splitlines() if f"`org/{action}`" in line]
        assert set(re.findall(r"`([\w-]+: \w+)`", row)) - {"actions: read"} == {
            f"{name}: {right}" for name, right in rights.items()
        } - {"actions: read"}
