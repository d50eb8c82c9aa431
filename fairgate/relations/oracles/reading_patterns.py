"""The words by which `statements.py` tells what a sentence does with a label, in the languages read.

All patterns are matched on folded text: lower case, one form of hyphens and apostrophes.
"""

from __future__ import annotations

import re

SENTENCE_END = re.compile(
    r"[!?.。｡\n](?:(?<=[!?])[!?]*|(?<=\.)(?<!\.\.)\.*+(?=[\"'”’»)\]]*\s)|(?<=[。｡\n]))"
)
"""What ends a sentence; a full stop does with white space behind it.

It begins with one character of a set, for which the search looks quickly.
"""
ASKED_TAG = re.compile(
    r",\s*(?:(?:is|was|does|do|did|has|would|wo|are|were)(?:n't| not)? (?:it|they|he|she|you)|right|no|oder|nicht wahr|non|n'est-ce pas|verdad|vero|certo|"
    r"não é|toch)\s*$"
)
QUESTION = re.compile(r"(?:か|까|까요|나요|吗|嗎|呢)\s*$")
"""How a question ends without a question mark."""

_ARTICLES = (
    r"the|an?|der|die|das|dem|den|ein|eine|einen|le|la|les|l'|un|une|el|los|las|una|il|lo|gli|i|"
    r"o|os|as|um|uma|de|het|een|of the|option|answer"
)
_OR = (
    r"or|and/or|either|oder|entweder|beziehungsweise|ou|soit|o bien|o|u|ya sea|oppure|ovvero|of|"
    r"ofwel|hetzij|vs\.?|versus"
)
_AND = r"and|as well as|und|sowie|et|ainsi que|y|e|en|and also|both"
_OR_UNSPACED = "인지|또는|혹은|이나|거나|나|或者是|或者|还是|還是|或是|或|なのか|か|または|もしくは|あるいは|일"
_AND_UNSPACED = "과|와|랑|및|하고|和|与|與|及|跟|と|や|도|也|も"
JOINED = re.compile(
    rf"[\s\"'“”‘’*_(),;\[\].]*(?:(?P<or>(?:{_OR})(?![^\W_])|/|\||(?:{_OR_UNSPACED}))|"
    rf"(?P<and>(?:{_AND})(?![^\W_])|&|\+|(?:{_AND_UNSPACED})))?"
    rf"[\s\"'“”‘’*_(),\[\]]*(?:(?:{_ARTICLES})(?![^\W_])\s*|(?<=l')|l')?[\s\"'“”‘’*_(\[]*"
    r"(?:[abc][).:\]]\s*(?:(?:the|an?)\s+)?)?"
)
"""What stands between two labels of one alternative or list."""

CONDITION = re.compile(
    r"(?<![^\W_])(?:(?P<if>if|unless|wenn|falls|indien)|whether|ob|"
    r"si (?=c'|l'|la |le |il |elle |fue|es |el |fuera|era|son)|"
    r"se (?=sia|è|foi|é |o |a |il |lo |la |fosse|era|fue|stato|si )|of (?=het|de |dit|die ))(?![^\W_])?"
)
CHOOSING = re.compile(r"\b(?:choose|pick|say|forced|decide|had to|have to|must)\b")
GUESSED = re.compile(
    r"^\s*(?:or|oder|ou|of)(?![^\W_])|(?<![^\W_])(?:maybe|perhaps|might|may|could|can|possibly|potentially|conceivably|assume[sd]?|"
    r"guess|suspect|tempt\w*|stereotyp\w*|at first(?: sight| glance)?|initially|on the surface|"
    r"(?:some|many|others|one|people) (?:would|say|think|find)|some|would(?:'ve| have) (?:been|said)|'d have (?:been|said)|"
    r"(?:was|were) (?:going|about|ready) to|vielleicht|könnte|kann|möglicherweise|"
    r"eventuell|peut-être|pourrait|peut|quizás?|podría|puede|tal vez|forse|potrebbe|può|talvez|"
    r"poderia|pode|misschien|kan|zou kunnen|zunächst|zuerst|anfangs|d'abord|al principio|"
    r"all'inizio|no início|semble)(?![^\W_])|可能|也许|或许|もしかし|어쩌면|아마"
)
GUESSED_BEHIND = re.compile(
    r".{0,14}(?:かもしれ|可能性|수도 있|수도있|일 수 있|일지도|有可能|都有可能)|"
    r"\W{0,3}(?:(?:is|are|seems?) (?:also |both |equally )?possible|(?:could|might|may) (?:be|have)|"
    r"(?:if not|but) for|if it (?:were|was) not|were it not|had it not)(?![^\W_])"
)

REMAINS = re.compile(
    r"[\s*_\"'”’)]*(?:remains|is left|are left|is the only (?:one|option|choice|answer) (?:left|remaining))(?![^\W_])"
)
"""Words behind the one option that elimination leaves."""
TAKEN_BACK = re.compile(
    r"[\s*_\"'”’)]*(?:-+|\u2014|,)\s*(?:(?:oh|hmm?|but|no|actually|well|wait|hold on|scratch that|correction)[\s,.!-]+)*"
    r"(?:wait|hold on|scratch that|correction)(?![^\W_])"
)
"""Words by which an answer takes back what it has just said."""
_EVIDENCE = (
    r"(?:aspects?|points?|signals?|elements?|indicators?|cues?|evidence|factors?|features?|words?|phrases?|comments?|parts?|sides?|"
    r"remarks?|statements?|things?|adjectives?|"
    r"aspekte|punkte|aspectos|puntos|pontos|aspetti|punti|aspecten|punten|éléments|points)"
)
HEADS = re.compile(rf"[\s*_\"'”’)]*(?P<noun>{_EVIDENCE}\s*)?[*_]*\s*:[*_\s]*(?=[^\s])")
"""What follows a label that heads a list of evidence."""
HEADING = re.compile(rf"(?:^|\n)[\s*_>#•-]*(?:(?:{_ARTICLES})(?![^\W_])\s*)?[*_\"']*$")
"""What stands before it in its line."""
EVIDENCE = re.compile(rf"\s*{_EVIDENCE}(?![^\W_])")
ATTRIBUTE = re.compile(
    r"\s+(?!(?:reviews?|texts?|comments?|sentences?|statements?|messages?|posts?|tweets?|passages?|feedback|"
    r"one|response|reaction|assessment|evaluation|impression|mood|note|vibe|label|rating|score|answer|"
    r"because|since|as|with|without|in|for|about|of|due|given|overall|here|on|towards?|from|by|at|so|i|"
    r"it|the|this|that|they|we|he|she|you|please|although|though|even|while|when|if|despite)(?![^\W_]))"
    r"[^\W_]{3,}"
)
"""A noun that "a negative …" describes and that is not what is judged: "a negative start"."""
_KIND = r"(?:sentiments?|emotions?|tone|language|feelings?|content|attitude|opinions?|label|rating)"
KIND = re.compile(rf"\s*{_KIND}(?![^\W_])")
"""Nouns that a label describes: what stands behind them decides what becomes of it."""
_VERY = r"(?:(?:clearly|definitely|certainly|obviously|probably|also|simply|just|quite|really)\s+)?"
_FITTING = (
    r"right|correct|one|answer|case|word|term|label|choice|option|best|appropriate|accurate|"
    r"fitting|it(?![^\W_])|supported|possible|suitable|true|valid|applicable|what"
)
STATED = re.compile(
    rf"[\s*_\"'”’)\]]*(?:{_KIND}[\s*_\"'”’)]*)?"
    r"(?:[.!…。\s\"'*_]*$|[,;(—–]|-\s|(?:because|since|as|due|given|overall|here)(?![^\W_]))"
)
"""What stands behind a label, up to its sentence's end, where the sentence says nothing else."""
AFTER_DENIED = re.compile(
    r"[ *_:|-]*(?:\[ ?\]|[☐⬜❌✗✘])[ *_|]*(?=\n|$)|"
    rf"[\s*_\"'”’)]*(?:(?P<direct>(?::|=|->|→|-(?=\s)|,\s*(?=false|no\s*[.;]))[\s\"'*_]*"
    r"(?:no|none|nothing|nil|n/a|false|wrong|incorrect|nein|keine?|non|aucune?|ninguno|nessuno|não|nee|geen|[✗✘❌]|0(?:\.0+)?%?)(?![\w%]|[.,]\d))|"
    rf"(?:(?:{_KIND}|{_EVIDENCE}) )?(?:is|was|are|were|seems) {_VERY}(?:absent|missing|lacking|not (?:present|found|there|evident|expressed|apparent))(?![^\W_])|"
    r"(?:war|ist|was|is) (?:es|das|er|sie|het|hij|zij) (?:nicht|niet|kaum|nauwelijks)(?![^\W_])|"
    r"(?:did not|didn't) (?:do|say|cause)(?![^\W_])|kann keine rede sein|"
    rf"(?:(?:is|was|are|would be|seems|'s)\s+{_VERY}not|(?:is|was|are|would)n't)\s+"
    rf"(?:the\s+|an?\s+|really\s+|exactly\s+)?(?:right\s+|correct\s+|best\s+)?(?:{_FITTING})|"
    rf"(?:{_KIND} )?(?:is|was|are|would be|seems)\s+{_VERY}(?:wrong|incorrect|false|inaccurate|excluded|out(?![^\W_])|"
    r"ruled out|eliminated|unlikely|inappropriate|impossible|unfair|biased|prejudiced|speculative|guesswork|"
    r"unsupported|unjustified|unfounded|misleading|mistaken|"
    r"(?:an? )?(?:(?:mere|pure|unfounded) )?(?:mistake|stretch|assumption|guess|stereotype|speculation|prejudice)|"
    r"too (?:strong|harsh|generous))|(?:has|have) (?:misread|misunderstood|missed)(?![^\W_])|"
    r"(?:can|could|must|may)(?: also| therefore| thus)? be (?:ruled out|excluded|eliminated|discarded)|"
    r"(?:cannot|can't|can not|could not|couldn't) be (?:right|correct|it(?![^\W_])|the (?:one|answer)|"
    r"(?:confirmed|determined|known|identified|inferred|established))|"
    r"(?:does not|doesn't|do not|don't|cannot|can't) (?:fit|apply|work|match|describe)|"
    r"(?:ist|est|es|è|é|is) (?:falsch|faux|incorrecto|incorrecta|sbagliato|errado|onjuist|fout)|"
    r"(?:은|는|이|가) (?:틀렸|틀린|정답이 아)|(?:是|就)?(?:错|不对|不正确)|は(?:違|間違|誤)|(?:は|も)[^。\n]{0,40}(?:に反し|不適切|不正解|矛盾し))"
)
"""What denies a label from behind. Its `direct` group says that the label itself is false."""
AFTER_AFFIRMED = re.compile(
    r"[\s*_\"'”’)]*(?::|=|->|→|-(?=\s))[\s\"'*_]*(?:yes|true|ja|oui|sí|sì|sim|x|✓|✔|1(?:\.0+)?)(?![\w.])"
    r"|[ *_:|-]*(?:\[[xv✓✔]\]|[☑✅])[ *_|]*(?=\n|$)"
)
AFTER_NO = re.compile(
    r"[\s\"'*_>-]*(?:(?P<no>no|nope|nein|non|não|nee|not at all|"
    r"not (?:really|quite|exactly|particularly)|(?:definitely|absolutely|certainly) not|hardly)|"
    r"yes|yeah|ja|oui|sí|sì|sim|definitely|absolutely|certainly|indeed)"
    r"(?=[\s\"'*_]*(?:[.,;!\n]|$))"
)
"""An answer to a question that the sentence before it asks."""
NOT_BOTH = re.compile(r"(?:도|も|也).*(?:아니|아닙|ない|ません|不是)")

NO_IDIOM = re.compile(
    r"\s+(?:doubt|question|idea|comment|matter|one|problem|worries|wonder|surprise|thanks|longer|"
    r"less|more|need|denying|(?:clear|simple|right|definitive|easy|single|straightforward|good|"
    r"correct|wrong|obvious) (?:answer|way))\b"
)
ARTICLE_NO = re.compile(
    r"\b(?:is|are|was|were|be|been|'s|has|have|had|having|with|of|by|in|on|at|for|to|make|makes|"
    r"made|see|sees|find|finds|and|or|offer|offers|give|gives|say|says|shows?|contains?|there|"
    r"provides?|means?|play|plays) $"
)
"""Text before `no` where it is a quantity: "there is no evidence"."""
REPORTED_NO = re.compile(
    r"\b(?:answer|response|reply|verdict|would be|would say|i say|i'd say|it)(?: is|'s|:)? $|"
    r"\b(?:answer|response|reply|verdict)\b[^.]{0,30} $"
)

_ANSWER = (
    r"answer|ans|antwort|lösung|réponse|respuesta|risposta|resposta|antwoord|정답|답변|답|答案|答え|"
    r"回答|正解"
)
_LINK = (
    r"(?:is|was|would be|should be|must be|has to be|will be|would have to be|seems to be|remains|"
    r"lautet|ist|wäre|est|serait|es|sería|è|sarebbe|é|seria|zou zijn|becomes|lies)(?![^\W_])|"
    r"은|는|이|が|は|是|为|為|:|=|->?|→|\n|\)"
)
EXPLICIT = re.compile(
    rf"(?:(?:(?<![^\W_])|(?<=[正标標最终終]))(?:{_ANSWER})(?: (?:finale?|definitiva|correcta|corretta|correta|correcte))?[\s\"'*_)\]]*(?:{_LINK})|"
    r"(?:^|(?<=[\n.!?]))[\s\"'>#*_-]*(?:(?:final|correct|best|my|the|overall|short) )*"
    rf"(?:{_ANSWER})(?=[\s\"'*_:]*$)|"
    r"(?:^|(?<=[\n.;,!?]))[\s\"'>#*_{-]*(?:the |my |overall |final |predicted )*"
    r"(?:sentiment|label|classification|category|class|prediction|result|output|response|verdict|"
    r"conclusion|decision|choice|score|rating|stimmung|ergebnis|fazit|sentimiento|sentimento|"
    r"conclusión|conclusione|conclusão|conclusie|toxicity|감정|결론|结论|結論)[\s\"'*_]*[:=]|"
    r"\bfinal (?:label|verdict|decision|classification|choice|sentiment|score|rating)\b|"
    r"\b(?:correct|best|right|most \w+|overall|final|actual|true|real|underlying) (?:label|option|choice|sentiment|tone|impression|assessment|judge?ment|evaluation|"
    r"classification|category|rating|score)[\s\"'*_]*(?:is|was|would be|should be|must be|:|=)|"
    r"(?:\bi|\bi'd|\bi'll|\bwe|\bto) (?:would |will |must |have to |had to |finally )?"
    r"(?:choose|pick|select|go with|opt for|settle on|settle for)\b|(?:选择|选(?!项)|選(?!択肢|項)))"
    r"(?P<rest>[^.!?\n]*)$"
)
"""What makes the label behind it the explicit answer, up to that label."""
CONCLUSION = re.compile(
    r"(?:(?<![^\W_])(?:therefore|thus|hence|consequently|accordingly|in conclusion|to conclude|"
    r"in the end|overall|all in all|in summary|in sum|to sum up|ultimately|on balance|"
    r"on reflection|all things considered|i conclude|we conclude|conclude that|(?:which|that|this) (?:only |just )?(?:leaves|makes)|by elimination|"
    r"taking (?:all|everything|both|it all|this|these)\b[^.!?,\n]{0,30}(?:together|into account)|taken (?:all )?together|"
    r"(?:putting|weighing|considering) (?:\w+ ){1,4}(?:together|up|both)|weighing (?:both|everything|all)\b|"
    r"(?<=[,;.] )so|so(?=,| the | it| i | i'd| this | my | we | that | here |[\s*_\"'(]*[abc](?![^\W_]))|insgesamt|alles in allem|daher|deshalb|somit|"
    r"folglich|also(?= war| ist| muss| bleibt)|letztlich|schließlich|donc|ainsi|en conclusion|"
    r"globalement|au final|finalement|por lo tanto|por tanto|así que|en conclusión|en general|"
    r"en definitiva|quindi|pertanto|in conclusione|nel complesso|dunque|portanto|em conclusão|"
    r"no geral|dus|daarom|concluderend|al met al|kortom)(?![^\W_])|따라서|그러므로|그래서|결국|"
    r"したがって|従って|よって|ゆえに|つまり|因此|所以|综上|總之|总之)"
    r"[^.!?\n]*$"
)
CONTRAST = re.compile(
    r"(?<![^\W_])(?:but|however|yet|still|nevertheless|nonetheless|aber|jedoch|mais|pero|sino|ma|"
    r"però|mas|porém|maar)(?![^\W_])|但|でも|しかし|하지만|그러나|지만"
)
REASON = re.compile(
    r"(?:으니|니까|므로|때문에|따라서|그래서)(?:[\s,]|$)|(?:ため|ので|から)[、,]|したがって|よって|所以|因此|因而|故而"
)
"""What turns words in front of it into the reason for what follows."""
_IN_SPITE_OF = (
    r"despite|in spite of|notwithstanding|regardless of|apart from|aside from|trotz|malgré|"
    r"a pesar de|nonostante|apesar de|ondanks"
)
CONCESSION = re.compile(
    rf"(?<![^\W_])(?:although|though|even though|even if|while|whereas|{_IN_SPITE_OF}|obwohl|obgleich|"
    r"auch wenn|bien que|même si|aunque|sebbene|anche se|embora|hoewel|ook al)(?![^\W_])"
)
IN_SPITE_OF = re.compile(
    rf"[\s\"'*_]*(?:(?:and|but|so|yet|however) )?(?:{_IN_SPITE_OF}|unlike|compared (?:with|to)|"
    r"in contrast (?:to|with)|as opposed to|contrary to|in comparison (?:to|with)|even with|"
    r"for all (?:its|the|their|his|her)|excluding|barring|save for|except(?:ing|ed)?(?: for)?|"
    r"with the exception of|(?:ignor|discount)ing|(?:sett|leav|putt)ing aside|besides|abgesehen von|"
    r"bis auf|abstraction faite de|hormis|salvo|excepto|tranne|exceto|behalve|anders als|im gegensatz zu|contrairement à|"
    r"a diferencia de|a differenza di|ao contrário de|in tegenstelling tot)(?![^\W_])"
)
"""What concedes the label that follows, or compares with it: "despite some negative remarks"."""
UNREAL = re.compile(r"[\s\"'*_]*(?:had|were) (?:the|it|this|that|they|there|he|she|not)(?![^\W_])")
"""How a sentence begins that says what would have been."""

_TELL = (
    r"say|tell|know|state|specify|mention|indicate|provide|reveal|clarify|give|show|determine|"
    r"identify|infer|conclude|decide|answer|explain|make (?:it )?clear|support|contain|offer|"
    r"establish|ascertain|judge|deduce|confirm|name|distinguish|guess|assume|disclose|pinpoint"
)
_STRONG = (
    rf"(?:can ?not|can't|could ?n[o']t|couldn't|impossible to|no (?:way|means|basis|evidence) (?:to|of|for)|"
    rf"unable to|hard to|difficult to|not possible to|not able to|insufficient (?:\w+ )?to|isn't possible to) "
    rf"(?:really |definitively |conclusively |reliably |possibly |be |to |simply )*"
    rf"(?:{_TELL}|determin\w+|known|said|told|stated|answered|concluded|inferred|identified|decided|"
    rf"established|deduced|sure|certain|{_TELL}ing)(?![^\W_])|"
    r"(?:not|\w{1,8}n't|never|nowhere) (?:\w+ )?(?:clear|known|stated|specified|mentioned|given|"
    r"determinable|answerable|indicated|provided|identified|certain|revealed|explicit|disclosed|"
    r"(?:enough|sufficient) (?:\w+ )?(?:info|information|context|evidence|details?|data|to))(?![^\W_])|"
    r"(?:un(?:clear|known|determined|determinable|certain|specified|answerable|decidable|stated|identified)|"
    r"indetermina\w+|ambiguous|insufficient (?:info|information|context|evidence|detail|data)|"
    r"inconclusive|impossible to (?:say|tell|know))(?![^\W_])|is insufficient|"
    r"lacks? (?:the )?(?:\w+ )?(?:info|information|detail|context|evidence)|"
    r"(?:no|little|without) (?:further |more |clear |explicit |such |direct |specific |additional |any |relevant )*"
    r"(?:info|information|indication|evidence|mention|details?|clue|hint|answer is given|telling|way of knowing)(?![^\W_])|"
    r"(?:gives?|offers?|provides?|has|is|there's|there is) no (?:\w+ )?(?:answer|clue|hint|indication|information|details?)|"
    r"(?:leaves?|left|remains?|stays?|is) (?:it |this |that |the question )?(?:open|undecided)|"
    r"could be (?:either|any|both)|either (?:one )?(?:could|is possible)|both (?:are|were|seem) (?:equally )?possible|"
    r"nobody (?:can |could )?(?:know|tell|say)s?|no one (?:can |could )?(?:know|tell|say)s?|"
    r"neither (?:\w+ ){1,8}(?:can|could|is|are|was) (?:be )?(?:identified|determined|named|known|"
    r"stated|confirmed|established|singled)(?![^\W_])|"
    r"nothing (?:\w+ ){0,5}(?:tells?|says?|indicates?|suggests?|shows?|reveals?|specifies)(?![^\W_])|"
    r"(?:not|\w{1,8}n't|never) (?:told|informed|mentioned|given that)(?![^\W_])|"
    r"who knows|up in the air|anyone's guess|"
    r"(?:no|any|without) (?:\w+ )?(?:proof|basis|reason to (?:believe|think|assume|conclude))(?![^\W_])|"
    r"nothing (?:\w+ ){0,5}(?:establish(?:es)?|(?:point|settle|prove|confirm|decide|support|identifie|determine|hint)s?)(?![^\W_])|"
    r"which (?:one )?of (?:the (?:two|three)|them|these|those)\b[^.!?;\n]{0,60}\b(?:never|nobody|no one|not|open|n't)(?![^\W_])|"
    r"(?:not|\w{1,8}n't|never|nobody|no one) (?:\w+ ){0,4}which (?:one )?of (?:the (?:two|three)|them|these|those)(?![^\W_])"
)
_WEAK = (
    rf"(?<!who )(?<!which )(?<!that )(?:do(?:es)?|did|would|will) ?(?:not|n't|n'?t) "
    rf"(?:really |explicitly |actually |clearly |directly |specifically |even |ever |definitively )*(?:{_TELL})(?![^\W_])|"
    rf"(?<!who )(?<!which )(?<!that )(?:never|nowhere|fails? to|neglects? to|omits? to) "
    rf"(?:really |explicitly |actually |clearly |directly |specifically |even |ever )*(?:(?:{_TELL})s?|specifies|clarifies|identifies|makes (?:it )?clear)(?![^\W_])|"
    rf"(?<!who )(?:doesn't|don't|didn't|won't|wouldn't) (?:really |explicitly |actually |clearly |directly |specifically |even |ever )*(?:{_TELL})(?![^\W_])"
)
_OTHERS = (
    r"(?:fehlen|fehlt es an) (?:\w+ ){0,3}(?:angaben|informationen|hinweise|belege)|"
    r"kein\w* (?:\w+ )?(?:anhaltspunkt|beleg|beweis|hinweis|grundlage|indiz)\w*|welche[rs]? (?:von|der) (?:beiden|ihnen|den beiden)[^.!?;\n]{0,40}(?:offen|nicht|unklar)|"
    r"(?:nichts|nirgends|nirgendwo) (?:\w+ ){0,4}(?:darauf hin|hervor|steht|sagt|belegt|erwähnt)|"
    r"(?:on|nous) ignor\w+|rien (?:\w+ ){0,3}(?:ne |n')(?:\w+ )?(?:permet|indiqu|dit|précis|prouv|montr|laiss)\w*|(?:aucun|pas d')(?:e? )?(?:preuve|indice|élément|information|indication)s?|"
    r"(?:ne |n')(?:\w+ ){1,2}pas (?:laquelle|lequel|qui)(?![^\W_])|"
    r"falta(?:n)? (?:\w+ )?(?:información|datos|pruebas|contexto|detalles)|no (?:hay|existen?) (?:\w+ )?(?:pruebas?|indicios?|evidencias?|base|pistas?)|no se (?:\w+ )?cuál|nada (?:\w+ ){0,4}(?:indica|dice|sugiere|prueba|aclara)(?![^\W_])|"
    r"manca(?:no)? (?:\w+ )?(?:informazion|dat|prov|element|dettagl)\w*|non (?:si (?:capisce|evince|deduce|comprende|riesce)|emerge|risulta|ci sono (?:\w+ )?(?:prove|indizi|elementi|informazioni)|c'è (?:\w+ )?(?:prova|indizio|modo|base))|non è dato|nulla (?:\w+ ){0,4}(?:indica|dice|suggerisce)(?![^\W_])|"
    r"falta(?:m)? (?:\w+ )?(?:informaç\w+|dados|provas|contexto)|não (?:há|existem?|temos) (?:\w+ )?(?:provas?|indícios?|evidências?|informaç\w+|dados|pistas?|base|elementos)|não (?:fica|ficou) claro|não se (?:\w+ )?qual|nada (?:\w+ ){0,4}(?:indica|diz|sugere|prova)(?![^\W_])|"
    r"(?:er is|er zijn|is er|heeft|zonder) (?:\w+ )?(?:geen|zonder) (?:\w+ )?(?:bewij\w+|aanwijzing\w*|informatie|grond)|staat (?:er )?niet(?: bij| in)?|niets (?:\w+ ){0,4}(?:wijst|zegt|duidt|toont)(?![^\W_])|"
    r"(?:ist|sind|wird|bleibt|war) (?:\w+ )?(?:nicht (?:klar|bekannt|möglich|ersichtlich|angegeben|"
    r"erwähnt|eindeutig|bestimmbar|genannt|sicher)|unklar|unbekannt|offen|ungewiss)|"
    r"lässt sich (?:\w+ ){0,3}nicht (?:\w+ )?(?:sagen|bestimmen|feststellen|beantworten|erkennen|ermitteln)|"
    r"(?:nicht|kaum) (?:zu )?(?:sagen|bestimmen|wissen|feststellen|beantworten|entscheiden|erkennen)|"
    r"(?:weiß|wissen|weiss) (?:\w+ )?nicht|geht (?:\w+ ){0,4}nicht hervor|nicht (?:gesagt|erwähnt|angegeben|genannt|hervor)(?![^\W_])|(?:sagt|nennt|verrät|erwähnt|gibt|steht)(?: \w+)? (?:nicht|nichts|keine)|"
    r"nicht genug|nicht genügend|nicht ausreichend|keine (?:information|angabe|hinweis)\w*|unklar|unbekannt|unbestimmt|"
    r"on (?:ne |n')(?:sait|peut|connaît)(?: \w+)? ?pas|(?:ne|n')(?: ?l[ea]?'? ?| )?(?:précise|dit|indique|mentionne|permet|spécifie)(?: \w+)? pas|"
    r"n'est pas (?:\w+ )?(?:clair|précisé|possible|connu|indiqué|mentionné|spécifié)|impossible (?:à|de) (?:\w+ ){0,2}(?:dire|savoir|déterminer|répondre|trancher|décider|choisir|identifier|établir|conclure|préciser|affirmer)|"
    r"pas assez d|pas suffisamment|manque d'information|inconnu|indéterminé|incertain|"
    r"no (?:se|lo|la|nos|me) ?(?:lo |la )?(?:sabe|puede|indica|especifica|dice|menciona|aclara|sé|podemos|permite)\w*|no sabemos|no podemos|no (?:indica|dice|especifica|menciona|aclara|permite|revela|explica|da)(?![^\W_])|"
    r"no está claro|no es posible|no queda claro|no hay (?:suficiente|bastante|información|datos)|no lo (?:dice|especifica|aclara|indica)|"
    r"(?:imposible|difícil) (?:de )?(?:saber|decir|determinar|decidir|averiguar|precisar|distinguir|establecer|concluir|identificar|afirmar|elegir)|desconocid[oa]|indeterminad[oa]|información insuficiente|"
    r"non (?:si|lo|ci|è) ?(?:lo )?(?:sa|può|possibile|chiaro|dice|specifica|indica|noto|specificato|indicato|menzionato|sappiamo|è dato)\w*|non sappiamo|non (?:dice|specifica|indica|menziona|chiarisce|permette|rivela|precisa)(?![^\W_])|"
    r"non ci sono (?:abbastanza|sufficienti)|informazioni insufficienti|impossibile (?:da )?(?:dire|saper|determinar|stabilir|decid|capir|scegl|individuar|identificar|conclud|precisar)\w*|sconosciut[oa]|"
    r"não (?:se|é|está|há|o|dá) ?(?:o )?(?:sabe|possível|claro|diz|especifica|informaç|indica|menciona|suficiente|pode|para saber)\w*|não (?:diz|especifica|indica|menciona|informa|permite|esclarece|revela)(?![^\W_])|não sabemos|não podemos|"
    r"impossível (?:de )?(?:dizer|saber|determinar|decidir|identificar|concluir|afirmar|estabelecer|precisar)|desconhecid[oa]|informações insuficientes|"
    r"(?:is|blijft|wordt) (?:\w+ )?(?:niet (?:duidelijk|bekend|te (?:zeggen|bepalen|weten)|vermeld|mogelijk|zeker)|onduidelijk|onbekend)|"
    r"(?:zegt|vermeldt|noemt|geeft)(?: \w+)? niet|niet genoeg|onvoldoende informatie|(?:weten|weet) (?:\w+ )?niet|valt niet te|onduidelijk|onbekend"
)
_UNKNOWN_UNSPACED = (
    r"(?:근거|증거|단서|정황|언급|힌트|실마리|설명)(?:가|는|은|이|도|를|을)? ?(?:없|부족|찾을 수 없|나오지 않|충분하지)|드러나지 ?않|나타나지 ?않|나오지 ?않|알기(?:는|가)? ?(?:어렵|어려|힘들|힘듭|힘든)|"
    r"(?:根拠|証拠|手がかり|手掛かり|記述|記載|材料|情報|言及|説明)(?:が|は|も|と(?:いう)?)?(?:\w{0,4})(?:ない|なく|ありませ|不足|乏しい|見当たら|見つから)|(?:読み取|見分け|断言|確認|断じ)(?:れ|られ|は?でき|ることは?でき)(?:な|ませ)|示されていな|示されていま(?:せ)|触れられていな|触れられていま(?:せ)|"
    r"(?:没有|沒有|缺乏|缺少|毫无|并无|无|無)(?:任何|足够的?|充分的?|直接|明确的?|相关的?)?(?:证据|證據|依据|根据|线索|線索|信息|提示|迹象)|"
    r"(?<!드릴 )(?<!와줄 )(?<!와 줄 )(?<!해줄 )(?<!해 줄 )(?<!도울 )(?<!응할 )(?<!따를 )(?<!들어줄 )(?<=[가-힣] )수(?:가|는|도)? ?없|"
    r"(?<!드릴)(?<!와줄)(?<!해줄)(?<!도울)(?<!응할)(?<=[가-힣])수(?:가|는|도)? ?없|알 ?수 ?없|기(?:가|는|도|에는)? ?(?:어렵|어려|힘들|힘듭|힘든|곤란|불가능)|말하(?:고 있)?지 ?않|밝히지 ?않|알려(?:주|져)지? ?(?:않|있지)|모르|모름|모른|판단(?:할 수(?:가|는)? ?없|하기 어렵|이 불가능)|불분명|불명확|확실하지|확실히 알|"
    r"정보(?:가|는|만으로는)? ?(?:부족|없|충분하지|모자라|모자랍|모자르)|언급(?:이|되지|되어|하지|은|된 바)? ?(?:없|있지 않|않)|나와 ?있지 않|명확하(?:지|게) ?(?:않|나|언급|드러)|불확실|"
    r"특정할 수 없|단정할 수 없|결정할 수 없|확인할 수 없|말할 수 없|제시되(?:지|어 있지) 않|"
    r"わから|分から|分かり|わかり|判(?:断|定)(?:は|が|することは)?でき|判断(?:が|は)?(?:難し|不可能)|特定(?:は|が|することは)?でき|不明|未定|決め(?:られ|る?ことは?でき)|言え(?:ない|ませ)|"
    r"情報(?:が|は)?(?:不十分|不足|足り|なく|ない|ありませ|少な)|書かれていな|書かれていま(?:せ)|記(?:載|述)(?:が|は|されて)?(?:い?な|いませ|ありませ)|述べられてい(?:な|ませ)|明らかではな|はっきりし(?:な|ませ)|"
    r"答え(?:られ|ることはでき)(?:な|ませ)|断定でき|"
    r"(?:无法|無法|不能|难以|難以|不可能|无从|無從|很难|很難)(?:\w{0,2})(?:判断|确定|確定|得知|知道|知晓|了解|说清|断言|查证|回答|推断|推斷|看出|确认|分辨|判定|断定)|(?:不|未)(?:确定|確定|知道|清楚|明确|明確|详)|"
    r"未知|没有(?:提供|给出|足够|说明|提到|提及|明确|指出|给出|交代|说)|沒有(?:足夠|說明|提到|提及)|没提|未(?:提及|说明|提到|指出|指明|交代)|信息不(?:足|够)|资讯不足|不得而知|看不出|都有可能"
)
UNKNOWN_BEGINS = (
    r"(?=a(?:mb|ny|uc)|b(?:l[ei]|ot)|c(?:an|ou)|d(?:es|i[df]|o)|e(?:it|r)|f(?:ai|al|eh)|g(?:e[eh]|i)|"
    r"h(?:ar|as|ee)|i(?:mp|n[cdfs]|s)|k[ae]|l(?:ac|e[af]|it|äs)|man|n|o(?:ff|mit|n)|p(?:as|ro)|r(?:em|ie)|"
    r"s(?:ag|co|in|t[ae])|there|u(?:n|p )|v(?:al|er)|w(?:ar|e[eilt]|h[io]|i|o)|z(?:eg|on)|"
    r"\w{1,8}n't)"
)
"""A cheap look for the letters with which `_STRONG`, `_WEAK` and `_OTHERS` begin."""
UNKNOWN_SAID = re.compile(
    rf"(?:(?<![^\W_]){UNKNOWN_BEGINS}(?:{_STRONG}|{_WEAK}|{_OTHERS})|(?=[\u1100-\uffff])(?:{_UNKNOWN_UNSPACED}))"
)
"""That the text does not tell, or that nobody can."""
UNKNOWN_BEHIND = re.compile(rf"[\W_](?:{UNKNOWN_BEGINS}(?:{_STRONG}|{_WEAK}|{_OTHERS}))")
"""The same in plain letters, behind a character for which the search looks quickly."""
UNKNOWN_WHOLE = re.compile(UNKNOWN_BEHIND.pattern.replace(r"|\w{1,8}n't", ""))
"""The same in a text without "n't"."""
UNKNOWN_STRONG = re.compile(
    rf"(?:(?<![^\W_]){UNKNOWN_BEGINS}(?:{_STRONG}|{_OTHERS})|(?=[\u1100-\uffff])(?:{_UNKNOWN_UNSPACED}))"
)

_BOUND = r"(?=$|[^\w/+'-]|'(?![^\W_])|-(?![^\W_])|[가-힣ぁ-んァ-ン一-龥])"
_NO_ARTICLE = r"(?!(?<=a)[ ]+(?!because|since|as\b|is\b|and\b|or\b|for\b|but\b|due\b|with\b|입|이|です|だ)[^\W\d_])"
LETTER_CUED = re.compile(
    rf"(?:(?<![^\W_])(?:{_ANSWER}|option|opción|opzione|opção|optie|alternative|choice|letter|response|output|verdict|conclusion|choose|"
    r"chose|pick|picked|select|selected|go with|opt for|settle on|label|leaves|letra|alternativa|lettre|lettera|buchstabe)|選択肢|选项|選項|보기|선택지|(?<=[正标標])答案|정답|답|答案|答え|回答|正解|选择|选(?!项)|選(?!択肢|項))"
    r"(?:(?:[\s:=\->→*_\"'“‘「『()\[\]<]|(?<=\s))*(?:(?:is|was|would be|should be|must be|has to be|will be|"
    r"seems to be|be|option|choice|letter|answer|only|just|us|with|é a|es la|è la|est la|opción|opção|opzione|letra|alternativa|lettre|lettera|(?:a|la|l')(?= ?(?:letra|alternativa|opç|opci|opz|lettre|lettera|option))|lautet|ist|est|es|è|é|la|le|el|il|the|best|"
    r"correcta|correcte|corretta|correta|juste|number|final|finale|donc|also|daher|quindi|portanto|dus|therefore|thus|so|that|richtig|probably|likely)(?![^\W_])|은|는|이|が|は|是|为|為|選択肢|选项|選項|보기|선택지)){0,5}"
    rf"[\s:=\->→*_\"'“‘「『(\[<]*(?<![^\W_가-힣ぁ-んァ-ン一-龥])([abc]){_BOUND}{_NO_ARTICLE}"
)
"""A letter behind a word that announces it."""
ANSWERS = re.compile(
    rf"(?:{_ANSWER}|response|output|verdict|conclusion|choose|chose|pick|select|go with|opt for|"
    r"settle on|选择|选(?!项)|選(?!択肢|項))"
)
"""The words of `LETTER_CUED` that make the letter the answer, and do not only name an option."""
LETTER_JUDGED = re.compile(
    r"(?<![^\W_])([abc])[)\]\"'*_.]*\s+(?:is|was|seems|would be|must be|looks|fits)\s+"
    r"(?:the\s+|my\s+|clearly\s+|also\s+|most\s+|not\s+|therefore\s+)*"
    r"(?:correct|right|best|answer|choice|likely|appropriate|wrong|incorrect|accurate|it\b)"
    r"|(?:(?<=[\n;])|^)[ >*_(\[\"'-]*([abc])(?:[)\]\"'*_.]++\s*(?:[:=→]|-+)?|\s*(?:[:=→]|-+))\s*[*_(]*(?:correct|right|true|yes)(?=[)*_\s]*(?:$|[\n.,;!(]))"
)
LETTER_ALONE = re.compile(
    r"[abc](?<![a-z0-9][abc])(?![a-z0-9])(?!(?<=a) +(?!because|since|as\b|is\b|and\b|or\b|for\b|but\b|"
    r"due\b|with\b|was\b|seems\b|would\b|must\b|looks\b|fits\b|remains\b|ist\b|est\b|es\b)[a-z])"
)
"""What every letter is that stands for an option: an article before a word is none."""
LETTERS_THAT_FIT = ("only", "just", "antwo", "opzione", "resposta")
"""Of what `LETTER_FITS` matches in plain letters."""
LETTER_TICKED = re.compile(
    r"(?:^|(?<=\n))(?:[ |*_]*([abc])[ *_.)]*\|[^\n]{0,200}[✓✔✅☑]|"
    r"[ >*_•+-]*(?:\d+[.)] *)?(?:(?:\[[xv✓✔]\]|[✓✔✅☑])[ *_(]*([abc])(?![^\W_])|"
    r"\(?([abc])[ *_.):-]*[✓✔✅☑] *(?=\n|$)))"
)
"""A letter in the row of a table, or of a list, that is ticked."""
TICKS = ("|", "[x]", "[v]", "✓", "✔", "✅", "☑")
"""Of which what it matches holds one."""
LETTER_WRONG = re.compile(
    r"[)\]\"'*_.]*+\s*(?:[:=→-]+\s*)?[*_(]*(?:is\s+)?(?:wrong|incorrect|false|[✗✘❌×])(?![^\W_])"
)
"""What stands behind a letter that is judged wrong."""
LETTER_FITS = re.compile(
    r"(?<![^\W_가-힣ぁ-んァ-ン一-龥])([abc])(?:\s*(?:项|項|选项|選項)\s*(?:是|为|為|才)?\s*(?:最)?(?:正确|正確|对的|合适)|\s*(?:是|为)(?:正确|正確|对的)|"
    r"\s*(?:번)?(?:이|가)?\s*(?:맞(?!지)|옳(?!지)|정답(?!이 아|은 아)|답입|답이다)|(?:が|は)(?:正しい|正解(?!では)|適切(?!では)|最も))"
    r"|(?<![^\W_])(?:only|just)\s+(?:option\s+|choice\s+|answer\s+)?[\"'*_(]*([abc])[)\"'*_]*\s+(?:remains|is left)(?![^\W_])"
    r"|(?<![^\W_])(?:antwort|réponse|opción|opzione|resposta|antwoord)\s+[\"'*_(]*([abc])[)\"'*_]*\s+(?:ist|est|es|è|é|is)\s+(?:richtig|korrekt|correcta?|juste|bonne|giusta|corretta|correta|certa|juist)"
)
"""A letter with words behind it that say it is right, outside English."""
LETTER_STATED = re.compile(
    r"(?<![^\W_])(?:it's|it is|it must be|it has to be|so|therefore|thus|hence|but|is|be|i'd say|i would say|i say|i believe|i guess|c'est|es ist)"
    r"[\s,:*_\"'(\[]+(?<![^\W_])([abc])(?=[\s*_\"'”)\]]*(?:$|[.,;:!\n)\]]))"
    r"|\n(?:[^\S\n]|[*_\"'>#(\[-])*([abc])[)\].\"'*_\s]*(?=\n|$)"
)
LETTER_FIRST = re.compile(
    r"[\s>#]*(?:[-*•]\s+|\d+[.)]\s+)?"
    r"(?:(?:(?:the|my)\s+)?(?:(?:best|correct|final|right)\s+)?(?:answer|option|choice)"
    r"(?:\s+is)?\s*[:\-=]?\s*)?"
    r"[\(\[\"'*_<“‘]*([abc])(?=[ \"'*_>”’]*(?:$|[\)\]\.:,;\n>]|-(?:\s|$)))"
    r"(?![ \"'*_)\]]*(?:,|/|&|and\b|or\b)\s*(?:and |or |\()?[abc](?![^\W_]))"
)
"""A letter with which an answer begins, and which is not the first one of a list."""

LEAD_WORDS = frozenset(
    """the a an this that these it its it's sentiment sentiments of text texts review comment
    sentence statement message post tweet passage content answer label classification category tone
    overall general final is was be seems appears sounds looks reads feels clearly very quite
    mostly definitely certainly probably generally somewhat i i'd i'll i'm would say think believe
    consider classify classified rate rated call called as to me my in opinion view expressed
    conveyed given following above user user's customer customer's reviewer reviewer's author's
    speaker speaker's person person's response option choice best correct right most appropriate
    likely well ok okay sure hi hello word one predicted prediction output result conclusion most
    entire whole here mood emotion feeling attitude describe described expresses conveys has toward
    towards by from for which can't
    die der das des dem stimmung textes antwort lautet es ist wurde war ich denke glaube richtige
    le la les l'avis sentiment du texte est réponse c'est je pense bonne
    el los sentimiento del texto es respuesta correcta creo que fue
    il lo sentimento testo è risposta corretta credo che stato
    o sentimento do texto é resposta correta foi acho
    het de antwoord juiste van tekst ik denk
    정답 정답은 답 답은 答案 答案是 答え 答えは""".split()  # noqa: SIM905 (reads better so)
) - {"can't"}
"""Words that only announce an answer."""
NEXT_WORDS = frozenset(
    """or and nor oder und ou et o y e of en vs versus to is isn't was wasn't are aren't would
    wouldn't can cannot can't could couldn't does doesn't no not false but maybe perhaps yes true
    ist est es è é no. sondern mais pero sino ma mas maar aber neither either nein non""".split()  # noqa: SIM905
)
"""Words behind a label that may take it back, or make it one of several."""
BEHIND_WORDS = frozenset("was is were did does it are has had one so 입니다 です".split())  # noqa: SIM905
"""Words with which an answer that begins with an option may end."""
AFTER_SCORE = re.compile(
    r"[\s*_\"'”’)]*(?:[:=|]\s*[\"'*_]*(?P<score>\d{1,9}(?:\.\d{1,9})?)(?![\d/])|"
    r"[(\s]\s*(?P<percent>\d{1,3}(?:\.\d{1,9})?)\s*%)"
)
"""A score of a label."""
PROPOSED = re.compile(r"[\s\"'*_]*(?:why not|why don't (?:you|we)|how about)(?![^\W_])")
INVERTED = frozenset(
    """is was are were does do did can could would should will has have ist war est es è é""".split()  # noqa: SIM905
)
"""Words with which a question begins."""
