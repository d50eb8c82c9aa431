"""Whether a label is denied by what stands around it in its clause.

The words are English, with the plainest ones of German, French, Spanish, Italian, Portuguese and
Dutch, and those of Chinese, Japanese and Korean. In doubt a label counts as denied: an unreadable
answer is counted as such, a wrongly read one is not noticed.
"""

from __future__ import annotations

import re
from enum import Enum
from string import whitespace

_REACH = 300
"""Characters before a label in which its clause is looked for: reading stays linear."""
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


class Negation(Enum):
    """How a label is denied."""

    NONE = "none"
    DIRECT = "direct"
    """The negation belongs to the label itself ("is not toxic", "no toxic words"): its opposite."""
    LOOSE = "loose"
    """Something in the clause is denied ("cannot say whether it is toxic"), or one of several
    labels is ("neither …"): what the label means then is open."""


_DIRECT = frozenset(
    """not no non never without cannot n't nicht kein keine keinen nie pas jamais sin sans ohne
    senza sem não nao niet geen ikke inte nije není не ليس""".split()  # noqa: SIM905 (reads better so)
)
_LOOSE = frozenset(
    """neither nor none nothing nobody nowhere hardly barely scarcely rarely seldom unlikely lacks
    lack lacking fails failed unable absence devoid wrong incorrect refuse refuses doubt doubts
    less weder keineswegs kaum nichts nauwelijks niets guère rien nada niente nulla tutt'altro
    allesbehalve difficilmente difícilmente dificilmente ni aucun aucune tampoco né ne nem noch ни""".split()  # noqa: SIM905 (reads better so)
)
_CONTRACTED = re.compile(
    r".+n't|(?:is|are|was|were|do|does|did|ca|wo|would|could|should|has|have|had|must|ai)nt"
)
_IDIOMS = re.compile(
    r"\b(?:(?:no|without(?: a| any)?) (?:doubt|question)(?: about it)?|nothing (?:but|short of)|"
    r"none other than|no (?:problem|worries|wonder|surprise|thanks(?: to)?|longer|less|more|sooner|"
    r"need to \w+|matter (?:how|what|which|who|where|whether)|(?:use )?denying)|"
    r"(?:do not|don't|dont|never|not to) (?:worry|hesitate to|hesitate|forget to|forget|fear|mind)|"
    r"not (?:really|quite|exactly)(?=,)|not a problem|no (?:kidding|way!|harm|big deal|rush|exception|offence|offense)|"
    r"(?:can't|cannot|couldn't) (?:wait|complain|be happier|thank \w+ enough)|never better|not half bad|"
    r"(?:don't|do not) miss|needless to say|without further (?:ado|delay)|goes without saying|last but not least|"
    r"not (?:surprisingly|unexpectedly|only|just|least|to mention|bad(?: at all)?|long ago)|"
    r"(?:can't|cannot|can not|couldn't|could not) (?:help but|help|go wrong|agree more|stress enough|"
    r"(?:be|have been|get) (?:more|clearer|any more))|if (?:i am|i'm) not mistaken|why not|"
    r"or not|(?:never|rarely|seldom) (?:have|had|did) (?:i|we) \w+ (?:\w+ )?(?:so|such|as)|"
    r"keine? (?:sorge|problem|frage|zweifel)|ohne zweifel|nicht nur|(?:pas de|sans) "
    r"(?:probl\u00e8me|souci|doute)|non seulement|(?:no hay|sin) (?:duda|problema|problemas)|"
    r"no te preocupes|no se preocupe|no solo|(?:nessun|senza) (?:problema|dubbio)|non solo|"
    r"(?:sem|n\u00e3o h\u00e1) (?:d\u00favida|problema)|n\u00e3o s\u00f3|geen (?:probleem|zorgen|twijfel)|"
    r"niet alleen|"
    r"(?:can|could) (?:hardly|scarcely|barely) \w+ (?:of )?(?:an? )?(?:\w+ )?more|"
    r"(?:cannot|can not|can't|couldn't|wouldn't|would not|don't|do not)(?: [\w']+){1,6} anything (?:but|other than|else than|except)|"
    r"no (?:ifs(?:,? ands)?,?(?: or| and)? buts|two ways about it|reason (?:to (?!(?:call|consider|label|classify|describe|think|find|say|see)\b)\w+|for \w+)|need (?:to \w+|for))|"
    r"without (?:hesitation|hesitating|reservation)|(?:(?:would|will|do|did|'d) not|wouldn't|won't|don't) (?:hesitate(?: to)?|think twice(?: about)?)|"
    r"(?:on )?n(?:e |')(?:peut|pourrait|saurait)(?: \u00eatre)? plus|nichts als|nada m[\u00e1a]i?s que|rien que|niente altro che|niets dan)\b"
)
"""Phrases that deny nothing, whatever word they hold."""
_CONDITION = re.compile(
    r"(?:^|(?<=[^\w'] )|(?<=[^\w']))(?:if|unless|should|when|whenever|once|in case|although|though|while|whereas|"
    r"since|because|as|even if|even though|whether|despite|after|before|falls|wenn|obwohl|weil|"
    r"si|bien que|comme|aunque|como|se|sebbene|anche se|embora|als|hoewel|omdat)\b[^,;.!?]*,"
)
"""A subordinate clause in front of the main one, up to its comma."""
_REPLACED = (
    (
        re.compile(
            r"\b(?:alles andere als|tout sauf|(?:todo|tudo) menos|tutto (?:tranne|fuorché|meno)(?: che)?|"
            r"verre van|weit (?:davon )?entfernt|loin d'(?:être)?|loin de|lejos de|longe de|lontano da(?:ll'essere)?|"
            r"apenas (?:se )?puede)\b"
        ),
        " neither ",
    ),
    (re.compile(r"\b(?:anything|all) but\b|\brather than\b|\binstead of\b"), " neither "),
    (re.compile(r"\b(?:far|free|other|opposed|opposite)(?: (?:from|of|than|to))\b"), " neither "),
)
_EXCHANGED = re.compile(
    r"\b(?:rather than|instead of|(?:far|free) from|anything but|all but|other than|au lieu de|"
    r"(?:an)?statt|en lugar de|en vez de|invece di|em vez de|in plaats van)"
    r"(?: (?:being|a|an|the|just|only|simply|clearly|overly))*[\s\"'*_(]*$"
)
"""What denies the one label that follows it, and no other one of its clause."""
_NOT_JUDGED = re.compile(
    r"\b(?:(?:(?:do|does|did|would)(?: not|n't)|cannot|can't)(?: (?:really|personally|quite|necessarily))? "
    r"(?:go (?:so|as|that|quite so) far (?:as )?(?:to )?)?"
    r"(?:(?:find|consider|call|calling|deem|describe|classify|regard|view|see|label|"
    r"say(?=(?: that)? (?:it|this|the \w+)(?:'s| is)))\b)"
    r"(?:(?: (?:that|anything|this|it|it's|the \w+|them|is|to be|being|as|an?))|'s)*|"
    r"(?:mistak(?:e|en|es|ing)|mistook) (?:\w+ ){0,3}for(?: (?:an?|the))?|"
    r"(?:rul(?:e|es|ed|ing) out|(?:exclud|eliminat|discard|reject|dismiss)(?:e?s?|ed|ing))(?: (?:that|it|is|was|the|an?))*|"
    r"(?:hard|difficult|tough|impossible|wrong|unfair|inaccurate|misleading|a stretch) to "
    r"(?:(?:find|consider|call|deem|describe|classify|regard|view|label)\b"
    r"(?: (?:that|anything|this|it|the \w+|them|to be|being|as|an?))*|"
    r"(?:see|say|argue|claim|maintain) (?:how|why|that)(?: (?:this|it|the \w+)(?: (?:is|was|could be|can be)|'s))?)|"
    r"nothing(?: (?:about|in) (?:this \w+|that \w+|the \w+|this|it|that)(?: is| seems| sounds)?)?)[\s\"'*_]*$"
)
"""Denials of the one label that follows: "I don't find this toxic", "hard to call this toxic"."""
_EXCHANGE_ENDS = (
    *("than", "of", "from", "but", "de", "statt", "di", "van"),
    *("being", "a", "an", "the", "just", "only", "simply", "clearly", "overly"),
)
"""The last words of what `_EXCHANGED` matches."""
_DENYING = (
    frozenset(
        """rather instead far free anything all other lieu statt anstatt lugar vez invece plaats
    opposed opposite alles tout todo tudo tutto verre weit loin lejos longe lontano
    apenas rule rules ruled ruling exclude excludes excluded excluding eliminate eliminates
    eliminated eliminating discard discards discarded discarding reject rejects rejected
    rejecting dismiss dismisses dismissed dismissing mistake mistaken
    mistakes mistaking mistook hard difficult tough impossible unfair inaccurate misleading stretch""".split()  # noqa: SIM905 (reads better so)
    )
    | _DIRECT
    | _LOOSE
)
"""Words that deny, or of which `_EXCHANGED`, `_REPLACED` or `_NOT_JUDGED` holds one."""
_SIGNS = frozenset("!\u00ac]\u2610\u2b1c")
"""Characters of which `_DENYING_SIGN` holds one, in front of some of `_AROUND`."""
_AROUND = f"*_\"'{whitespace}"
_FILLERS = frozenset(
    """a an any anything the at all in way be been being is considered to contain containing contains
    include includes seem appear look sound have has as language words content text classified
    categorized categorised labeled labelled rated deemed regarded judged""".split()  # noqa: SIM905 (reads better so)
)
_ENDS = re.compile(r"(\.\.\.|[.!?;:\n|(\u2192]|\s-\s|--|[\u2014\u2015\u3002\uff61])")
_HARD_ENDS = frozenset(".!?;\u3002\uff61")
_CONTRAST = re.compile(
    r"\b(?:but|although|though|whereas|however(?!\s*,)|sondern|aber|mais|pero|sino|ma|mas|maar|"
    r"e sim|eher|vielmehr|eerder|plut\u00f4t|m\u00e1s bien|piuttosto|bens\u00ec)\b|\u800c\u662f|\u4f46"
)
_COMMA = re.compile(r"[,\u3001]")
_PARTICLES = frozenset(
    """no nope nah yes yeah well ok okay sure hmm hm oh so""".split()  # noqa: SIM905 (reads better so)
)
_STARTERS = frozenset(
    """it it's its this that these the i i'd i'll i'm my he she they we you there which making here
    and overall please just es das der die ich c'est il elle je el lui è é het de dit
    was war""".split()  # noqa: SIM905 (reads better so)
)
_ALONE = frozenset(["no", "neither", "none", "nothing", "never"])
"""Denials that stand for themselves in front of a colon or a dash."""
_LINKS = frozenset(
    """so thus therefore hence then but yet please c'est it's es è é also daher deshalb donc pues entonces quindi
    fue fueron era eran foi foram c'était ent\u00e3o portanto dus""".split()  # noqa: SIM905 (reads better so)
)
_RELATIVES = frozenset(["who", "that", "which", "whom"])
_COPULAS = frozenset(["is", "was", "are", "were", "be", "seems"])
_DENYING_SIGN = re.compile(r"[!\u00ac][*_\"']*$|(?:\[ ?\]|[\u2610\u2b1c])[ *_]*$")
"""Marks right before a label: `!positive`, and the box of a list that is not ticked."""
_UNSPACED = re.compile(
    r"不是|并非|並非|没有|沒有|不能|不会|不會|不可能|不一定|不知|无法|無法|未能|않|[不非未没沒无無]$"
)
DENYING_SUFFIXES = (
    "ではな",
    "ではあり",
    "じゃな",
    "じゃあり",
    "でな",
    *(
        f"{particle}{gap}{verb}"
        for particle in ("이", "가", "은", "는")
        for gap in ("", " ")
        for verb in ("아니", "아닙", "아닌", "아님")
    ),
)
"""Endings by which Japanese and Korean deny the word before them: they belong to it like a prefix
does. After other words nothing is looked at."""


def negation_before(text: str, start: int, *, begin: int = 0, unspaced: bool = False) -> Negation:
    """Tell how a label at `start` of a folded text is denied by its clause in front of it.

    `begin`: where the clause begins at the earliest. `unspaced` looks for Chinese negations too,
    which are no words of their own.
    """
    begin = max(begin, start - _REACH)
    context = text[max(begin, _sentence_begin(text, begin, start)) : start]
    if not _may_deny(context, unspaced=unspaced):
        return Negation.NONE
    context = _IDIOMS.sub(" ", context)
    if _DENYING_SIGN.search(context):
        return Negation.LOOSE
    if _EXCHANGED.search(context):
        return Negation.LOOSE
    context = _NOT_JUDGED.sub(" not ", context)
    clause = _clause(context)
    words = WORD.findall(clause)
    places = [number for number, word in enumerate(words) if denies(word)]
    if unspaced and _UNSPACED.search(clause.rpartition(",")[2]):
        return Negation.LOOSE
    # Only a relative clause is denied: "the one who was not late was …".
    is_relative = places and not _RELATIVES.isdisjoint(words[: places[0]])
    if not places or (is_relative and words[-1] in _COPULAS):
        return Negation.NONE
    is_one = len(places) == 1 and words[places[0]] not in _LOOSE and "," not in clause
    if is_one and all(word in _FILLERS for word in words[places[0] + 1 :]):
        return Negation.DIRECT
    return Negation.LOOSE


def _sentence_begin(text: str, begin: int, start: int) -> int:
    """Find the mark before a place behind which a sentence surely begins; `begin` without one."""
    if text.find("no way!", begin, start) >= 0:
        return begin
    mark = text.rfind(". ", begin, start)
    if mark > 0 and text[mark - 1] == ".":  # an ellipsis ends nothing
        return begin
    for sign in "!?;":
        begin = max(begin, text.rfind(sign, begin, start))
    return max(begin, mark)


def denying_words(text: str, start: int, begin: int = 0) -> str:
    """Quote the words that deny the label at `start`; empty where none does."""
    context = _IDIOMS.sub(" ", text[max(begin, start - _REACH) : start])
    sign = _DENYING_SIGN.search(context) or _EXCHANGED.search(context)
    if sign is not None:
        return sign[0].strip()
    clause = _clause(context)
    unspaced = _UNSPACED.search(clause)
    denying = [word for word in WORD.findall(clause) if denies(word)]
    return denying[0] if denying else "" if unspaced is None else unspaced[0]


def exchanged_before(text: str, start: int) -> bool:
    """Tell whether the label at `start` is what something else is said instead of."""
    context = text[max(0, start - 60) : start]
    if not context.rstrip(f"({_AROUND}").endswith(_EXCHANGE_ENDS):
        return False
    return _EXCHANGED.search(_IDIOMS.sub(" ", context)) is not None


def denies(word: str) -> bool:
    """Tell whether a folded word is a denial by itself."""
    if word in _DIRECT or word in _LOOSE:
        return True
    return word.endswith("t") and _CONTRACTED.fullmatch(word) is not None


def _may_deny(context: str, *, unspaced: bool) -> bool:
    """Tell whether anything by which a clause could deny stands in a text: a cheap look."""
    if context.rstrip(_AROUND)[-1:] in _SIGNS or (unspaced and not context.isascii()):
        return True
    words = WORD.findall(context)
    if not _DENYING.isdisjoint(words):
        return True
    return ("n't" in context or "nt" in context) and any(map(denies, words))


def _clause(context: str) -> str:
    if "," in context:
        context = _CONDITION.sub(" ", context)
    for pattern, plain in _REPLACED:
        context = pattern.sub(plain, context)
    pieces = _ENDS.split(context)
    last = pieces[-1]
    if len(pieces) > 1 and pieces[-2] not in _HARD_ENDS:
        # "not: positive", "it is not ... positive", but "no - positive"
        before = WORD.findall(pieces[-3])
        if before and denies(before[-1]) and before[-1] not in _ALONE:
            last = f"{before[-1]} {last}"
    last = _CONTRAST.split(last)[-1]
    parts = _COMMA.split(last)
    clause_parts = [parts.pop()]
    while parts:
        words = WORD.findall(clause_parts[0])
        begins = words and (words[0] in _LINKS or (words[0] in _STARTERS and len(words) > 1))
        if begins or all(word in _PARTICLES for part in parts for word in WORD.findall(part)):
            break
        clause_parts.insert(0, parts.pop())
    return ",".join(clause_parts)
