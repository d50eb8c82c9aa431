"""What reports say, one question a file: each section is built once, as blocks.

Here is what sections are called, in their order, and what each is worth where there is little room.
"""

from __future__ import annotations

from fairgate.reports.blocks import Chapter, Section

WHO = Section(id="who", title="Who", chapter=Chapter.WHO, worth=90)
RULES = Section(id="rules", title="Rules", chapter=Chapter.SUMMARY, worth=90)
BIAS = Section(id="bias", title="Social bias", chapter=Chapter.SOCIAL_BIAS, worth=70)
CAUSES = Section(id="causes", title="Causes", chapter=Chapter.RETRIEVAL, worth=60)
RETRIEVAL = Section(
    id="retrieval", title="Retrieval", chapter=Chapter.RETRIEVAL, worth=50, in_comment=False
)
CASES = Section(
    id="cases", title="The clearest changed answers", chapter=Chapter.CASES, worth=60, in_page=False
)
CASES_OF_PAGE = Section(
    id="all-cases", title="The clearest changed answers", chapter=Chapter.CASES, in_comment=False
)
ANSWERS = Section(
    id="all-answers", title="Wrong and undecided answers to questions", chapter=Chapter.CASES,
    in_comment=False,
)  # fmt: skip
RELATIONS = Section(
    id="relations", title="Relations", chapter=Chapter.RELATIONS, worth=15, in_comment=False
)
EVIDENCE = Section(
    id="evidence", title="Evidence and provenance", chapter=Chapter.METHOD, worth=20,
    in_comment=False,
)  # fmt: skip
