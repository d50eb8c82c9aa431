"""Every section of a report, in the order in which they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fairgate.domain.catalogue import Catalogue
from fairgate.reports.material import Material
from fairgate.reports.section import Section
from fairgate.reports.sections.case_tables import answers, changed_cases
from fairgate.reports.sections.cases import cases
from fairgate.reports.sections.causes import causes
from fairgate.reports.sections.evidence import evidence, reproduce
from fairgate.reports.sections.retrieval import retrieval
from fairgate.reports.sections.rules import rule_figures, rules
from fairgate.reports.sections.social_bias import social_bias
from fairgate.reports.sections.terms import terms
from fairgate.reports.sections.trend import trend


@dataclass(frozen=True, slots=True)
class SectionKind:
    """A question that reports answer; `build` yields nothing where it does not arise."""

    id: str
    build: Callable[[Material], Iterable[Section]]


SECTIONS = Catalogue(
    "section",
    (
        SectionKind("rules", rules),
        SectionKind("trend", trend),
        SectionKind("terms", terms),
        SectionKind("social-bias", social_bias),
        SectionKind("causes", causes),
        SectionKind("retrieval", retrieval),
        SectionKind("cases", cases),
        SectionKind("changed-cases", changed_cases),
        SectionKind("answers", answers),
        SectionKind("evidence", evidence),
        SectionKind("rule-figures", rule_figures),
        SectionKind("reproduce", reproduce),
    ),
)
