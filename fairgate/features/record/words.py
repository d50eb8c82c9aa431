"""The words of a record that are the same in every one: what they mean, what nobody measured."""

from __future__ import annotations

from collections.abc import Mapping

from fairgate.domain.parity import Against
from fairgate.metrics.degrees import LOG_ODDS
from fairgate.metrics.direction import COLUMN as DIRECTION
from fairgate.metrics.exposure import NET as EXPOSURE
from fairgate.metrics.parity import CONTROLLED, OVERLAP, SCORES, UNREADABLE

QUESTIONS = {
    Against.CONTROL: "is anybody treated differently, beside control prompts?",
    Against.BASELINE: "has anybody's difference become worse since the baseline?",
    Against.ANCHOR: "has anybody's difference become worse since the anchor?",
    Against.REFERENCE: "does naming somebody move more than with the reference system?",
}
TESTS = {
    Against.CONTROL: "scan, two-sided",
    Against.BASELINE: "scan, one-sided: only what is worse counts",
    Against.ANCHOR: "scan, one-sided: only what is worse counts",
    Against.REFERENCE: "scan, two-sided",
}
NO_TEST = (
    "no test: the estimate is compared with the limit, or its whole range where the policy asks "
    "for significant evidence"
)
TERMS: Mapping[str, str] = {
    "source": "a text that is asked about; it names nobody",
    "case": "a source asked with one identity or one control prompt, or a question item",
    "question item": "a question with options to choose from, asked as it is written",
    "identity": "somebody who is named in words, such as “an elderly person”, in one phrase or in "
    "several that take turns over the sources; a category holds several identities",
    "control prompt": "the same source with a phrase that names nobody, such as “a tall person”",
    "usual answer": "the answer that most control prompts of a source get",
    "point": "a hundredth of a share or of a probability; a share is from 0 to 100 points, a "
    "difference of shares from -100 to 100",
    "difference": "the identities' mean minus the mean of what it is compared with, over the "
    "sources that have both, so that it can differ a little from the difference of the two means "
    "that are printed; positive is worse for the identities: for scores, that they are lower, or "
    "higher where lower is better",
    "scan": "one test over everybody, each category and each identity at once: the largest "
    "difference, in units of its error, beside how large it would be if nobody were treated "
    "differently, by the control prompts' own spread and by exchanging prompts within sources; it "
    "names who differs, each beyond what those named before explain",
    "p": "the chance of a difference as clear as the clearest one if nobody were treated "
    "differently; corrected over all outcomes of the run that are asked alike (Holm), not over "
    "several policies or runs",
    "range": "of a scan: ends that hold at once for all of its differences; of a selection rate or "
    "an impact ratio: for that figure alone; at the level that is printed beside it, which of a "
    "one-sided scan is the lower end's",
    "reach": "the least difference that this scan names in eight of ten runs, by the noise of this "
    "run; a smaller one is missed more often; 0.0 means that hardly anything differed within "
    "sources",
    "baseline": "an earlier run that a person accepted, to compare with; an anchor is one that "
    "stays",
    "limit": "`max`: of a difference now, or of a value; `regression`: of how much worse it became "
    "since the baseline; `budget`: since the anchor; FairGate has standards for where a policy "
    "gives none",
    "store": "answers that earlier runs asked for and kept, used again where nothing has changed",
    "unstable": "of an answer: another one in a repeat, or its two most probable labels lie nearer "
    "than `unstable_margin` of the policy (their margin)",
    "waiver": "a failure that the policy accepts until a day; it stays a failure and stops nothing",
}
COUNTED: Mapping[str, tuple[str, str]] = {
    CONTROLLED: ("answers", "the answer is not the usual one of its source"),
    DIRECTION: (
        "answers",
        "worse than the usual answer counts 1, better -1, by the order of the task's labels",
    ),
    LOG_ODDS: ("probability", "probability that moves from the better labels to the worse ones"),
    SCORES[0]: ("score", "the score that the answer gives; lower is worse"),
    SCORES[1]: ("score", "the score that the answer gives; higher is worse"),
    UNREADABLE: ("answers", "no label or score can be read in the answer; a refusal counts"),
    OVERLAP: (
        "documents",
        "documents that the lists of this prompt and of its source text do not have in common",
    ),
    EXPOSURE: (
        "chance",
        "loss of the chance 1 / log2(1 + rank) to be seen, of the document that names somebody",
    ),
}
"""Column to what its points are hundredths of, and to what is counted."""
UNSEEN = """\
Whether answers are right was not tested, but where section 4 has a rule of accuracy. Answers are \
compared with answers: a harm that everybody meets alike, control prompts too, is not seen.
Identities are named in words. Names, dialect, places and topics that only hint at them are tested \
where the list of identities has them, and nowhere else.
Identities that stand in no list above were not tested, nor combinations of several (an elderly \
gay man) that do not stand there, nor sources that nobody wrote.
A difference that is smaller than the reach of its row is missed more often than twice in ten.
Whether the sources are like what the system is asked in use was not tested, nor what people do \
with its answers.
Files outside of version control are not seen: whether the working copy was otherwise the commit \
that is named is not known.
Selection rates and impact ratios of real decisions are not part of this record.
""".splitlines()
VERIFIED = """\
run.json and executions.jsonl have the checksums that parts.json beside them names. Whoever edits \
a file can edit that one too: this shows damage, and proves no origin. Compare the checksums with \
those that the job of the run printed or kept.
That the commits ran, the answers, figures and outcomes are the runs' own word: nothing was asked \
or computed again.
""".splitlines()
