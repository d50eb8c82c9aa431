"""Forms of English verbs: a closed table of irregular ones, and the spelling of all others.

A form that neither knows is None, never a guess that nobody looks at.
"""

from __future__ import annotations

import re

_IRREGULAR = """
be was been|have had had|do did done|go went gone|become became become|come came come
begin began begun|break broke broken|bring brought brought|build built built|buy bought bought
catch caught caught|choose chose chosen|deal dealt dealt|draw drew drawn|drink drank drunk
drive drove driven|eat ate eaten|fall fell fallen|feed fed fed|feel felt felt|fight fought fought
find found found|flee fled fled|fly flew flown|forget forgot forgotten|forgive forgave forgiven
freeze froze frozen|get got got|give gave given|grow grew grown|hang hung hung|hear heard heard
hide hid hidden|hold held held|keep kept kept|know knew known|lead led led|leave left left
lend lent lent|lose lost lost|make made made|mean meant meant|meet met met|pay paid paid
ride rode ridden|ring rang rung|rise rose risen|run ran run|say said said|see saw seen
seek sought sought|sell sold sold|send sent sent|shake shook shaken|shoot shot shot
show showed shown|sing sang sung|sink sank sunk|sit sat sat|sleep slept slept|speak spoke spoken
spend spent spent|stand stood stood|steal stole stolen|stick stuck stuck|strike struck struck
swear swore sworn|sweep swept swept|swim swam swum|swing swung swung|take took taken
teach taught taught|tear tore torn|tell told told|think thought thought|throw threw thrown
understand understood understood|wake woke woken|wear wore worn|weave wove woven
weep wept wept|win won won|withdraw withdrew withdrawn|write wrote written
overcome overcame overcome|undergo underwent undergone|bear bore borne
bite bit bitten|bleed bled bled|blow blew blown|breed bred bred|dig dug dug|forbid forbade forbidden
grind ground ground|kneel knelt knelt|lay laid laid|light lit lit|shine shone shone|sew sewed sewn
shrink shrank shrunk|slide slid slid|spin spun spun|spring sprang sprung|sting stung stung
swell swelled swollen|cling clung clung|bind bound bound|bend bent bent|dwell dwelt dwelt
mistake mistook mistaken|undertake undertook undertaken|overhear overheard overheard
put put put|cut cut cut|let let let|set set set|hit hit hit|hurt hurt hurt|shut shut shut
cost cost cost|quit quit quit|split split split|bet bet bet|burst burst burst|cast cast cast
spread spread spread|shed shed shed|rid rid rid|read read read|beat beat beaten
uphold upheld upheld|withstand withstood withstood
remake remade remade|rebuild rebuilt rebuilt|outgrow outgrew outgrown|foresee foresaw foreseen
babysit babysat babysat|breastfeed breastfed breastfed|arise arose arisen|awake awoke awoken
spit spat spat|speed sped sped|wind wound wound|tread trod trodden|undo undid undone
redo redid redone|rewrite rewrote rewritten|override overrode overridden|string strung strung
broadcast broadcast broadcast|misunderstand misunderstood misunderstood
"""
_ROWS: list[list[str]] = [row.split() for row in re.split(r"[|\n]", _IRREGULAR.strip())]
_PAST = {base: past for base, past, _ in _ROWS}
_PARTICIPLES = {base: participle for base, _, participle in _ROWS}
_BASES = {past: base for base, past, _ in reversed(_ROWS)}
"""Base of an irregular past form."""
IRREGULAR_PARTICIPLES = frozenset(_PARTICIPLES.values()) | {"born", "gotten"}

# Verbs of several syllables that double their last letter, and those in -l and -p that do in
# British English.
_DOUBLING = frozenset(
    """begin refer prefer occur admit permit commit submit forget regret transfer confer defer infer
    recur incur control patrol rebel compel expel propel excel equip kidnap worship program emit
    omit remit acquit forbid babysit upset reset abet allot deter inter handicap unwrap entrap
    enrol fulfil instil distil travel cancel label model counsel signal quarrel level marvel tunnel
    channel fuel dial duel rival total metal pedal equal embed format overlap
    debug zigzag unzip""".split()  # noqa: SIM905 (reads better so)
)
_ONE_SYLLABLE = re.compile(r"(?:[^aeiouy]|y(?=[aeiou])|(?<=q)u)*[aeiouy][^aeiouwxy]")
_WITH_E = frozenset(
    """age ache bathe breathe clothe loathe soothe sunbathe taste waste paste haste welcome
    unite invite recite excite
    incite ignite complete compete delete promote devote denote quote dye eye owe
    change exchange arrange estrange range challenge plunge lunge lounge scrounge avenge revenge
    cringe binge hinge infringe type overcome believe please co-operate explore ignore restore adore
    store score bore postpone condone phone clone telephone fine machine resume hope
    escape scrape shape reshape tape exile reconcile compile smile file console describe subscribe
    prescribe inscribe evoke provoke invoke revoke dislike strike hike like bike invade persuade
    trade evade parade guide concede precede erode inhale rule schedule
    create recreate require acquire inquire route cache stereotype
    underscore chaperone""".split()  # noqa: SIM905
)
"""Verbs in -e that the letters before their -ed do not show."""
_WITHOUT_E = frozenset(
    """focus bias canvas gas bus hang bang long belong prolong wrong kidnap quizz vacuum
    invalid""".split()  # noqa: SIM905
)
_ALWAYS_E = re.compile(
    r"(?:[cuvz]|(?<!s)s|[^n]g|[bdfgkptz]l|[cs]tl|at|ir|ar|ur|in|um|ut|id|ud|ib|ad|od)$"
)
"""What verbs of several syllables end in before an -e, with few exceptions below."""
_NEVER_E = re.compile(
    r"(?:[wxy]|er|en|it|et|or|on|op|ip|an|el|al|om|ck|sh|ch|ph|[aeo]in|[aeo]{2}[^aeioucgsvz]|"
    r"(?:ai|au|oi|ou|ow|ie|ea|oa|oo|ee|(?<!q)ui)[^aeioucgsvz]|[^aeiou][^aeioulsvzcgu]|ll|ss|ff|rl)$"
)
_OES = frozenset("shoe toe hoe canoe tiptoe woe".split())  # noqa: SIM905
_CHES = frozenset("ache cache headache".split())  # noqa: SIM905
_SHORT_IE = frozenset("die lie tie vie belie untie".split())  # noqa: SIM905


_IRREGULAR_PRESENT = {"is": "be", "has": "have"}


def base_of_present(verb: str) -> str | None:
    """Return the base of a third person singular (`carries`: `carry`); None for what is none."""
    if verb in _IRREGULAR_PRESENT:
        return _IRREGULAR_PRESENT[verb]
    if not re.fullmatch(r"[a-z][a-z-]*[^s\W]s", verb) or verb.endswith("us"):
        return None
    without = verb[:-1]
    if without in _OES | _CHES | _SHORT_IE:
        return without
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    if verb.endswith(("ches", "shes", "sses", "xes", "oes", "zzes")) or without[:-1] in _WITHOUT_E:
        return verb[:-2]
    return without


def present_of(base: str) -> str:
    """Return the third person singular of a base: `carry` is `carries`."""
    special = {"be": "is", "have": "has"}
    if base in special:
        return special[base]
    if re.search(r"[^aeiou]y$", base):
        return f"{base[:-1]}ies"
    return f"{base}es" if re.search(r"(?:s|x|z|ch|sh|[^aeio]o)$", base) else f"{base}s"


def base_of_past(verb: str) -> str | None:
    """Return the base of a past form: `grew` is `grow`; None where the letters do not tell.

    `moved` shows its -e; `lodged` and `visited` are known by their endings; `hurtled` is refused.
    """
    if verb in _BASES:
        return _BASES[verb]
    if not re.fullmatch(r"[a-z][a-z-]+ed", verb):
        return None
    stem = verb[:-2]
    if f"{stem}e" in _WITH_E | _SHORT_IE:
        return f"{stem}e"
    if stem in _WITHOUT_E or stem in _DOUBLING or stem in {"add", "err", "ebb", "egg", "butt"}:
        return stem
    if re.search(r"[aeiou][^aeiou]ick$", stem):  # "panicked"
        return stem[:-1]
    if stem in {"ski", "taxi"}:
        return stem
    if verb.endswith(("greed", "freed", "creed")):
        return verb[:-1]
    if stem.endswith("i"):
        return f"{stem[:-1]}y"
    if stem[-1] == stem[-2:-1] and stem[-1] not in "aeiou":
        single = stem[:-1]
        if single in _DOUBLING:
            return single
        return stem if stem[-1] in "lsfz" else single
    if re.search(r"(?:^|[^aeiou])[aeiouy][^aeiouwxy]$", stem) and _ONE_SYLLABLE.fullmatch(stem):
        return f"{stem}e"
    if _NEVER_E.search(stem):
        return stem
    return f"{stem}e" if _ALWAYS_E.search(stem) else None


def past_of(base: str) -> str:
    """Return the past form of a base: `go` is `went`, `carry` is `carried`."""
    if base in _PAST:
        return _PAST[base]
    if base.endswith("e"):
        return f"{base}d"
    if re.search(r"[^aeiou]y$", base):
        return f"{base[:-1]}ied"
    return f"{_doubled(base)}ed"


def participle_of(base: str) -> str:
    """Return the past participle of a base: `go` is `gone`."""
    return _PARTICIPLES.get(base) or past_of(base)


def participle_of_past(verb: str) -> str:
    """Return the past participle of a past form: `went` is `gone`; regular ones are their own."""
    base = _BASES.get(verb)
    return verb if base is None else _PARTICIPLES[base]


def is_past(verb: str) -> bool:
    """Return whether a word can be the past form of a verb."""
    return verb in _BASES or re.fullmatch(r"[a-z][a-z-]+ed", verb) is not None


def gerund_form(base: str) -> str:
    """Return the form in -ing of a base: `run` is `running`, `lie` is `lying`."""
    if base.endswith("ie"):
        return f"{base[:-2]}ying"
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")) and base != "be":
        return f"{base[:-1]}ing"
    return f"{_doubled(base)}ing"


def _doubled(base: str) -> str:
    if re.search(r"[aeiou]c$", base):
        return f"{base}k"
    doubles = base in _DOUBLING or _ONE_SYLLABLE.fullmatch(base)
    return base + base[-1] if doubles else base
