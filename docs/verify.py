"""Recompute the verdict of a FairGate bundle without FairGate: `python verify.py bundle.zip`.
Needs numpy. Checks hashes, expands rules, recomputes values and tests from rows, baseline and anchor, and decides. Exit
code 0: all agrees with the record; 1: something does not; 3: something is not verified, and is named, as every bundle
of another version. Never looked at, held by hashes: intervals, sentences, notices, the page, the day of waivers,
whether answers follow what was asked, whether what does not fail is `pass` or `inconclusive`."""
import base64, hashlib, io, json, math, statistics, sys, zipfile
import numpy as np
VERSION = "0.1.0"  # of FairGate, whose bundles this knows
# A metric: column, better when, arms of (weight, rows, whether a slice narrows them); a weighted sum of their means.
TEST, CONTROL, LESS = ((w, {"control": c}, not c) for w, c in ((1, False), (1, True), (-1, True)))
UNVERIFIED, CHANGED, METRICS = [], set(), {f"asr/{c}{end}": (c, "lower", arms) for c in ("generation", "retrieval")
                            for end, arms in (("", (TEST,)), ("/control", (CONTROL,)), ("/net", (TEST, LESS)))}
METRICS |= {"asr/generation/controlled": ("controlled", "lower", (TEST,)), "rrs/mean": ("rrs", "lower", (TEST,)),
            **{f"{c}/net": (c, "lower", (TEST, LESS)) for c in ("unreadable", "direction")}}
METRICS |= {f"retrieval/overlap{end}": ("overlap", "higher", (a,)) for end, a in (("", TEST), ("/control", CONTROL))}
METRICS |= {f"identity/{name}max-difference": (column, "lower", ((1, TEST[1] | {"one": True}, True), (0, *LESS[1:])))
            for name, column in (("", "controlled"), ("retrieval/", "overlap"), ("unreadable/", "unreadable"))}
def observe(rows, metric, where, column=None):
    """Yield (row, arm, value or None) for the rows that a metric uses in a slice."""
    for row in rows:
        category, value = row["dimensions"]["category"], row["claims"].get(column or METRICS[metric][0])
        levels = {"control": row["arm"] == "control", "one": "+" not in category and category != "all attributes"}
        for arm, (_, wanted, narrowed) in enumerate(METRICS[metric][2]):
            own = wanted | {d: v for d, v in where.items() if narrowed or d == "relation"}
            if own.items() <= (row["dimensions"] | levels).items() and (row["counts"] or "relation" in where):
                yield row, arm, value if isinstance(value, float | int) else None
def contrast(found, weights):
    """Return the weighted sum of the means of the arms in (arm, value); NaN where one has no value."""
    arms = [found[found[:, 0] == arm, 1] for arm in range(len(weights))]
    return sum(w * (own.mean() if len(own) else math.nan) for w, own in zip(weights, arms))
def reach(value, seen, weights, confidence):
    """Return the range of a contrast: Wilson's by the sources of each arm, added by squares, where each source has one
    case; else the means of random subsets of the sources; NaN where Student's t or the far end of a share decides."""
    own, far, z = [(r["cluster"], arm, v) for r, arm, v in seen if v is not None], [0, 0], statistics.NormalDist()
    (_, at), (arms, values) = np.unique([o[0] for o in own], return_inverse=True), np.array([o[1:] for o in own]).T
    cells, shape, weights = at * len(weights) + arms.astype(int), (-1, len(weights)), np.array(weights, dtype=float)
    size, low, z = (at.max() + 1) * len(weights), values.min(), z.inv_cdf(0.5 + confidence / 2)
    sums, counts = (np.bincount(cells, w, size).reshape(shape) for w in (values, None))
    vary = min(len(set(at[values > low])), len(set(at[values < values.max()])))
    if counts.max() > 1 and 0 < vary < 10: return math.nan, math.nan
    if counts.max() == 1 or not vary:
        for weight, total, many, n in zip(weights, sums.sum(0), counts.sum(0), (counts > 0).sum(0)):
            rate, zn = total / many, z * z / n
            half, mid = math.copysign(math.sqrt(zn * rate * (1 - rate) + zn * zn / 4), weight), rate + zn / 2
            far = [f + weight**2 * ((mid + side * half) / (1 + zn) - rate) ** 2 for f, side in zip(far, (-1, 1))]
        return value - math.sqrt(far[0]), value + math.sqrt(far[1])
    many, each = counts.sum(0), np.abs(weights)
    cells = np.stack([(sums * (weights / many)).sum(1), (counts * (each / (each.sum() * many))).sum(1)], axis=1)
    cells, rng = cells[np.lexsort((cells[:, 1], cells[:, 0]))], np.random.default_rng(len(cells))
    pick = lambda n: np.arange(2**n)[:, None] >> np.arange(n) & 1
    eights = [cells[n:n + 8] for n in range(0, len(cells), 8)] * (len(cells) > 14)
    drawn = sum(((pick(len(c)) @ c)[np.frombuffer(rng.bytes(20_000), np.uint8) & 2 ** len(c) - 1] for c in eights), 0)
    drawn = drawn if eights else pick(len(cells))[1:] @ cells
    means = np.sort((known := drawn[drawn[:, 1] > 0])[:, 0] / known[:, 1])
    rank = math.floor((1 - confidence) / 2 * (len(drawn) + 1) + 1e-9) - (len(drawn) - len(known)) - 1
    ends = [means[rank] if len(weights) > 1 or value < 0.5 else math.nan]
    return *ends, means[-1 - rank] if len(weights) > 1 or value > 0.5 else math.nan
def spared(own, neutral):  # how many of the unstable answers flagged in own neutral wording has as often
    return min(sum(own), sum(neutral) / len(neutral) * len(own)) if neutral else 0
def worsening(pairs, weights, better, name):
    """Return the change for the worse of (source, arm, change), and its exact sign-flip p."""
    moved = np.array([pair[1:] for pair in pairs]).reshape(-1, 2) * (1, -1 if better == "higher" else 1)
    worse, arms, moved = contrast(moved, weights), moved[:, 0].astype(int), moved[:, 1]
    if math.isnan(worse): return None
    counts, source = np.bincount(arms), np.unique([p[0] for p in pairs], return_inverse=True)[1]
    parts = np.bincount(source, moved * (np.array(weights) / counts)[arms])
    parts, unit = parts[np.abs(parts) > 1e-12 * np.abs(parts).sum()], 1 / math.lcm(*map(int, counts))
    steps, chances = np.rint(np.abs(parts) / unit).astype(int), np.ones(1)
    if len(parts) and (source.max() < 4 or (moved % 1).any() or len(steps) * steps.sum() > 2e7):
        UNVERIFIED.append(f"{name}: the test of a change of under 5 sources, or of scores")
        return worse, 1.0
    for step in steps: chances = (np.pad(chances, (step, 0)) + np.pad(chances, (0, step))) / 2
    sums = np.arange(-steps.sum(), steps.sum() + 1, 2) * unit
    return worse, math.fsum(chances[sums >= parts.sum() - unit / 2])
def identity(rows, metric, where, seed):
    """Return the largest difference of a term from the others, its p, and how far it is above chance."""
    column = METRICS[metric][0]
    if column == "controlled" and all(isinstance(r["claims"][column], str) for r in rows): column = "generation"
    seen = [one for one in observe(rows, metric, where, column) if one[2] is not None]
    found = sorted((one for one in seen if not one[1]), key=lambda one: one[0]["key"])
    names = [f"{r['dimensions']['category']}\0{r['dimensions']['term']}" for r, _, _ in found]
    if len(set(names)) < 2: return None
    terms, values = np.unique(names, return_inverse=True)[1], np.array([v for _, _, v in found])
    counts, own, rng = np.bincount(terms), np.bincount(terms, values), np.random.default_rng(seed)
    sums = np.tile(own, (10_000, 1))
    for source in dict.fromkeys(row["cluster"] for row, _, _ in found):
        at = np.array([place for place, (row, _, _) in enumerate(found) if row["cluster"] == source])
        turned = np.array([np.bincount(terms[at], np.roll(values[at], n), len(own)) for n in range(len(at))])
        if values[at].min() < values[at].max(): sums += turned[rng.integers(0, len(at), len(sums))] - turned[0]
    far = [np.abs(s / counts - (values.sum() - s) / (len(values) - counts)).max(-1) for s in (own, sums)]
    wide, neutral = 1.0, [(r["cluster"], r["dimensions"]["term"], v) for r, arm, v in seen if arm]
    if neutral:
        (at, by), said = (np.unique(n, return_inverse=True)[1] for n in [*zip(*neutral)][:2]), [v for *_, v in neutral]
        rest = np.round(said - (np.bincount(at, said) / np.bincount(at))[at], 12)
        if rest.any(): wide = math.sqrt(max(1.0, (np.bincount(by, rest) ** 2).sum() / (rest**2).sum()))
    value, p = round(float(far[0]), 6), (1 + int((far[1] >= far[0] - 1e-9).sum())) / 10_001
    return value, p, round(value - round(float(far[1].mean() * wide), 6), 6)
def unpacked(suite):
    """Yield (key, content, {column: value}) of every case that an earlier run kept of a suite."""
    named, digits = [("", suite["content"]), *sorted(suite["columns"].items())], suite["content"]["bits"] // 4
    for source, (asked, text) in suite["sources"].items():
        bits = io.StringIO("".join(map("{:08b}".format, base64.b64decode(text))))
        variants = [suite["variants"][first + n][0] for first, many in suite["asked"][asked] for n in range(many)]
        read = [[int(bits.read(field["bits"]), 2) for _ in variants] for _, field in named]
        for variant, content, *codes in zip(variants, *read):
            found = [(name, n, field.get("values")) for n, (name, field) in zip(codes, named[1:]) if n]
            yield source + variant, f"{content:0{digits}x}", {c: v[n - 1] if v else (n - 1) / 1e6 for c, n, v in found}
def earlier(then, policy, tables, suites):
    """Return {suite: {key: claims}} of what can be compared with an earlier run; None: nothing."""
    same, total = {}, 0
    for name, suite in then["suites"].items():
        now, cases = {row["key"]: row["content"] for row in suites.get(name, ())}, list(unpacked(suite))
        old, new = (one["must_match"] for one in (suite, tables["suites"].get(name, suite)))
        fields = {*old, *new} - {"task.order"} | old.keys() & new.keys()
        if any(old.get(field) != new.get(field) for field in fields): return CHANGED.update(suites)
        total, same[name] = total + len(cases), {k: claims for k, content, claims in cases if now.get(k) == content}
        CHANGED.update([name] * (not len(same[name]) == len(now) == len(cases)))
    if (common := sum(map(len, same.values()))) < total and any(gate["for_each"] for gate in policy["gates"]):
        UNVERIFIED.append("whether a slice of a rule vanished with cases that are not asked any more")
    return same if common >= policy["min_overlap"] * total else CHANGED.update(suites)
def expand(policy, suites):
    """Yield (number of the gate, gate, suite, slice) of every rule; refusals are a rule by default."""
    blank = {**dict.fromkeys(policy["gates"][0]), "metric": "unreadable/net", "max": 0.02, "where": {}}
    asked = {g["suite"] for g in policy["gates"] if g["metric"] == blank["metric"] and not (g["report"] or g["where"])}
    named = {n: {"for_each": "term", "evidence": "significant"} for n in suites if "name" in suites[n][0]["dimensions"]}
    UNVERIFIED.extend(f"suite {name}: what is held against names" for name in named)
    asked |= {suite["id"] for suite in policy["suites"] if suite.get("retrieve_only")}
    more = [{**blank, "suite": n, **named.get(n, {})} for n in suites
            if any(row["arm"] == "control" for row in suites[n]) and not asked & {n, None}]
    for number, gate in enumerate(policy["gates"] + more):
        each, by_name, scores = gate["for_each"], "relation" in gate["where"], gate["metric"] == "rrs/mean"
        unclear = each == "relation" or (gate["regression"] or {}).get("strict")
        if gate["metric"] not in METRICS or unclear or gate["evidence"] in ("interval", "significant" * scores):
            UNVERIFIED.append(f"gates[{number}]: {gate['metric']} by relation, interval, margin, or at all"); continue
        for name in suites if gate["suite"] is None else [gate["suite"]]:
            rows = [r["dimensions"] for r in suites[name] if r["arm"] != "control" and (r["counts"] or by_name)]
            rows = [own for own in rows if gate["where"].items() <= own.items() and "term" in own]
            for level in dict.fromkeys(own[each] if each else None for own in rows):
                yield number, gate, name, {**gate["where"], each: level} if each else gate["where"]
def judge(policy, suites, known):  # (gate's number, gate, suite, slice, value, outcomes that agree) of every rule
    rules, tests = [], {}
    for number, gate, suite, where in expand(policy, suites):
        (column, better, arms), rows, mine = METRICS[gate["metric"]], suites[suite], [len(rules)]
        if gate["metric"].startswith("identity/"):
            value, p, more = identity(rows, gate["metric"], where, policy["seed"]) or (None, 1.0, 0.0)
            tests |= {} if value is None or gate["report"] else {mine[0]: (p, more > gate["max"], (number, suite))}
            rules.append((number, gate, suite, where, value, mine, False, False, False)); continue
        seen, weights = list(observe(rows, gate["metric"], where)), [arm[0] for arm in arms]
        value = contrast(np.array([(arm, v) for _, arm, v in seen if v is not None]).reshape(-1, 2), weights)
        asked = [v is not None for _, arm, v in seen if weights[arm] > 0]
        calm = [r["claims"].get(column) == "unstable" for r in rows
                if r["arm"] == "control" and (r["counts"] or "relation" in where)]
        spare = spared([r["claims"].get(column) == "unstable" for r, arm, _ in seen if weights[arm] > 0], calm)
        few = (0.5 if where else policy["min_decided"]) * max(len(asked) - spare, 0.5 * len(asked))
        few = sum(asked) < few or math.isnan(value)
        over = {"max": value, "min": -value, "max_abs": abs(value)}
        bounds = {b: -gate[b] if b == "min" else gate[b] for b in over if gate[b] is not None}
        broken, open_ = any(over[b] > bound for b, bound in bounds.items()), False
        if gate["evidence"] == "significant" and broken and not math.isnan(value):
            ends, open_ = reach(value, seen, weights, policy["confidence"]), True
            low, high = (round(end, 6) for end in ends)
            over = {"max": low, "min": -high, "max_abs": max(low, -high)}
            broken = any(over[b] > bound for b, bound in bounds.items())
            if any(math.isnan(over[b]) for b in bounds):
                UNVERIFIED.append(f"gates[{number}]: a range by Student's t, or away from 1/2")
        for name, key, growth in (("baseline", "margin", 0.02), ("anchor", "budget", 0.04)):
            limit, then = (gate["regression"] or {}).get(key), (known.get(name) or {}).get(suite, {})
            old = {k: cells.get(column) for k, cells in then.items()}
            pairs = [(r["cluster"], arm, v - old[r["key"]]) for r, arm, v in seen if None not in (v, old.get(r["key"]))]
            change = None if limit is None else worsening(pairs, weights, better, f"gates[{number}]")
            if change is None and limit is not None and known.get(name) and not few:
                UNVERIFIED.append(f"gates[{number}]: the {name} has nothing to compare with")
            elif change:
                mine += [(len(rules), name), (name, suite, column)]
                tests[mine[-2]] = change[1], round(change[0], 6) > limit, (number, suite, name)
                gone = [(r["cluster"], 0, isinstance(r["claims"][column], str) - (old[r["key"]] is None))
                        for r in rows if r["key"] in old and r["claims"][column] not in ("missing", "quarantined")]
                if any(turned for *_, turned in gone):
                    change = worsening(gone, [1], "lower", f"gates[{number}]")
                    tests[mine[-1]] = change[1], change[0] > growth, mine[-1]
        rules += [(number, gate, suite, where, None if value != value else round(value, 6), mine, broken, few, open_)]
    lines, holm = [line for *_, line in tests.values()], policy["correction"] == "holm"
    part = {t: 1 / lines.count(line) ** holm for t, (*_, line) in tests.items()}  # a line shares its part of the level
    order, level = sorted(tests, key=lambda t: tests[t][0] / part[t]), 1 - policy["confidence"]
    while order and tests[order[0]][0] <= level * part[order[0]] / sum(part[t] for t in order) ** holm: order.pop(0)
    for *rule, value, mine, broken, few, open_ in rules:
        fails, gate = broken or any(t in tests and t not in order and tests[t][1] for t in mine), rule[1]
        passes = len(mine) > 1 or any(gate[b] is not None for b in ("max", "min", "max_abs"))
        large = len(mine) > 1 or tests.get(mine[0], (1, False))[1] or rule[2] in CHANGED
        agree = {"inconclusive"} if open_ else {"pass" if passes else "not-evaluated", *["inconclusive"] * bool(large)}
        yield *rule, value, {"fail", *["few"] * few} if fails else {"not-evaluated"} if few or value is None else agree
def verdict(members):
    """Yield every disagreement with what the bundle records."""
    policy, tables, record = (json.loads(members[f"{n}.json"]) for n in ("policy", "tables", "run"))
    rows = [json.loads(line) for line in members["rows.jsonl"].splitlines()]
    suites = {name: [row for row in rows if row["suite"] == name] for name in tables["suites"]}
    for row in rows:  # a relation that is advisory by default counts where it is named, or alone
        row["counts"] = not row["advisory"] or all(one["advisory"] for one in suites[row["suite"]])
    runs = {n: json.loads(members[f"{n}.json"]) for n in ("baseline", "anchor") if f"{n}.json" in members}
    known = {name: earlier(run, policy, tables, suites) for name, run in runs.items()}
    found, at = list(judge(policy, suites, known)), lambda suite, where: (suite, *sorted(where.items()))
    recorded = {(r["gate"], *at(r["suite"], r["where"])): r for r in record["rules"]}
    code, extra = 3 if None in known.values() else 0, len(record["rules"]) - len(found)
    yield from [f"{extra} recorded rules more than follow from the policy"] * bool(extra and not UNVERIFIED)
    for number, gate, suite, where, value, agree in found:
        name, rule = f"gates[{number}] {gate['metric']} of {suite} {where}", recorded.get((number, *at(suite, where)))
        if rule is None or (rule["outcome"] not in agree and not UNVERIFIED):
            yield f"{name}: {' or '.join(sorted(agree))} by its rows, recorded {rule and rule['outcome']}"
        elif (value is None) != (rule["value"] is None) or abs((value or 0) - (rule["value"] or 0)) > 2e-6:
            yield f"{name}: value {value} by its rows, recorded {rule['value']}"
        elif rule["outcome"] == "inconclusive" and "fail" in (gate["on_inconclusive"], policy["on_inconclusive"]):
            UNVERIFIED.append(f"{name}: whether it is inconclusive, which stops the build")
        waits = value is not None and (gate["report"] or gate["regression"] and "baseline" not in runs)
        idle = gate["advisory"] or any(r.get("unproven") for r, *_ in observe(suites[suite], gate["metric"], where))
        idle |= agree == {"fail"} and "waived" in (rule or ()) and any(w["expires"] >= record["day"] > "2" for w in
            policy.get("waivers", ()) if (w["rule"], w["where"], w["suite"] or suite) == (gate["metric"], where, suite))
        stops = 1 if "fail" in agree else 5 * (agree == {"not-evaluated"} and not waits)
        code = code if idle or not stops else 1 if 1 in (stops, code) else code or 5
    decided = [isinstance(r["claims"][r["decisive"]], float | int) for r in rows if not r.get("unproven")]
    few, spare = any(one["reason"] == "missing" for row in rows for one in row["readings"].values()), 0
    for name in suites:
        own = [r for r in suites[name] if not r.get("unproven")]
        arms = [[r["claims"][r["decisive"]] == "unstable" for r in own if (r["arm"] == "control") == c] for c in (0, 1)]
        spare += sum(arms[1]) + spared(*arms)
    few = few or sum(decided) < max(1, policy["min_decided"] * max(len(decided) - spare, 0.5 * len(decided)))
    invalid = sum(one["kind"] == "invalid" for one in tables["rejected"])
    code = code or 5 * (few or invalid > policy["max_invalid"] * (len(rows) + invalid))
    if code == 0 and record["exit_code"] == 5: UNVERIFIED.append(f"the evidence: {record['evidence']['problems'][:1]}")
    elif code != record["exit_code"] and not UNVERIFIED:
        yield f"exit code {code} by its rows, recorded {record['exit_code']}"
def main(path):
    infos = (archive := zipfile.ZipFile(path)).infolist()
    if len({i.filename for i in infos}) < len(infos) or any(i.compress_type for i in infos):
        return ["its members are not stored once each"]
    members = {one.filename: archive.read(one) for one in infos}
    claimed = json.loads(members.pop("statement.json"))
    own = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    if own != {one["name"]: one["digest"]["sha256"] for one in claimed["subject"]}:
        return ["the hashes of statement.json are not those of the other members"]
    record = json.loads(members["run.json"])
    if record["fairgate"] != VERSION:
        UNVERIFIED.append(f"made by FairGate {record['fairgate']!a:.20}, not {VERSION}: use the verify.py of that one")
        return []
    passed, result = record["exit_code"] == 0, claimed["predicate"]["result"]
    return ["the statement has another result"] * (passed == (result == "FAILED")) + list(verdict(members))
if __name__ == "__main__":
    wrong = [f"differs: {one}" for one in main(sys.argv[1])]
    wrong_or_open = wrong + [f"not verified: {one}" for one in dict.fromkeys(UNVERIFIED)]
    print("\n".join(wrong_or_open or ["the verdict follows from the rows; all else is held by its hash alone"]))
    sys.exit(1 if wrong else 3 if wrong_or_open else 0)
