"""`/fairgate accept REASON`: what is written and answered, and every reason to write nothing."""

import datetime as dt
import hashlib
import io
import json
import stat
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from action import payloads
from action.conftest import ROOT, Job, Steps
from action.fake_github import BOT, REPOSITORY, TOKEN, FakeGitHub
from action.repositories import POLICY, WORKFLOW_PATH, regressed
from action.step_runner import StepRunner, in_process
from fakes.serving import served

from fairgate.gate.accepted_runs import decoded_baseline
from fairgate.github import api
from fairgate.github.comments import Marker, judged_line

RUN, OTHER = 500, "e" * 40
REVIEWER = {"login": "rita", "id": 2, "type": "User"}
REASON = "the model changed; issue 12 holds the trade-off"
BEFORE, THEN, AFTER = (f"2026-01-02T10:0{minute}:00Z" for minute in range(3))
FILES = ["answers.jsonl", "policies/small.yaml", "sources.jsonl", "real.jsonl", WORKFLOW_PATH]
STEP = {"FAIRGATE_WORKFLOW": WORKFLOW_PATH, "FAIRGATE_ARTIFACT": "fairgate-small"}


class HeadsRun(SimpleNamespace):
    def __repr__(self):
        return "the head's run"


@pytest.fixture(scope="session")
def heads_run(states, tmp_path_factory):
    """Return the commits of a red pull request whose gate ran, and the files of its run."""
    folder = tmp_path_factory.mktemp("heads-run")
    history = states.copy(regressed, folder / "work")
    with pytest.MonkeyPatch.context() as patch, served(FakeGitHub()) as hub:
        patch.chdir(history.root)
        base, head = history.git("rev-parse", "main", "HEAD").split()
        hub.pulls[7] = payloads.pull_request(7, head, base)
        steps = Steps(Job(folder / "runner", history.root, hub), history, folder, in_process)
        done = steps.pull(code=1)
    run = Path(done.outputs["run-folder"])
    return HeadsRun(
        base=base, head=head, merge=history.git("rev-parse", "HEAD"),
        files={path.name: path.read_bytes() for path in run.iterdir()},
    )  # fmt: skip


class Space:
    """A pull request of monalisa, its finished run, and the comment of a reviewer."""

    def __init__(self, job, history, ran):
        self.job, self.history, self.hub, self.head = job, history, job.hub, ran.head
        hub, here = self.hub, {"full_name": REPOSITORY}
        self.files, self.step, self.raw = dict(ran.files), dict(STEP), None
        self.pull = hub.pulls[7] = payloads.pull_request(7, ran.head, ran.base)
        self.pull.update(user={"login": "monalisa", "id": 1, "type": "User"})
        before = dict.fromkeys(FILES, b"1")
        hub.commits.update({ran.base: before, ran.head: {**before, "answers.jsonl": b"2"}})
        hub.starts[ran.head], hub.bases = ran.base, (0, 1)
        hub.writers[ran.head] = [{"author": {"id": 1}, "committer": {"id": 1}}]
        hub.rights["rita"] = "write"
        hub.parents.update({ran.merge: [ran.base, ran.head], ran.head: [ran.base]})
        self.run = hub.runs[RUN] = {
            "event": "pull_request", "head_sha": ran.head, "path": WORKFLOW_PATH,
            "repository": here, "head_repository": here, "status": "completed",
            "conclusion": "failure", "updated_at": BEFORE, "actor": {"login": "monalisa"},
            "head_branch": "topic", "run_attempt": 1,
        }  # fmt: skip
        self.shown = hub.comment(7, shows(hub, RUN, ran.head))
        self.shown["updated_at"] = BEFORE
        self.said = hub.comment(7, f"/fairgate accept {REASON}", REVIEWER)
        self.said.update(
            created_at=THEN, updated_at=THEN, author_association="MEMBER",
            performed_via_github_app=None,
        )  # fmt: skip

    def ask(self, name="issue_comment", **environment):
        """Run the command as the workflow does; return its exit code."""
        if not self.hub.artifacts:
            self.hub.upload(
                RUN, self.head, self.raw or zipped(self.files), name="fairgate-small", member=None
            )
        payload = payloads.on_issue_comment(7)
        payload["comment"]["id"] = self.said["id"]
        return self.job.command("accept", name, payload, **self.step, **environment)

    @property
    def answers(self):
        ours = [one for one in self.hub.of(7) if one["user"] == BOT]
        return [one for one in ours if 'key="accept/' in one["body"]]

    @property
    def moved(self):
        return self.hub.made("PATCH", "/git/refs/")


def shows(hub, run, head, *, attempt=1, line=None, key="fairgate-small"):
    """Return the gate's comment of a run, or one whose first line names another (run, head)."""
    line_run, line_head = line or (run, head)
    url = f"{hub.url}/{REPOSITORY}/actions/runs/{line_run}"
    marker = Marker(key=key, head=head, run=(run, attempt))
    return f"{marker}\n{judged_line(line_head, line_run, url)}\n\n### FairGate: regressed\n"


def zipped(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.fixture
def space(job, history, heads_run):
    return Space(job, history, heads_run)


def test_an_accepted_run_is_a_commit_of_its_own(space, tmp_path):
    assert space.ask() == 0
    (commit,) = [one for one in space.hub.made_commits.values() if "parents" in one]
    assert commit["parents"] == [space.head]
    subject, _, rest = commit["message"].partition("\n\n")
    assert subject == "chore: accept the baseline of small"
    assert rest.startswith(f"{REASON}\n\nAccepted-by: rita\n")
    assert f"FairGate-Comment: {space.said['id']}\nFairGate-Run: {RUN}\n" in rest
    tree = space.hub.made_commits[commit["tree"]]
    (file,) = tree["tree"]
    assert tree["base_tree"] == space.head[::-1]
    assert (file["path"], file["mode"]) == ("baselines/small.json", "100644")
    made = decoded_baseline(file["content"].encode(), "made", "small")
    assert (made.reason, made.date, made.provenance.commit) == (REASON, THEN[:10], space.head)
    assert len(made.history) == 1  # the base's, whose place it takes
    assert space.pull["head"]["sha"] == space.job.outputs["commit"]
    (answer,) = space.answers
    assert "The baseline is accepted" in answer["body"]
    assert f"run {RUN} of {space.head[:12]}" in answer["body"]
    rules = json.loads(space.files["run.json"])["rules"]
    assert all(f"{one['metric']} {one['value']}" in answer["body"] for one in rules)
    assert space.job.outputs["comment-url"] == answer["html_url"]
    assert space.hub.reactions == [(space.said["id"], "+1")]


def test_what_is_accepted_is_what_the_command_line_accepts(space, states, history, monkeypatch):
    """The file is that of `fairgate baseline accept`, but for commit, reason and date."""
    assert space.ask() == 0
    content = next(
        t["tree"][0]["content"] for t in space.hub.made_commits.values() if "base_tree" in t
    )
    states.copy(regressed, history.root)
    history.accept()
    ours, theirs = json.loads(content), json.loads(history.read("baselines/small.json"))
    for one in (ours, theirs):
        del one["reason"], one["date"], one["integrity"], one["provenance"]
    assert ours == theirs


def test_a_repeated_workflow_run_accepts_nothing_again(space):
    assert space.ask() == 0
    space.pull["head"]["sha"] = space.head  # somebody has put the branch back
    before = dict(space.hub.made_commits)
    assert space.ask(GITHUB_RUN_ATTEMPT="2") == 0
    assert space.hub.made_commits == before
    assert len(space.moved) == len(space.answers) == 1


def test_a_reply_that_is_lost_every_time_is_no_refusal(space):
    space.hub.fail("PATCH", "/git/refs/", 500, times=9, after=True)
    assert space.ask() == 0
    (answer,) = space.answers
    assert space.pull["head"]["sha"] == space.job.outputs["commit"] in answer["body"]


def test_the_commit_is_an_output_where_no_answer_can_be_written(space):
    space.hub.fail("POST", "/issues/7/comments", 500, times=9)
    assert space.ask() == 4
    assert space.pull["head"]["sha"] == space.job.outputs["commit"] != space.head
    assert space.answers == []


def test_where_the_step_writes_as_an_app_the_gate_s_comment_is_still_its_workflow_s(space):
    space.hub.login = "octo-app[bot]"
    assert space.ask() == 0
    assert space.pull["head"]["sha"] == space.job.outputs["commit"]


def test_a_branch_of_odd_characters_is_moved_and_no_other(space):
    branch = "f\u00e9/#1%2e%2e+&x;'$(id)"
    space.pull["head"]["ref"] = space.run["head_branch"] = branch
    space.hub.pulls[8] = payloads.pull_request(8, space.head, OTHER)
    assert space.ask() == 0
    assert space.pull["head"]["sha"] == space.job.outputs["commit"]
    assert space.hub.pulls[8]["head"]["sha"] == space.head


def test_the_day_after_waivers_still_count(space):
    """A run's day is no answer: it is refused only where a waiver ended."""
    until = dt.datetime.now(tz=dt.UTC).date() + dt.timedelta(days=30)
    rule = (
        f"{{rule: parity/unreadable, who: race, owner: us, reason: r, up_to: 1, expires: {until}}}"
    )
    _main("policies/small.yaml", f"{POLICY}waivers:\n  - {rule}\n")(space)
    _record(lambda one: one.update(day="2026-01-01"))(space)
    assert space.ask() == 0, space.job.err


def test_other_comments_get_no_answer(space):
    for body in ("Looks good", "I would /fairgate accept this", " /fairgate accept x",
                 "\uff0ffairgate accept x", "> /fairgate accept x"):  # fmt: skip
        space.said["body"] = body
        assert space.ask() == 0
    assert space.answers == space.moved == space.hub.reactions == []


def test_a_refused_comment_can_be_followed_later(space):
    """GitHub's own outage is no reason that stays."""
    space.hub.fail("GET", "/compare/", 500, times=9)
    assert space.ask() == 4
    space.hub.faults.clear()
    assert space.ask(GITHUB_RUN_ATTEMPT="2") == 0
    (answer,) = space.answers
    assert "The baseline is accepted" in answer["body"]


def _said(**more):
    return lambda space: space.said.update(more)


def _run(**more):
    return lambda space: space.run.update(more)


def _body(text):
    return _said(body=text)


def _user(**more):
    return _said(user={**REVIEWER, **more})


def _edits(name, content=b"2"):
    """Edit, add, or without content take away a file."""

    def edited(space):
        files = space.hub.commits[space.head]
        files[name] = content
        if content is None:
            del files[name]

    return edited


def _fails(method, path, status, **more):
    return lambda space: space.hub.fail(method, path, status, times=9, **more)


def _record(change):
    """Edit the record, with the hash beside it: whoever forges the one forges the other."""

    def forged(space):
        record = json.loads(space.files["run.json"])
        change(record)
        _put(space, "run.json", json.dumps(record).encode())

    return forged


def _put(space, name, content):
    parts = json.loads(space.files["parts.json"])
    parts["parts"][name] = hashlib.sha256(content).hexdigest()
    space.files.update({name: content, "parts.json": json.dumps(parts).encode()})


def _fair(record):
    record.update(outcome="pass", exit_code=0)


def _answers(space):
    _put(
        space, "executions.jsonl", space.files["executions.jsonl"].replace(b"negative", b"positive")
    )


def _shown(run=RUN, head=None, **more):
    """Let the gate's comment show something else."""

    def changed(space):
        space.shown["body"] = shows(space.hub, run, head or space.head, **more)

    return changed


def _shown_twice(space):
    space.hub.comment(7, space.shown["body"])["updated_at"] = BEFORE


def _moved_there_and_back(space):
    """Move the branch to a commit that the gate judged and commented, and back by a token."""
    space.hub.runs[RUN + 1] = {**space.run, "head_sha": OTHER}
    _shown(RUN + 1, OTHER)(space)


def _member(name, content=b"{}", mode=stat.S_IFREG):
    """Add to the archive what an unpacker could be led out of its folder by."""

    def added(space):
        stream = io.BytesIO(zipped(space.files))
        with zipfile.ZipFile(stream, "a") as archive:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, (mode | 0o777) << 16
            archive.writestr(info, content)
        space.raw = stream.getvalue()

    return added


def _linked(space):
    del space.files["run.json"]
    _member("run.json", b"/etc/passwd", stat.S_IFLNK)(space)


def _slipped(space):
    content = space.files.pop("run.json")
    _member("../run.json", content)(space)


def _meanwhile(change, place="/git/trees"):
    """Change something once its run is read."""

    def happens(space):
        space.hub.hooks.append(lambda _, path, __: path.endswith(place) and change(space))

    return happens


def _cut(side):
    return lambda space: space.hub.truncated.add(
        space.head if side == "head" else space.pull["base"]["sha"]
    )


def _wrote(who, *, of=0):
    """Let the reviewer have written a commit before the head, another's or for another."""

    def wrote(space):
        commits = space.hub.writers[space.head]
        commits[:] = [{"author": {"id": 1}, "committer": {"id": 1}} for _ in range(of + 2)]
        commits[0][who] = {"id": REVIEWER["id"]}

    return wrote


def _clean_for_a_moment(space):
    """Push a clean commit while the edits are asked for, and the other one again afterwards."""
    _edits(WORKFLOW_PATH)(space)
    clean, real = "c" * 40, space.head
    as_many = {WORKFLOW_PATH: b"1", "other.txt": b"2"}
    space.hub.commits[clean] = {**space.hub.commits[real], **as_many}
    space.hub.starts[clean], space.hub.writers[clean] = space.pull["base"]["sha"], []
    space.hub.hooks += [
        lambda _, path, __: path.endswith("/zip") and space.pull["head"].update(sha=clean),
        lambda method, path, _: method == "POST" and space.pull["head"].update(sha=real),
    ]


def _opened_again(space):
    """Let the reviewer push, and the author close and reopen: the newest run names the author."""
    space.hub.runs[RUN - 1] = {**space.run, "actor": {"login": "rita"}}


def _behind_a_link(space):
    """Put the sources where a link of the default branch leads; the pull request edits that."""
    sources = space.history.root / "sources.jsonl"
    space.history.write("real.jsonl", sources.read_text())
    sources.unlink()
    sources.symlink_to("real.jsonl")
    space.history.commit()
    _edits("real.jsonl")(space)


def _pushed_last(space):
    """Push in the last moment, after the head was read again."""
    space.hub.hooks.append(
        lambda method, path, _: "/git/refs/" in path and space.pull["head"].update(sha=OTHER)
    )


def _main(name, text):
    def changed(space):
        space.history.write(name, text)
        space.history.commit()

    return changed


def _other_checkout(space):
    space.history.branch()
    space.step["GITHUB_SHA"] = space.history.git("rev-parse", "main")
    space.history.commit()


def _reuploaded(space):
    space.hub.upload(RUN, OTHER, zipped(space.files), name="fairgate-small", member=None)


def _undecided(space):
    """Leave no answer that can be read, with the record that follows from that."""
    lines = [json.loads(line) for line in space.files["executions.jsonl"].splitlines()]
    text = "".join(json.dumps({**line, "response": None}) + "\n" for line in lines)
    _put(space, "executions.jsonl", text.encode())


FORM, HEAD, VERDICT, OTHER_BASE = (
    "expected `/fairgate accept REASON`",
    "no run of the head",
    "do not give its verdict",
    "another base may have given",
)
UNREAD = "which nobody has read"
TWO_LINES = r"/fairgate 'accept x\ny'"
REFUSED = {
    "moved there and back": (_moved_there_and_back, UNREAD),
    "a newer run is shown": (_shown(RUN + 1), UNREAD),
    "another attempt is shown": (_shown(attempt=2), UNREAD),
    "a marker of another commit": (_shown(head=OTHER, line=(RUN, OTHER)), UNREAD),
    "a line of another commit": (_shown(line=(RUN, OTHER)), UNREAD),
    "a line that is not the first": (
        lambda s: s.shown.update(body=s.shown["body"].replace("\n", "\nx\n", 1)), UNREAD
    ),
    "no comment of the gate": (lambda s: s.hub.comments.pop(s.shown["id"], None), "has no comment"),
    "another gate's comment": (_shown(key="fairgate-other"), "has no comment"),
    **{
        f"a comment of {one}": (lambda s, one=one: s.shown.update(user=one), "has no comment")
        for one in ({"login": "monalisa"}, {"login": "github-actions"}, {"login": "x[bot]"}, None)
    },
    "two comments of the gate": (_shown_twice, "has 2 comments"),
    "a comment written later": (lambda s: s.shown.update(updated_at=AFTER), "written after yours"),
    "a comment without a time": (lambda s: s.shown.update(updated_at=None), "written after yours"),
    "shown otherwise meanwhile": (
        _meanwhile(_shown(RUN + 1, OTHER)), UNREAD
    ),
    **{
        f"/fairgate {words!r}"[:60]: (_body(f"/fairgate {words}"), FORM)
        for words in (
            "accept", "accept  ", "accept x\ny", "accept x\n", "accept x\r", "accept x ", "Accept x",
            "anchor x", f"accept {'x' * 301}", "accept x\x1by", "accept x\u202ey", "\u0430ccept x",
            "accept\u00a0x", *(f"accept x{end}Accepted-by: boss" for end in "\v\x1c\x85\u2028\u200b\0\t"),
        )
    },
    "edited": (_said(updated_at=AFTER), "the comment was edited"),
    "no time": (_said(created_at=None), "the comment was edited"),
    "a bot": (_user(login="helper[bot]", type="Bot"), "a bot or an app"),
    "a bot by type": (_user(type="Bot"), "a bot or an app"),
    "an organisation": (_user(type="Organization"), "a bot or an app"),
    "a name that is a path": (_user(login="../rita"), "a bot or an app"),
    "by an app": (_said(performed_via_github_app={"id": 1}), "a bot or an app"),
    "nobody": (_said(user=None), "a bot or an app"),
    **{
        f"association {one}": (_said(author_association=one), "only an owner, member or coll")
        for one in ("CONTRIBUTOR", "NONE", "FIRST_TIMER", "MANNEQUIN", "member", None)
    },
    **{
        f"permission {one}": (
            lambda space, one=one: space.hub.rights.update(rita=one), "only an owner, member or coll"
        )
        for one in ("read", "none", "triage", None)
    },
    "the author": (_user(id=1), "the author cannot accept"),
    "an author that is gone": (lambda space: space.pull.update(user=None), "the author cannot"),
    "who pushed": (_run(actor={"login": "Rita"}), "who pushed the head cannot"),
    "an unknown actor": (_run(actor=None), "who pushed the head cannot"),
    "closed": (lambda space: space.pull.update(state="closed"), "the pull request is closed"),
    "a fork": (
        lambda space: space.pull["head"].update(repo=payloads.repository("stranger/shop")),
        "the head lies in a fork",
    ),
    "a fork that is gone": (lambda s: s.pull["head"].update(repo=None), "the head lies in a fork"),
    "another base": (lambda s: s.pull["base"].update(ref="old"), "is not the default branch"),
    "a run of another head": (_run(head_sha=OTHER), HEAD),
    "a run of a push": (_run(event="push"), HEAD),
    "a run of another workflow": (_run(path=".github/workflows/other.yml"), HEAD),
    "a workflow of one name elsewhere": (_run(path=".github/workflows/x/fairness.yml"), HEAD),
    "a run of another repository": (_run(head_repository={"full_name": "stranger/shop"}), HEAD),
    "a run that is asked": (_run(status="in_progress", conclusion=None), "has no verdict"),
    "a cancelled run": (_run(conclusion="cancelled"), "has no verdict"),
    "a run that ended later": (_run(updated_at=AFTER), "ended after the comment"),
    "a run without a time": (_run(updated_at=None), "ended after the comment"),
    "a newer run that is asked": (
        lambda s: s.hub.runs.update({RUN + 1: {**s.run, "status": "queued"}}), "has no verdict"
    ),
    "an artifact of another head": (_reuploaded, "belongs to commit"),
    "an artifact of another name": (
        lambda s: s.step.update(FAIRGATE_ARTIFACT="other"), "has no comment"
    ),
    "an artifact of another run": (
        lambda s: s.hub.upload(9, s.head, zipped(s.files), name="fairgate-small", member=None),
        "has no artifact",
    ),
    "no archive": (lambda s: setattr(s, "raw", b"PK nothing"), "has no readable parts.json"),
    "a member that leads out": (_slipped, "run.json is not what parts.json names"),
    "a linked member": (_linked, "run.json is not what parts.json names"),
    "no answers": (lambda s: s.files.pop("executions.jsonl"), "is not what parts.json names"),
    "an edited file": (lambda s: s.files.update({"run.json": b"{}"}), "were edited"),
    "a record of another outcome": (_record(_fair), VERDICT),
    "a record of another policy": (_record(lambda one: one.update(policy="other")), VERDICT),
    "a record of another commit": (
        _record(lambda one: one["provenance"].update(commit=OTHER)), "404 Not Found"
    ),
    "a record of the base": (
        lambda s: _record(lambda one: one["provenance"].update(commit=s.pull["base"]["sha"]))(s)
        or s.hub.parents.update({s.pull["base"]["sha"]: [OTHER]}),
        "not of the head",
    ),
    "a record without a commit": (
        _record(lambda one: one["provenance"].update(commit=None)), "is of commit none"
    ),
    "other answers": (_answers, VERDICT),
    "answers that nothing reads": (_undecided, VERDICT),
    "no record": (lambda s: _put(s, "run.json", b"[]"), "run.json"),
    "another version": (_record(lambda one: one.update(fairgate="9.9")), VERDICT),
    "policy edited": (_edits("policies/small.yaml"), "it decides"),
    "sources edited": (_edits("sources.jsonl"), "it decides"),
    "workflow edited": (_edits(WORKFLOW_PATH), "it decides"),
    "anchor edited": (_edits("baselines/small.anchor.json"), "it decides"),
    "policy taken away": (_edits("policies/small.yaml", None), "it decides"),
    "policy made a link": (_edits("policies/small.yaml", {"type": "symlink"}), "it decides"),
    "a workflow added": (_edits(".github/workflows/more.yml"), "it decides"),
    "too many files": (_cut("head"), "does not list all"),
    "too many commits": (_wrote("author", of=300), "does not list all"),
    "clean for a moment": (_clean_for_a_moment, "it decides"),
    "outage at the comparison": (_fails("GET", "/compare/", 500), "500"),
    "opened on another base": (lambda s: setattr(s.hub, "bases", (1, 1)), OTHER_BASE),
    "another pull request of the branch": (lambda s: setattr(s.hub, "bases", (0, 2)), OTHER_BASE),
    "a run of another branch": (_run(head_branch="twin"), HEAD),
    "who wrote a part": (_wrote("author"), "who wrote a commit"),
    "who pushed, opened again": (_opened_again, "who pushed the head cannot"),
    "base edited since": (
        _main("policies/small.yaml", POLICY.replace("max: 0.2", "max: 0.3")), VERDICT
    ),
    "a policy that is none": (_main("policies/small.yaml", "name: 7\n"), "policies/small.yaml"),
    "no such policy": (
        lambda s: s.step.update(FAIRGATE_POLICY="policies/none.yaml"), "policies/none.yaml"
    ),
    "two policies": (
        lambda s: s.step.update(FAIRGATE_POLICY="policies/small.yaml\nx.yaml"), "one policy"
    ),
    "a policy outside": (lambda s: s.step.update(FAIRGATE_POLICY="../x.yaml"), "inside the che"),
    "no workflow": (lambda s: s.step.update(FAIRGATE_WORKFLOW="w.yml"), "no file of the default"),
    "the head checked out": (_other_checkout, "must be the default branch"),
    "head moves on": (_meanwhile(lambda s: s.pull["head"].update(sha=OTHER)), "the head moved"),
    "closed meanwhile": (_meanwhile(lambda s: s.pull.update(state="closed")), "is closed"),
    "retargeted and back": (
        _meanwhile(lambda s: setattr(s.hub, "bases", (2, 1))), OTHER_BASE
    ),
    "deleted meanwhile": (
        _meanwhile(lambda s: s.hub.comments.pop(s.said["id"], None)), "404 Not Found"
    ),
    "rights taken away meanwhile": (
        _meanwhile(lambda s: s.hub.rights.update(rita="read")), "only an owner, member or coll"
    ),
    "linked sources edited": (_behind_a_link, "it decides"),
    "head moves last": (_pushed_last, "not a fast forward"),
    "comment deleted": (lambda s: s.hub.comments.pop(s.said["id"]), "404 Not Found"),
    "outage at the tree": (_fails("POST", "/git/trees", 500), "500"),
    "a protected branch": (_fails("PATCH", "/git/refs/", 422, message="protected"), "protected"),
    "a token that may not": (
        _fails("POST", "/git/trees", 403, message="Resource not accessible"), "not accessible"
    ),
}  # fmt: skip


@pytest.mark.walk(8)
@pytest.mark.parametrize("row", REFUSED)
def test_nothing_is_written_and_an_answer_says_why(row, space):
    spoil, said = REFUSED[row]
    spoil(space)
    head = space.pull["head"]["sha"]
    assert space.ask() != 0
    (answer,) = space.answers
    first, text = answer["body"].split("\n", 1)
    assert text.startswith("❌ **Nothing was accepted.**")
    assert said in text
    assert "Traceback" not in space.job.err
    assert first.startswith('<!-- fairgate:report:v1 key="accept/')
    assert space.pull["head"]["sha"] in (head, OTHER)
    assert space.job.outputs["commit"] == ""
    assert [one[1] for one in space.hub.reactions] == ["-1"]


def test_all_objections_are_named_at_once(space):
    for row in (TWO_LINES, "edited", "the author", "closed", "a cancelled run"):
        REFUSED[row][0](space)
    assert space.ask() == 2
    (answer,) = space.answers
    assert all(REFUSED[row][1] in answer["body"] for row in (TWO_LINES, "edited", "closed"))


def test_an_archive_that_expands_is_cut_off(space, monkeypatch):
    space.files["report.html"] = b"0" * (1 << 20)
    monkeypatch.setattr(api, "MAX_MEMBER_BYTES", 50_000)
    assert space.ask() == 4
    assert "larger than" in space.answers[0]["body"]
    assert space.moved == []


def test_hostile_texts_are_dead_in_answer_and_message(space):
    space.said["body"] = "/fairgate accept @octo/admins <!-- x --> ::error::y $(touch pwned)"
    space.hub.fail("PATCH", "/git/refs/", 422, message="@octo/admins <img src=//evil>", times=9)
    assert space.ask() == 4
    body = space.answers[0]["body"].split("\n", 1)[1]
    assert "<!--" not in body
    assert body.count("```") == 2
    assert not [
        line for line in space.job.out.splitlines() if line.startswith("::") and "y $" in line
    ]


@pytest.mark.parametrize(
    ("name", "environment"),
    [("issue_comment", {"FAIRGATE_GITHUB_TOKEN": ""}), ("push", {}), ("pull_request", {})],
)
def test_where_nobody_can_be_answered_the_step_fails(space, name, environment):
    assert space.ask(name, **environment) == 2
    assert space.answers == space.moved == []


def test_the_action_runs_it(space, job, history, tmp_path):
    space.hub.upload(RUN, space.head, zipped(space.files), name="fairgate-small", member=None)
    runner = StepRunner(ROOT / "accept", history.root, tmp_path / "accept", in_process)
    runner.token = TOKEN
    payload = payloads.on_issue_comment(7)
    payload["comment"]["id"] = space.said["id"]
    given = {key: value for key, value in job.environment("issue_comment", payload).items()
             if not key.startswith("FAIRGATE_")}  # fmt: skip
    inputs = {"policy": "policies/small.yaml", "workflow": WORKFLOW_PATH,
              "artifact": "fairgate-small", "python": sys.executable}  # fmt: skip
    done = runner.run(inputs, given)
    assert done.code == 0, done.log
    assert done.outputs["commit"] == space.pull["head"]["sha"] != space.head
