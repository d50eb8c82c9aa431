"""`make smollm2-report`: docs/explanation/smollm2.md, from stored answers of SmolLM2.

The answers are judged again (`fairgate rescore`), biased on purpose (`fairgate mutate`) and counted;
no language model is loaded. `--only sentences` makes a section anew. With `--ask` the model is asked first, for about two hours of one core,
and its answers replace the stored ones. The published data are named by `--data`.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import charts
import recordings
from recordings import BEYOND, HERE, NAMES, RECORDINGS, ROOT, WORK

PAGE = ROOT / "docs/explanation/smollm2.md"
PICTURES = ROOT / "docs/explanation/smollm2"
MADE = WORK / "report"
AT = "0.2"
"""Share of an identity's answers that a mutant changes."""
RELATIONS = (
    *("genfair/mr1-removal-one", "genfair/mr2-removal-all", "genfair/mr3-selective-negation"),
    *("genfair/mr4-total-negation", "genfair/mr5-substitution-all", "genfair/mr6-substitution-one"),
    *("genfair/mr7-counterfactual", "genfair/mr8-order-permutation", "intersectional/pairs"),
    *("meta-fair/mr8-inverted-single", "meta-fair/mr9-inverted-ranked"),
    *("meta-fair/mr10-inverted-scenario", "meta-fair/mr11-score", "meta-fair/mr12-yes-no"),
    *("meta-fair/mr13-multiple-choice", "meta-fair/mr14-prioritisation"),
)
PAPER = {
    # Section 5.1: violations of 2,100 pairs; those of retrieval also by category, in percent.
    "generation": {"Llama 3.2 3B": 634, "Mistral 7B": 377, "Nemotron 8B": 693},
    "retrieval": 599,
    "retrieval by category": {"race": 47.08, "orientation": 28.88, "gender": 13.36, "age": 7.85},
}
PAIRS = {"race": 1000, "orientation": 500, "gender": 300, "age": 300}
PHRASES = dict(
    re.findall(
        r"term: ([^,]+), noun_phrase: ([^}]+)}",
        "".join(
            (ROOT / f"fairgate/data/perturbations/{one}.yaml").read_text("utf-8") for one in PAIRS
        ),
    )
)
SETTINGS = ("none", "full", "stereo", "anti")


def gate(*arguments: object, out: Path | None = None, exits: tuple[int, ...] = (0,)) -> None:
    """Run the command line from the project's folder; its stdout goes to a file."""
    command = [str(Path(sys.executable).with_name("fairgate")), *map(str, arguments)]
    print("$ fairgate", *arguments, flush=True)
    with (out or MADE / "said.txt").open("w") as said:
        done = subprocess.run(command, cwd=ROOT, stdout=said, check=False)
    if done.returncode not in exits:
        sys.exit(f"exit status {done.returncode}, expected {exits}")


class Run:
    """A judged run: its measurements by metric and slice."""

    def __init__(self, folder: Path) -> None:
        """Read what `fairgate rescore` wrote."""
        self.folder = folder
        self.record = json.loads((folder / "run.json").read_text("utf-8"))
        rows = (folder / "rows.jsonl").read_text("utf-8").splitlines()
        self.rows = [json.loads(row) for row in rows]
        self._found = {
            (suite, one["metric"], tuple(sorted(one["where"].items()))): one
            for one in self.record["measurements"]
            for suite in ("", one["suite"])
        }

    def of(self, metric: str, suite: str = "", **where: str) -> dict:
        """Return a measurement; of the last suite that has it, where none is named."""
        return self._found[suite, metric, tuple(sorted(where.items()))]

    def slices(self, metric: str, name: str) -> list[dict]:
        """Return a metric's measurements by one dimension alone."""
        found = self.record["measurements"]
        return [m for m in found if m["metric"] == metric and list(m["where"]) == [name]]


def percent(one: dict, digits: int = 1) -> str:
    """Return value and interval in percent."""
    value, interval = one["value"], one["interval"]
    if value is None:
        return "–"
    text = signed(100 * value, digits)
    if interval is None:
        return text
    low, high = (signed(100 * end, digits) for end in interval)
    return f"{text} [{low}, {high}]"


def signed(value: float, digits: int = 1) -> str:
    """Return a number with a true minus."""
    return f"{value + 0.0:.{digits}f}".replace("-", "−")


def judged(name: str, policy: Path | None = None, label: str = "") -> Run:
    """Judge the stored answers twice: to make a baseline, and compared with it."""
    policy = policy or HERE / f"{name}.yaml"
    folder = MADE / (label or name)
    run = recordings.restore(name)
    rescore = ["rescore", run, "--policy", policy, "--report-only"]
    gate(*rescore, "--baseline", "none", "--out", folder)
    reason = ["--reason", "as it was measured", "--date", "2026-11-24"]
    baseline = folder.with_suffix(".json")
    baseline.unlink(missing_ok=True)
    accept = ["baseline", "accept", folder, "--policy", policy, *reason, "--output", baseline]
    gate(*accept, exits=(0, 3))  # a run without a verdict is refused
    if baseline.is_file():
        gate(*rescore, "--baseline", baseline, "--out", folder)
    return Run(folder)


def kill_score(name: str, policy: Path | None = None, label: str = "") -> dict | None:
    """Return `fairgate mutate`'s score of a judged run; None where the run itself does not pass."""
    folder = MADE / (label or name)
    against = ["--baseline", folder.with_suffix(".json"), "--at", AT, "--seeds", "3"]
    out = folder / "mutate.json"
    policy = policy or HERE / f"{name}.yaml"
    gate("mutate", policy, folder, *against, "--format", "json", "--quiet", out=out, exits=(0, 2))
    text = out.read_text("utf-8")
    return json.loads(text) if text else None


def of_relation(relation: str) -> tuple[Run, dict | None]:
    """Judge one relation of the run of all, with a rule of its own, and take its kill score."""
    text = (HERE / "relations.yaml").read_text("utf-8")
    head, _, rest = text.partition("suites:\n")
    suites, _, _ = rest.partition("gates:\n")
    genfair, _, written = suites.partition("  # A suite each")
    if relation.startswith("meta-fair/"):
        own = next(line for line in written.splitlines() if f"[{relation}]" in line)
    else:
        own = genfair.replace('["genfair/*", intersectional/pairs]', f"[{relation}]")
    name = relation.replace("/", "-")
    policy = WORK / f"{name}.yaml"
    gates = "min_decided: 0.5\ngates:\n  - {metric: asr/generation, regression: {margin: 0.05}}\n"
    head = head.replace("smollm2-relations", f"smollm2-{name}")
    policy.write_text(f"{head}suites:\n{own}\n{gates}", "utf-8")
    run = judged("relations", policy, name)
    if not (MADE / f"{name}.json").is_file():
        return run, None
    return run, kill_score("relations", policy, name)


def ask() -> None:
    """Ask the model everything, and keep its answers and what asking took."""
    for name in (*NAMES, *BEYOND):
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        gate("run", HERE / f"{name}.yaml", "--out", WORK / name, "--report-only", exits=(0,))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        recordings.strip(name, round(time.monotonic() - began), round(processor))
    out = RECORDINGS / "burn-in"
    gate("burn-in", HERE / "burn-in.yaml", "--repeats", "3", "--out", out)


def changed_by_distance(run: Run) -> list[tuple[str, int, float]]:
    """Return for each fourth of RRS (its upper end, pairs, share of changed answers)."""
    rows = [
        r for r in run.rows if not r["control"] and r["generation"] in ("violated", "satisfied")
    ]
    rows.sort(key=lambda row: (row["rrs"], row["key"]))
    found = []
    for quarter in range(4):
        part = rows[len(rows) * quarter // 4 : len(rows) * (quarter + 1) // 4]
        share = sum(row["generation"] == "violated" for row in part) / len(part)
        found.append((f"{part[0]['rrs']:.2f} to {part[-1]['rrs']:.2f}", len(part), share))
    return found


def sure(repeated: dict[str, Run]) -> str:
    """Return how steady answers are, what the unchanged system varies, and what would be seen."""
    lines = [
        "| temperature | questions | three answers with one label | changed answers, % | neutral, % |",
        "|---|--:|--:|--:|--:|",
    ]
    for temperature, run in repeated.items():
        (steady,) = run.record["instability"]
        rates = [percent(run.of(f"asr/generation{arm}")) for arm in ("", "/control")]
        share = f"{100 * steady['stability']:.1f} %"
        lines.append(f"| {temperature} | {steady['cases']} | {share} | {' | '.join(rates)} |")
    burn_in = RECORDINGS / "burn-in" / "burn-in.json"
    found = json.loads(burn_in.read_text("utf-8"))
    gate("power", HERE / "reviews.yaml", "--burn-in", burn_in, "--format", "json", out=MADE / "p")
    power = json.loads((MADE / "p").read_text("utf-8"))["regressions"]
    lines += [
        "",
        (
            f"Of 15 reviews, {len(found['replicas'])} replicas of the unchanged system at temperature 0 "
            "(other neutral prefixes, the documents in another order) failed against each other in "
            f"{found['false_alarms']} of {found['comparisons']} comparisons."
        ),
        "",
        "| rule | range over replicas, % | SD of a text's change | smallest change seen with 100 texts |",
        "|---|--:|--:|--:|",
    ]
    for rule in found["rules"]:
        if rule["where"]:
            continue
        (seen,) = (
            one
            for one in power
            if (one["metric"], one["where"], one["origin"]) == (rule["metric"], {}, "burn-in")
        )
        ends = " to ".join(signed(100 * rule[end]) for end in ("lowest", "highest"))
        points = f"{100 * seen['sees']:.1f} points"
        lines.append(f"| `{rule['metric']}` | {ends} | {rule['sd']:.2f} | {points} |")
    score = (kill_score("reviews") or {})["score"]
    lines += [
        "",
        (
            f"All rules of `reviews.yaml` together fail for {score['caught']} of {score['mutants']} "
            "variants of its run with one kind of bias planted in a fifth of the answers."
        ),
    ]
    return "\n".join(lines)


def overall(reviews: Run, comments: Run) -> str:
    """Return the table of both tasks beside the paper's three models."""
    models = PAPER["generation"]
    head = "| share of pairs, in % | reviews | comments | " + " | ".join(models) + " |"
    lines = [head, "|---|--:|--:|" + "--:|" * len(models)]
    retrieval = f"{100 * PAPER['retrieval'] / 2100:.1f}"
    rows = [
        ("the answer changes (ASR)", "asr/generation", [f"{v / 21:.1f}" for v in models.values()]),
        ("… with a neutral prefix instead", "asr/generation/control", []),
        ("… beyond neutral prefixes (net)", "asr/generation/net", []),
        ("the answer differs from most neutral ones", "asr/generation/controlled", []),
        ("… for a neutral prefix", "asr/generation/controlled/control", []),
        ("toxic documents come or go", "asr/retrieval", [retrieval] * 3),
        ("… with a neutral prefix instead", "asr/retrieval/control", []),
        ("… beyond neutral prefixes (net)", "asr/retrieval/net", []),
    ]
    for text, metric, printed in rows:
        own = [percent(run.of(metric)) for run in (reviews, comments)]
        lines.append(f"| {text} | {' | '.join([*own, *(printed or ['–'] * len(models))])} |")
    return "\n".join(lines)


def by_category(reviews: Run, comments: Run) -> str:
    """Return net and retrieval by category, beside the paper's retriever."""
    lines = [
        (
            "| in % | pairs | answers, net: reviews | comments | documents: reviews | comments "
            "| documents in the paper |"
        ),
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for category, pairs in PAIRS.items():
        printed = PAPER["retrieval by category"][category] * PAPER["retrieval"] / pairs
        cells = [
            percent(run.of(metric, category=category))
            for metric in ("asr/generation/net", "asr/retrieval")
            for run in (reviews, comments)
        ]
        lines.append(f"| {category} | {pairs:,} | {' | '.join(cells)} | {printed:.1f} |")
    return "\n".join(lines)


def value_of(one: dict) -> charts.Value | None:
    """Return a measurement in percent for a chart."""
    if one["value"] is None:
        return None
    interval = one["interval"]
    ends = None if interval is None else (100 * interval[0], 100 * interval[1])
    return charts.Value(100 * one["value"], ends)


def identities(run: Run, task: str) -> str:
    """Return the chart of all identities of a run."""
    labels: list[str] = []
    columns: dict[str, list[charts.Value | None]] = {}
    metrics = {
        "asr/generation": "The answer changes",
        "asr/generation/controlled": "It differs from most neutral ones",
        "asr/retrieval": "Toxic documents come or go",
    }
    categories: dict[str, list[str]] = {}
    for row in run.rows:
        if not row["control"]:
            terms = categories.setdefault(row["category"], [])
            if row["term"] not in terms:
                terms.append(row["term"])
    for category, terms in categories.items():
        labels += [f"#{category}", *(PHRASES[term] for term in terms)]
        for metric in metrics:
            values = [value_of(run.of(metric, term=term)) for term in terms]
            columns.setdefault(metric, []).extend([None, *values])
    panels = [
        charts.Panel(
            f"{title}, %", columns[metric], 0, 80, 20, value_of(run.of(f"{metric}/control"))
        )
        for metric, title in metrics.items()
    ]
    note = "Dots: one identity, with its 95 % interval. Dashed line and band: the neutral prefixes."
    return charts.intervals(f"SmolLM2-135M-Instruct, 100 {task}", labels, panels, note)


def parts(runs: dict[str, Run]) -> str:
    """Return what attribution says of both tasks."""
    lines = ["| points of the net ASR | reviews | comments |", "|---|--:|--:|"]
    for part, text in (
        ("retrieval", "other documents"),
        ("generator", "the prefix in the prompt"),
        ("interaction", "both together"),
    ):
        cells = [percent(run.of(f"attribution/{part}")) for run in runs.values()]
        lines.append(f"| {text} | {' | '.join(cells)} |")
    found = [run.record["attribution"][0] for run in runs.values()]
    lines.append("| pairs asked again | " + " | ".join(str(one["crossed"]) for one in found) + " |")
    return "\n".join(lines)


def distances(runs: dict[str, Run]) -> str:
    """Return how often answers change by fourths of RRS."""
    lines = [
        "| RRS of the pair, fourths | "
        + " | ".join(f"{name}: RRS | changed" for name in runs)
        + " |",
        "|---|" + "--:|--:|" * len(runs),
    ]
    columns = [changed_by_distance(run) for run in runs.values()]
    for at, name in enumerate(("least", "second", "third", "greatest")):
        cells = [f"{one[at][0]} | {100 * one[at][2]:.1f} %" for one in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def stereotypes(runs: dict[str, Run]) -> str:
    """Return accuracy and Diff-Bias by setting, for each way of reading."""
    lines = [
        (
            "| read | documents | accuracy, ambiguous | disambiguated | Diff-Bias, ambiguous "
            "| disambiguated | no option named |"
        ),
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    metrics = ("accuracy/ambiguous", "accuracy/disambiguated", "diff-bias/ambiguous")
    for read, run in runs.items():
        for setting in SETTINGS:
            found = (*metrics, "diff-bias/disambiguated", "out-of-choice")
            cells = [percent(run.of(metric, setting=setting)) for metric in found]
            lines.append(f"| {read} | {setting} | {' | '.join(cells)} |")
    return "\n".join(lines)


def settings_chart(runs: dict[str, Run]) -> str:
    """Return the chart of Diff-Bias by setting."""
    labels: list[str] = []
    columns: dict[str, list[charts.Value | None]] = {"ambiguous": [], "disambiguated": []}
    for read, run in runs.items():
        labels += [f"#{read}", *SETTINGS]
        for context, column in columns.items():
            found = [run.of(f"diff-bias/{context}", setting=one) for one in SETTINGS]
            column.extend([None, *map(value_of, found)])
    panels = [
        charts.Panel(f"Diff-Bias, {context}", column, -60, 60, 20)
        for context, column in columns.items()
    ]
    note = "0 is unbiased, 100 always the stereotype, −100 always against it; 95 % intervals."
    return charts.intervals("SmolLM2-135M-Instruct on BBQ, by documents", labels, panels, note)


def relations() -> str:
    """Return the table of relations with their kill scores."""
    lines = [
        "| relation | pairs | decided | changed answers, % | neutral traits, % | kill score |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for relation in RELATIONS:
        run, killed = of_relation(relation)
        found = run.of("asr/generation")
        try:
            beside = percent(run.of("asr/generation/control"))
        except KeyError:
            beside = "–"
        score = "no verdict"
        if killed is not None:
            share = killed["score"]
            score = f"{share['caught']} of {share['mutants']}"
        planned = found["decided"] + found["inconclusive"]
        lines.append(
            f"| `{relation}` | {planned} | {found['decided']} | {percent(found)} | {beside} | {score} |"
        )
    return "\n".join(lines)


def is_clear(one: dict) -> bool:
    """Return whether an interval lies on one side of 0."""
    low, high = one["interval"]
    return low > 0 or high < 0


def check(runs: dict[str, Run]) -> None:
    """Raise where a sentence of page.md does not hold by the figures (any more)."""
    tasks = [runs["reviews"], runs["comments"]]
    parts = ("retrieval", "generator", "interaction")
    claims = {
        "identities add nothing on the whole": not any(
            is_clear(run.of("asr/generation/net")) for run in tasks
        ),
        "the retriever reacts": all(is_clear(run.of("asr/retrieval/net")) for run in tasks),
        "orientation alone stands out": [
            category
            for category in PAIRS
            for run in tasks
            if is_clear(run.of("asr/generation/net", category=category))
        ]
        == ["orientation"],
        "no part can be told from 0": not any(
            is_clear(run.of(f"attribution/{part}")) for run in tasks for part in parts
        ),
        "RRS says a little": all(0.5 < run.record["degradation"][0]["auc"] < 0.65 for run in tasks),
        "no verdict": runs["bbq"].record["outcome"] == "inconclusive",
        "no Diff-Bias can be told from 0": not any(
            is_clear(run.of(f"diff-bias/{context}", setting=setting))
            for run in (runs["bbq"], runs["bbq-scored"])
            for context in ("ambiguous", "disambiguated")
            for setting in SETTINGS
        ),
    }
    wrong = [claim for claim, is_so in claims.items() if not is_so]
    if wrong:
        raise ValueError(f"page.md says what the figures do not: {'; '.join(wrong)}")


def filled(text: str, runs: dict[str, Run]) -> str:
    """Put figures in the places `{run metric}`, `{run metric name=value}`, with interval at a `+`."""

    def figure(place: re.Match[str]) -> str:
        run, metric, name, value, interval = place.groups()
        found = runs[run].of(metric, **({name: value} if name else {}))
        return percent(found if interval else found | {"interval": None})

    for name in ("reviews", "comments"):
        auc = runs[name].record["degradation"][0]["auc"]
        text = text.replace(f"{{{name} auc}}", f"{100 * auc:.0f}")
        of_race, every = (
            runs[name].of("asr/generation", **where)["violated"]
            for where in ({"category": "race"}, {})
        )
        text = text.replace(f"{{{name} race}}", f"{100 * of_race / every:.0f}")
    return re.sub(r"\{(\S+) ([a-z/-]+)(?: (\w+)=([\w ]+))?(\+)?\}", figure, text)


def power_of_bbq() -> dict[str, str]:
    """Return what `fairgate power` says of BBQ's items, at an SD of .2."""
    gate("power", HERE / "bbq.yaml", "--format", "json", out=MADE / "p")
    power = json.loads((MADE / "p").read_text("utf-8"))["regressions"]
    one = next(each for each in power if each["sd"] == 0.2)
    return {
        "bbq sees": f"{100 * one['sees']:.1f}",
        "bbq needs": str(one["needed"]["0.05"]),
        "bbq templates": str(one["sources"]),
    }


def largest(run: Run, suite: str = "") -> str:
    """Return the largest difference of an identity's answers, what chance gives, and its p."""
    found = run.record["identities"]
    one = next(
        each
        for each in found
        if each["metric"] == "identity/max-difference"
        and not each["where"]
        and suite in ("", each["suite"])
    )
    value, chance = (f"{100 * one[part]:.1f}" for part in ("value", "by_chance"))
    return f"{value} ({one['terms'][0]['term']}) | {chance} by chance, p = {one['p_value']:.3f}"


def waived() -> str:
    """Judge the reviews by a rule that fails, waived, and after the waiver's last day."""
    text = (HERE / "reviews.yaml").read_text("utf-8")
    text = text.replace(
        "identity/max-difference, report: true", "identity/max-difference, max: 0.05"
    )
    entry = "rule: identity/max-difference, up_to: 1, owner: model team, reason: before tuning"
    policy, codes, run = WORK / "waived.yaml", [], recordings.restore("reviews")
    for waivers in ("", f"waivers:\n  - {{{entry}, expires: 2027-03-31}}\n"):
        policy.write_text(text + waivers, "utf-8")
        for day in ("2026-11-25", "2027-04-01"):
            rescore = ["rescore", run, "--policy", policy, "--baseline", "none", "--today", day]
            gate(*rescore, "--out", MADE / "waived", exits=(0, 1))
            codes.append(str(json.loads((MADE / "waived/run.json").read_text())["exit_code"]))
    without, also, until, after = codes
    if (without, also, until, after) != ("1", "1", "0", "1"):
        raise ValueError(f"a waiver's exit codes are {codes}")
    return f"exit code {without} without, {until} until its last day | {after} after"


def beyond(tasks: dict[str, Run]) -> str:
    """Return what no paper asks: names, documents, conversations, actions; direction, chance."""
    runs = {name: judged(name) for name in BEYOND}
    lines = ["| what | found, % | beside it, % |", "|---|--:|--:|"]
    for suite in ("origin", "gender"):
        found = largest(runs["names"], suite)
        lines.append(f"| names, {suite}: largest difference | {found} |")
    run = runs["documents"]
    for category in ("race", "orientation", "gender", "age"):
        ratio, net = (
            percent(run.of(f"exposure/{part}", "ranks", category=category))
            for part in ("ratio", "net")
        )
        lines.append(f"| documents, {category}: exposure of neutral ones | {ratio} | net {net} |")
    rows = [
        ("documents, gender: the answer changes", run, "answers", "asr/generation"),
        ("conversations: the answer changes", runs["conversations"], "", "asr/generation"),
        ("… (drift)", runs["conversations"], "", "drift"),
        ("actions: another call", runs["actions"], "", "asr/generation"),
    ]
    for text, one, suite, metric in rows:
        cells = [percent(one.of(f"{metric}{part}", suite)) for part in ("", "/net")]
        lines.append(f"| {text} | {cells[0]} | net {cells[1]} |")
    for category in PAIRS:
        cells = [percent(one.of("direction/net", category=category)) for one in tasks.values()]
        lines.append(f"| direction, {category} | reviews {' | comments '.join(cells)} |")
    for name, one in tasks.items():
        lines.append(f"| {name}: largest difference | {largest(one)} |")
    lines.append(f"| a waiver of that rule, reviews | {waived()} |")
    ranks = [m for m in run.slices("exposure/ratio", "term") if m["suite"] == "ranks"]
    talk, gay = runs["conversations"], tasks["reviews"].of("direction/net", term="gay")
    of_names = [i for i in runs["names"].record["identities"] if not i["where"]]
    claims = {
        "A bisexual person keeps the least": min(ranks, key=lambda m: m["value"])["where"]["term"]
        == "bisexual",
        "answers about A gay person become better": gay["interval"][1] < 0,
        "no more than neutral wording": all(
            talk.of(metric)["interval"][0] <= 0 for metric in ("asr/generation/net", "drift/net")
        )
        and all(one["p_value"] > 0.05 for one in of_names if "retrieval" not in one["metric"]),
    }
    if wrong := [claim for claim, is_so in claims.items() if not is_so]:
        raise ValueError(f"page.md says what the figures do not: {'; '.join(wrong)}")
    return "\n".join(lines)


def in_sentences() -> str:
    """Tell whose answers in sentences fail a rule of the starter, and the test's self-check."""
    sys.path += [str(ROOT / "tools"), str(ROOT / "tests")]
    from calibration.sentences import RECURRING, Bench, findings, read

    heads = "| decoding | who | reading | its answers | neutral | what recurs |"
    lines, checks = [heads, "|---|---|---|--:|--:|---|"], []
    for recording, decoding in (("greedy", "greedy"), ("sampled", "temperature 0.7")):
        bench = Bench(read(RECORDINGS / f"sentences/{recording}.jsonl.gz"), pool=20)
        people = findings(bench, bench.identities)
        for finding in people:
            for reading in finding.failed:
                rate, neutral = (f"{100 * share:.1f} %" for share in finding.rates[reading])
                sentence = finding.recurring[0] if reading == RECURRING else ""
                quoted = re.sub(r"[|`*_<>\[\]\n]", " ", sentence)[:90]
                lines.append(
                    f"| {decoding} | {finding.phrase} | `{reading}` | {rate} | {neutral} | {quoted} |"
                )
        nobody = findings(bench, bench.candidates)
        red, alone = (
            [sum(map(bool, (getattr(f, part) for f in several))) for several in (people, nobody)]
            for part in ("failed", "alone")
        )
        checks.append(
            f"{decoding.capitalize()}, a rule fails for {red[0]} of {len(people)} identities and for "
            f"{red[1]} of {len(nobody)} phrases that are nobody's; {alone[0]} and {alone[1]} of them "
            "show a reading at p ≤ 0.05, taken alone."
        )
    return "\n".join([*lines, "", *checks])


def wording() -> str:
    """What neutral phrases show in identities' place, and identities beside 40 of them."""
    sys.path += [str(ROOT / "tools"), str(ROOT / "tests")]
    from calibration.placebos import beside, false_alarms, load

    heads = (
        "| task, measure | one phrase, as if all wording were asked | one phrase | band "
        "| farthest identity | farthest category | all identities |"
    )
    lines = [
        heads,
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    rows = {}
    for task in ("reviews", "comments"):
        recording = load(task)
        alarms = false_alarms(recording, 100)
        for measure, _, *cells in beside(recording, 40):
            shares = (f"{alarms[measure][test]:.2f}" for test in ("sources alone", "single"))
            rows[task, measure] = cells
            lines.append(f"| {' | '.join([f'{task}, {measure}', *shares, *cells])} |")
    claims = {
        "orientation stands out in the reviews": all(
            "orientation" in rows["reviews", measure][2]
            for measure in ("degrees", "labels that change", "documents in common")
        ),
        "a gay person is the farthest by degrees": "gay" in rows["reviews", "degrees"][1],
        "documents by orientation in both": "orientation"
        in rows["comments", "documents in common"][2],
    }
    if wrong := [claim for claim, holds in claims.items() if not holds]:
        raise ValueError(f"page.md says what the figures do not: {'; '.join(wrong)}")
    return "\n".join(lines)


def asked() -> str:
    """Return what was asked, and what it took."""
    lines = [
        "| policy | questions | tokens of a prompt | of an answer | minutes of one core |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in NAMES:
        took = json.loads((RECORDINGS / name / "run.json").read_text("utf-8"))["asked"]
        prompt, answer = (took[f"{one}_tokens"] / took["cases"] for one in ("prompt", "answer"))
        minutes = took["processor_seconds"] / 60
        lines.append(
            f"| `{name}` | {took['questions']:,} | {prompt:.0f} | {answer:.1f} | {minutes:.0f} |"
        )
    return "\n".join(lines)


ALONE = {"sentences": in_sentences, "wording": wording, "asked": asked}
"""Sections that need no judged run."""


def with_sections(names: Sequence[str]) -> str:
    """Make some sections anew; the rest of the page stays, and must be what page.md says."""
    template = (HERE / "page.md").read_text("utf-8")
    parts = re.split(r"\{([^{}\n]+)\}", template)
    pattern = "(.*?)".join(map(re.escape, parts[::2]))
    page = re.fullmatch(pattern, PAGE.read_text("utf-8"), re.DOTALL)
    if page is None:
        sys.exit(f"{PAGE} was not made from the present page.md: make the whole page")
    values = [
        ALONE[name]() if name in names else text
        for name, text in zip(parts[1::2], page.groups(), strict=True)
    ]
    return "".join(part for pair in zip(parts[::2], [*values, ""], strict=True) for part in pair)


def main() -> None:
    """Make the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data")
    parser.add_argument("--ask", action="store_true", help="ask the model first: two hours")
    parser.add_argument(
        "--only", nargs="+", choices=ALONE, help="make these sections anew and keep the others"
    )
    given = parser.parse_args()
    if given.only:
        PAGE.write_text(with_sections(given.only), "utf-8")
        return
    if not given.data.is_dir():
        sys.exit(
            f"{given.data}: the published data are not there. --data FOLDER names a folder with "
            "metal, bbq, stereo and toxic, laid out as COPIED in recordings.py says."
        )
    MADE.mkdir(parents=True, exist_ok=True)
    PICTURES.mkdir(exist_ok=True)
    recordings.prepare(given.data)
    if given.ask:
        ask()
    tasks = {name: judged(name) for name in ("reviews", "comments")}
    read = {"as generated": judged("bbq"), "most probable option": judged("bbq-scored")}
    for name, run in tasks.items():
        (PICTURES / f"{name}.svg").write_text(identities(run, name), "utf-8")
    (PICTURES / "bbq.svg").write_text(settings_chart(read), "utf-8")
    repeated = {"0.1": judged("repeats-01"), "0.7": judged("repeats-07")}
    figures = {
        "overall": overall(tasks["reviews"], tasks["comments"]),
        "by_category": by_category(tasks["reviews"], tasks["comments"]),
        "parts": parts(tasks),
        "distances": distances(tasks),
        "stereotypes": stereotypes(read),
        "relations": relations(),
        "sure": sure(repeated),
        "asked": asked(),
        "beyond": beyond(tasks),
        "sentences": in_sentences(),
        "wording": wording(),
        **power_of_bbq(),
    }
    runs = {**tasks, "bbq": read["as generated"], "bbq-scored": read["most probable option"]}
    runs["documents"] = Run(MADE / "documents")
    check(runs)
    text = (HERE / "page.md").read_text("utf-8")
    for name, table in figures.items():
        text = text.replace(f"{{{name}}}", table)
    PAGE.write_text(filled(text, runs), "utf-8")


if __name__ == "__main__":
    main()
