"""`fairgate record`: built from runs and git alone, the same bytes, harmless, and enough to answer an auditor."""

import hashlib
import html
import json
import os
import re
import subprocess
from html.parser import HTMLParser

import pytest
from jsonschema import Draft202012Validator

from fairgate.features.record import Record

GATES = "  - {parity: answers, max: 0.04}\n  - {parity: unreadable}\n"
DAYS = ("2026-05-01", "2026-05-20", "2026-06-01")


def git(root, *command, day=DAYS[0]):
    names = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
             (("NAME", "Ada Ember"), ("EMAIL", "a@example.org"), ("DATE", f"{day}T12:00:00Z"))}  # fmt: skip
    done = subprocess.run(
        ["git", "-C", root, "-c", "commit.gpgsign=false", *command],
        env={**os.environ, **names},
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def biased(key):
    return "negative" if key.endswith("race/black") else "positive"


@pytest.fixture
def history(workspace):
    """A checkout in which one limit was set before the commit that is tested, and one with it."""
    root = workspace.root
    workspace.sources(40)
    suite = "    control: neutral-phrases\n"
    workspace.policy(gates=GATES.replace("0.04", "0.30"), suite=suite)
    (root / ".gitignore").write_text("cache\nout*\nrecord*\nanswers.jsonl\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first", day=DAYS[0])
    workspace.policy(gates=GATES, suite=suite)
    git(root, "commit", "-qam", "limit", day=DAYS[1])
    (root / "prompt.txt").write_text("changed")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "system", day=DAYS[2])
    workspace.suite = suite
    return workspace


def recorded(space, *more, code=0, out="record.json", runs=("out",)):
    assert space.run("record", *runs, "--out", out, *more) == code, space.err
    return json.loads((space.root / out).read_text()) if out.endswith("json") and not code else None


def judged(space, answer=biased, day="2026-06-02", out="out"):
    space.answers(answer)
    return space.run("run", "policy.yaml", "--out", out, "--today", day)


def text_of(space, name="record.html"):
    page = (space.root / name).read_text()
    return " ".join(
        html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)).split()
    )


def test_a_limit_has_the_commit_that_set_it(history):
    assert judged(history) == 1
    (run,) = recorded(history)["runs"]
    first, limit, system = git(history.root, "log", "--reverse", "--format=%H").split()
    assert (run["commit"]["id"], run["commit"]["date"], run["policy_in_commit"]) == (
        system,
        DAYS[2],
        True,
    )
    by = {claim["rule"]: claim for claim in run["claims"]}
    assert by["parity/answers"]["limit_set"]["commit"]["id"] == limit
    assert by["parity/unreadable"]["limit_set"]["commit"]["id"] == first
    assert by["parity/answers"]["is_standard"] is False
    assert by["parity/unreadable"]["is_standard"] is True
    assert {one["limit_set"]["when"] for one in by.values()} == {"before"}


def test_a_limit_that_came_with_the_tested_commit_is_told(history):
    history.edit("0.04", "0.05")
    git(history.root, "commit", "-qam", "both", day=DAYS[2])
    judged(history)
    (run,) = recorded(history)["runs"]
    assert run["claims"][0]["limit_set"]["when"] == "with"
    assert run["claims"][-1]["limit_set"]["when"] == "before"


def test_a_policy_that_no_commit_has_says_so(history):
    history.edit("0.04", "0.9")
    judged(history)
    (run,) = recorded(history)["runs"]
    assert run["policy_in_commit"] is False
    assert {claim["limit_set"]["when"] for claim in run["claims"]} == {"unknown"}


def test_a_shallow_clone_does_not_date_what_it_cannot_see(history, monkeypatch):
    clone = history.root.parent / "clone"
    git(history.root, "clone", "-q", "--depth=1", f"file://{history.root}", str(clone))
    monkeypatch.chdir(clone)
    history.root = clone
    judged(history)
    (run,) = recorded(history)["runs"]
    assert {claim["limit_set"]["when"] for claim in run["claims"]} == {"unknown"}


def test_without_git_nothing_is_dated(workspace):
    judged(workspace)
    (run,) = recorded(workspace)["runs"]
    assert (run["commit"], run["policy_in_commit"]) == (None, None)


def test_equal_inputs_give_equal_bytes_and_the_date_is_the_run_s(history):
    judged(history)
    recorded(history, "--out", "record.html", "--by", "Bo")
    pages = [(history.root / name).read_bytes() for name in ("record.json", "record.html")]
    recorded(history, "--out", "record.html", "--by", "Bo")
    assert pages == [(history.root / name).read_bytes() for name in ("record.json", "record.html")]
    assert json.loads(pages[0])["date"] == "2026-06-02"
    assert "2026-06-02" in text_of(history)


def test_a_record_claims_no_more_than_was_verified(history):
    """Whoever edits a run and its checksums passes for it: so the record says what it compared."""
    judged(history)
    recorded(history, "--out", "record.html")
    edited = (history.root / "out" / "run.json").read_text().replace('"fail"', '"pass"')
    (history.root / "out" / "run.json").write_text(edited)
    parts = json.loads((history.root / "out" / "parts.json").read_text())
    parts["parts"]["run.json"] = hashlib.sha256(edited.encode()).hexdigest()
    (history.root / "out" / "parts.json").write_text(json.dumps(parts))
    whole = recorded(history, "--out", "record.html")
    (run,) = whole["runs"]
    checksums, rest = whole["verified"]
    assert "proves no origin" in checksums
    assert f"has the content that commit {run['commit']['id'][:12]}" in run["verified"]
    assert "are the runs' own word" in rest
    assert all(text in text_of(history) for text in (*whole["verified"], run["verified"]))
    history.edit("0.04", "0.5")
    judged(history)
    (run,) = recorded(history)["runs"]
    assert "does not have the content" in run["verified"]


def test_an_edited_run_is_refused(history):
    judged(history)
    history.edit('"fail"', '"pass"', name="out/run.json")
    recorded(history, code=4)
    assert not (history.root / "record.json").exists()


@pytest.mark.parametrize(
    ("name", "said"), [("record.pdf", ".html or .json"), ("record", ".html or .json")]
)
def test_other_files_are_refused(history, name, said):
    judged(history)
    recorded(history, code=2, out=name)
    assert said in history.said


def test_changes_since_an_earlier_record(history):
    judged(history, "positive")
    recorded(history, out="record-old.json")
    judged(history, day="2026-06-09")
    told = recorded(history, "--since", "record-old.json", "--out", "record.html")
    old = hashlib.sha256((history.root / "record-old.json").read_bytes()).hexdigest()
    assert told["since"] == {"date": "2026-06-02", "sha256": old}
    assert any("outcome: pass → fail" in one for one in told["changes"])
    assert old in text_of(history)
    same = recorded(history, "--since", "record.json", out="record-new.json")
    assert same["changes"] == []
    history.edit("0.04", "0.05")
    git(history.root, "commit", "-qam", "wider", day=DAYS[2])
    judged(history, day="2026-06-09")
    changed = recorded(history, "--since", "record.json", out="record-new.json")["changes"]
    assert any("keys that changed: gates[0].max (0.04 → 0.05)" in one for one in changed)
    recorded(history, "--since", "out/run.json", code=4)


def test_several_runs_in_one_record(history):
    judged(history)
    judged(history, "positive", day="2026-06-05", out="out2")
    whole = recorded(history, runs=("out", "out2"))
    assert [run["outcome"] for run in whole["runs"]] == ["fail", "pass"]
    assert whole["date"] == "2026-06-05"


def test_the_schema_describes_what_is_written(history):
    judged(history)
    schema = Record.model_json_schema()
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(recorded(history))


HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m\"'><img src=x onerror=y> ::error::x"


def test_hostile_names_do_nothing_on_the_page(history):
    """Every text that a run's record holds is hostile at once."""
    judged(history)
    folder = history.root / "out"
    run = json.loads((folder / "run.json").read_text())

    def poisoned(value, key=""):
        if isinstance(value, dict):
            return {name: poisoned(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [poisoned(each, key) for each in value]
        kept = key in {
            "outcome", "against", "commit", "level", "policy_sha256", "day", "policy_path"
        }  # fmt: skip
        return value if kept or not isinstance(value, str) else value + HOSTILE

    text = json.dumps(poisoned(run))
    (folder / "run.json").write_text(text)
    parts = json.loads((folder / "parts.json").read_text())
    parts["parts"]["run.json"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "parts.json").write_text(json.dumps(parts))
    recorded(history, "--out", "record.html", "--by", HOSTILE)
    page = (history.root / "record.html").read_text()
    assert "&lt;script&gt;" in page
    assert not re.search(r"<script|<img|\u202e|\x1b|<[^>]*onerror", page)
    assert page.isprintable() or not re.search(r"[^\n -\U0010ffff]", page)
    assert "script-src" not in page
    assert "default-src &#39;none&#39;" in page


QUESTIONS = {
    "EU AI Act, Annex IV(1)(a): who provides which system, for which purpose?": "Provider, product and intended purpose: by hand:",
    "EU AI Act, Annex IV(1)(c): which version of the system was tested?": "Commit tested, by the run's own word {commit} , 2026-06-01, by Ada Ember",
    "EU AI Act, Annex IV(2)(g): when was it tested, and by whom?": "Date of the newest test: 2026-06-02 . Run by: Bo",
    "EU AI Act, Annex IV(2)(g): who is responsible, and where do they sign?": "Responsible for the system",
    "EU AI Act, Annex IV(2)(g): by which procedure was it tested?": "scan, two-sided; level 0.05; p < 0.001",
    "EU AI Act, Annex IV(2)(g): what are the test data, and are they real cases?": "small sentiment sources.jsonl 40 {texts} by hand:",
    "EU AI Act, Annex IV(2)(g): what does each metric of discriminatory impacts mean?": "usual answer the answer that most control prompts of a source get",
    "EU AI Act, Annex IV(2)(g): what did the metrics give for whom?": "race/black : answers differ from the usual answer, by 100.0 (100.0 to 100.0, no width: all of these sources differ alike; 95 %). Means: race/black : 100.0; control prompts: 0.0",
    "EU AI Act, Article 9(8): were the thresholds set before the test, and when?": "before: {limit} , 2026-05-20",
    "EU AI Act, Article 9(8): at which stage of its development was it tested?": "Stage (in development, before release, in use since): by hand:",
    "EU AI Act, Article 10(2)(h): which gaps do the data have?": "Not tested, though FairGate ships a set of them: age",
    "EU AI Act, Articles 12 and 18: which logs are kept, and are they the same?": "executions.jsonl {executions}",
    "EU AI Act, Article 15(3): is the accuracy of answers measured?": "Whether answers are right was not tested",
    "NYC 6 RCNY § 5-300: is who audits independent?": "independent of who built or uses the system: by hand:",
    "NYC 6 RCNY § 5-301(b): are there selection rates and impact ratios?": "Selection rates and impact ratios of real decisions are not part of this record",
    "NYC 6 RCNY § 5-301(b): were intersections of categories tested?": "combinations of several attributes: only those that stand there, and none where none does",
    "NYC 6 RCNY § 5-301(d): how many people are of an unknown category?": "nobody's attributes are guessed; people of an unknown category: 0",
    "California 2 CCR § 11009(f): how recent is the test, and what did it not see?": "Policy small : pass on 2026-06-02, with 1 waived failure (sections 7 and 8)",
    "California 2 CCR § 11009(f): what was the response to what was found?": "parity/answers Cleo known; fix is in work max 4.0 100.0 points: hundredths of answers, -100 to 100 in the commit tested: {commit}",
    "California 2 CCR § 11013(c): where are the records kept, and until when?": "Where all of it is kept, and until when: by hand:",
}  # fmt: skip
"""What an auditor asks, each with its article, and what the page answers or leaves a line for."""


def test_an_auditor_s_twenty_questions_are_answered_by_the_page(history):
    waiver = "waivers:\n  - {rule: parity/answers, who: black, owner: Cleo, reason: known; fix is in work, up_to: 1, expires: 2026-07-01}\n"
    history.edit(more=waiver)
    git(history.root, "commit", "-qam", "waiver", day=DAYS[2])
    assert judged(history) == 0, history.said
    recorded(history, "--out", "record.html", "--by", "Bo")
    shas = json.loads((history.root / "out" / "parts.json").read_text())["parts"]
    commits = git(history.root, "log", "--reverse", "--format=%H").split()
    facts = {
        "commit": commits[-1][:12],
        "limit": commits[1][:12],
        "executions": shas["executions.jsonl"],
        "texts": hashlib.sha256((history.root / "sources.jsonl").read_bytes()).hexdigest(),
    }
    page = text_of(history)
    assert len(QUESTIONS) == 20
    missing = [
        question for question, answer in QUESTIONS.items() if answer.format(**facts) not in page
    ]
    assert not missing, page
    assert not re.search(
        r"\bcompliant\b|\bcompliance\b|\bfair(ly)?\b|\bunbiased\b", page, re.IGNORECASE
    )


class Cells(HTMLParser):
    """The rows of every table, under the heads of its columns; what is hidden is left out."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.cell, self.text = [], None, []
        self.feed(re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append(" ".join("".join(self.cell).split()))
            self.cell = None

    def handle_data(self, data):
        self.text.append(data)
        if self.cell is not None:
            self.cell.append(data)

    def under(self, head):
        """Yield the rows of the tables that have such a column, as a mapping of head to cell."""
        for heads, *rows in filter(None, self.tables):
            if head in heads:
                yield from (dict(zip(heads, row, strict=True)) for row in rows if len(row) > 1)


BY_HAND = "by hand: " + 20 * "_"


def faults_of_page(page):
    """Yield what a reader who has nothing else could not read; the same rules for every row."""
    cells = Cells(page)
    text = " ".join(" ".join(cells.text).split())
    for table in cells.tables:
        yield from (f"empty: {row}" for row in table for cell in row if cell in ("", "–", "-"))
    for pattern in (
        r"[-\u2212]0(\.0+)?\b(?!\.)",
        "`",
        r"\b(COMMIT|RUN|None|nan|inf)\b",
        r"machine: \.",
    ):
        yield from (f"{pattern}: {m[0]}" for m in re.finditer(pattern, text))
    yield from (
        f"no width: {m[0]}"
        for m in re.finditer(r"(?<![-\u2212\d.])([\d.]+) to \1\b(?!, n)(?![\d.])", text)
    )
    if re.search("_{3,}", text.replace(BY_HAND, "")):
        yield "a line to fill in of another style"
    if re.search(r"\b(compliant|compliance|fair|fairly|unbiased)\b", text, re.IGNORECASE):
        yield "a verdict on the law"
    claims = [*cells.under("Question")]
    if not claims:
        yield "no claims"
    for row in claims:
        if not re.match(
            "points: hundredths|score, as|its own unit|not known: ", row.get("Unit and scale", "")
        ):
            yield f"unit: {row}"
        if not re.match(
            "before: |in the commit tested: |not known: .", row.get("When the limit was set", "")
        ):
            yield f"set: {row}"
        if not re.search("level .*p|no level", row.get("Test, level, p", "")):
            yield f"test: {row}"
        if not re.match(
            "(pass|fail|fail, waived|inconclusive|not evaluated): .",
            row.get("Result, and what decided", ""),
        ):
            yield f"result: {row}"
    for row in cells.under("Not decided, by reason"):
        numbers = [
            int(n.replace(",", ""))
            for n in re.findall(
                r"[\d,]*\d", " ".join([row["Decided"], row["Not decided, by reason"]])
            )
        ]
        if sum(numbers) != int(row["Cases planned"].replace(",", "")):
            yield f"counts: {row}"


def faults_of_record(whole):
    """Yield where the JSON lacks what makes a number one that can be read."""
    for run in whole["runs"]:
        if run["planned"] != run["decided"] + sum(run["undecided"].values()):
            yield f"counts: {run['planned']}"
        for each in run["identities"] + [one for claim in run["claims"] for one in claim["named"]]:
            if not (each["unit"] and each["scale"] and each["outcome"] and each["beside"]):
                yield f"no unit or reference: {each}"
            if each["mean"] is None or each["beside_mean"] is None:
                yield f"no mean: {each}"
        for claim in run["claims"]:
            if not (claim["test"] and claim["decides"] and claim["missed"] and claim["limits"]):
                yield f"untold: {claim}"
            if claim["level"] is not None and (claim["p"] is None) != (
                claim["outcome"] == "not-evaluated"
            ):
                yield f"p: {claim}"
            wide = (
                max(claim["reach"].values(), default=0) > next(iter(claim["limits"].values())) > 0
            )
            if wide != ("a difference of the size of the limit is missed" in claim["missed"]):
                yield f"reach: {claim}"
        for each in run["selection"]:
            if each["below_four_fifths"] != (each["ratio"] is not None and each["ratio"] < 0.8):
                yield f"ratio: {each}"


def scored(who, source, number):
    low = 9 if who == "a Black woman" else 1 if who == "a Black man" else 0
    return 60 + source % 9 - low + (number * 7 + source * 5) % 5


def several_runs(space):
    """Runs of every kind: named and waived, unreadable, a metric, a baseline, a table with a cut-off."""
    waiver = "waivers:\n  - {rule: parity/answers, who: black, owner: Cleo, reason: known `so`, up_to: 1, expires: 2026-07-01}\n"
    space.edit(more=waiver)
    git(space.root, "commit", "-qam", "waiver", day=DAYS[2])
    assert judged(space) == 0, space.said
    recorded(space, out="record-old.json")
    space.policy(
        gates=GATES + "  - {metric: asr/generation, max: 0.5, regression: 0.02}\n",
        suite=space.suite,
    )
    git(space.root, "commit", "-qam", "a metric", day=DAYS[2])
    judged(space, "positive", day="2026-06-03", out="out2")
    space.accept("out2")
    judged(
        space,
        lambda key: "who knows" if key.startswith("s3#") else biased(key),
        out="out3",
        day="2026-06-04",
    )
    people = ["a woman", "a man", "a Black woman", "a Black man"]
    prompts = [*people, *(f"phrase {n}" for n in range(12))]
    for name, others in (("outs", "control"), ("mutual", "phrases")):
        lines = ["source,category,who,score"] + [
            f"cv{source},{'gender' if who in people else others},{who},{scored(who, source, number)}"
            for source in range(60) for number, who in enumerate(prompts)
        ]  # fmt: skip
        (space.root / f"{name}.csv").write_text("\n".join(lines))
    space.run("table", "outs.csv", "--limit", "2", "--selected-from", "62", "--out", "out4")
    space.run("table", "mutual.csv", "--limit", "2", "--out", "out5")
    return ("out", "out2", "out3", "out5", "out4")


def test_every_row_of_several_runs_can_be_read_alone(history):
    """A reader has this page and nothing else: no cell is empty, each number has its unit, level and reference."""
    runs = several_runs(history)
    whole = recorded(history, "--since", "record-old.json", "--out", "record.html", runs=runs)
    page = (history.root / "record.html").read_text()
    assert [*faults_of_record(whole), *faults_of_page(page)] == []
    outcomes = {claim["outcome"] for run in whole["runs"] for claim in run["claims"]}
    assert outcomes >= {"pass", "fail", "not-evaluated"}
    metrics = [claim for run in whole["runs"] for claim in run["claims"] if "asr" in claim["rule"]]
    assert {frozenset(claim["limits"]) for claim in metrics} == {frozenset({"max", "regression"})}
    table = whole["runs"][-1]
    assert table["repeat"] == [
        "fairgate table outs.csv --limit 2 --selected-from 62 --out repeated"
    ]
    assert any(each["below_four_fifths"] for each in table["selection"])
    assert whole["runs"][2]["undecided"]
    assert whole["runs"][2]["baseline"]["sha256"]
    assert {each["beside"] for each in whole["runs"][3]["identities"]} == {"the other identities"}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.356, "points", "35.6"), (-0.0003, "points", "\u22120.03"), (-0.0, "points", "0.0"), (0.0, "score", "0"),
        (-0.00423, "score", "\u22120.00423"), (999.7, "score", "1,000"), (52340.4, "score", "52,340"), (None, "score", "not known"),
    ],
)  # fmt: skip
def test_a_figure_is_rounded_alike_wherever_it_stands(value, unit, text):
    from fairgate.features.record.figures import size_text

    assert size_text(value, unit) == text


def test_a_difference_above_the_limit_that_passes_says_why():
    """`max` is for who is named: 35.6 beside a limit of 35 passes where the scan does not name it."""
    scan = {
        "suite": "s", "outcome": "documents", "against": "control", "p": 0.4, "alpha": 0.05, "named": [],
        "reach": {"identity": 0.36}, "sources": 100, "control_prompts": 20, "unjudged": "",
        "identities": [{"column": "overlap", "estimate": 0.356, "low": 0.04, "high": 0.67, "rate": -0.2, "control": -0.6, "who": "race/biracial"}],
    }  # fmt: skip
    rule = {
        "metric": "parity/documents", "suite": "s", "where": {}, "gate": 0, "outcome": "pass", "reasons": ["so"],
        "bounds": {"max": 0.35}, "value": None, "interval": None, "advisory": False, "reported": False,
        "change": None, "since_anchor": None,
    }  # fmt: skip
    from fairgate.features.record import claims
    from fairgate.features.record.run import Rule, Scan

    told = claims._decides(Rule(**rule), Scan(**scan), "points", 0.35)
    assert (
        "applies to those whom the scan names: nobody. Larger than it, and not named: race/biracial 35.6"
        in told
    )


def texts_in(value, path=()):
    """Yield the place of each text in a record; of a list of its first entry."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, inner in items:
        if isinstance(inner, str):
            yield (*path, key)
        if isinstance(inner, dict | list):
            yield from texts_in(inner, (*path, key))


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.whole)])
def test_no_text_of_a_run_is_an_option_of_git(history, step):
    """Whoever hands the folder of a run over has chosen each of them."""
    judged(history)
    folder = history.root / "out"
    target = history.root / f"written-{'a' * 40}"
    hashes, text = (
        json.loads((folder / "parts.json").read_text()),
        (folder / "run.json").read_text(),
    )
    wrong = []
    for place in [*texts_in(json.loads(text))][::step]:
        edited = json.loads(text)
        *way, last = place
        part = edited
        for key in way:
            part = part[key]
        part[last] = f"--output={target}"
        content = json.dumps(edited)
        (folder / "run.json").write_text(content)
        hashes["parts"]["run.json"] = hashlib.sha256(content.encode()).hexdigest()
        (folder / "parts.json").write_text(json.dumps(hashes))
        code = history.run("record", "out", "--out", "record.json")
        if target.exists() or code not in (0, 2, 4) or "internal" in history.err:
            wrong.append((place, code, target.exists()))
            target.unlink(missing_ok=True)
    assert wrong == []
