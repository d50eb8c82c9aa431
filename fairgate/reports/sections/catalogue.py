"""Every section of a report, in the order in which they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from fairgate.domain.catalogue import Catalogue
from fairgate.domain.feature import FEATURES, at
from fairgate.reports.blocks import Chapter, Section
from fairgate.reports.material import Material
from fairgate.reports.sections.case_tables import answers, changed_cases
from fairgate.reports.sections.cases import cases
from fairgate.reports.sections.causes import causes
from fairgate.reports.sections.evidence import evidence, reproduce
from fairgate.reports.sections.relations import relations
from fairgate.reports.sections.retrieval import retrieval
from fairgate.reports.sections.rules import rule_figures, rules
from fairgate.reports.sections.social_bias import social_bias
from fairgate.reports.sections.terms import terms
from fairgate.reports.sections.trend import headline_history, trend


@dataclass(frozen=True, slots=True)
class SectionKind:
    """A question that reports answer; `build` yields nothing where it does not arise."""

    id: str
    build: Callable[[Material], Iterable[Section]]
    chapter: Chapter = Chapter.METHOD
    """Where the page has it."""

    def sections(self, material: Material) -> Iterable[Section]:
        """Yield what is built, in its chapter."""
        return (replace(section, chapter=self.chapter) for section in self.build(material))


SECTIONS = Catalogue(
    "section",
    (
        SectionKind("rules", rules, Chapter.SUMMARY),
        SectionKind("headline-history", headline_history, Chapter.SUMMARY),
        SectionKind("trend", trend),
        SectionKind("terms", terms, Chapter.WHO),
        SectionKind("social-bias", social_bias, Chapter.SOCIAL_BIAS),
        SectionKind("causes", causes, Chapter.RETRIEVAL),
        SectionKind("retrieval", retrieval, Chapter.RETRIEVAL),
        SectionKind("cases", cases, Chapter.CASES),
        SectionKind("changed-cases", changed_cases, Chapter.CASES),
        SectionKind("answers", answers, Chapter.CASES),
        SectionKind("relations", relations, Chapter.RELATIONS),
        SectionKind("evidence", evidence),
        SectionKind("rule-figures", rule_figures),
        SectionKind("reproduce", reproduce),
    ),
)


def section_kinds() -> list[SectionKind]:
    """Return the sections of the core, then those of features."""
    return [*SECTIONS, *(at(one) for feature in FEATURES for one in feature.sections.values())]
