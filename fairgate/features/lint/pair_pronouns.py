"""Which pronoun and which verb a follow-up must have where its source has one."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.domain.attributes import Manner
from fairgate.features.lint.mentions import Mention, Token
from fairgate.relations.english import CASES, PRONOUNS, plural_clause


class WordAgreement:
    """Judges the ordinary words of a follow-up, one beside its source's."""

    def __init__(
        self, before: Sequence[Mention], after: Sequence[Mention], *, singular: bool
    ) -> None:
        """Take the mentions of both texts; `singular`: an article shows one person."""
        self._old, self._new = _pronoun_of(before), _pronoun_of(after)
        self._singular = singular

    def fault(self, old: Token, new: Token, *, verb: bool) -> str | None:
        """Return how a word differs otherwise than the person's gender wants.

        `verb`: the word stands beside a pronoun, so it may be a verb that agrees with it.
        """
        was, now = old.text.lower(), new.text.lower()
        if self._old != self._new and self._old is not None and PRONOUNS.get(was) == self._old:
            return self._pronoun_fault(old, new)
        if was == now:
            return case_fault(old, new)
        counted = self._old != self._new and "they" in (self._new or "they", self._old)
        if verb and counted and (plural_clause(was) == now or plural_clause(now) == was):
            return None
        return f"'{old.text}' becomes '{new.text}', which is not the attribute"

    def _pronoun_fault(self, old: Token, new: Token) -> str | None:
        was, now = old.text.lower(), new.text.lower()
        wanted = self._new or "they"
        if PRONOUNS.get(now) == "they" and not self._singular and was == now:
            return None  # several persons
        if PRONOUNS.get(now) != wanted:
            return f"the pronoun '{new.text}' does not agree with the person ('{wanted}')"
        if not any(was in case and now in case for case in CASES):
            return f"the pronoun '{new.text}' has another case than '{old.text}'"
        return None


def _pronoun_of(mentions: Sequence[Mention]) -> str | None:
    """Return the pronoun of the person whose gender is said or denied; None where it is not."""
    genders = [mention for mention in mentions if mention.value.pronoun]
    if not genders:
        return None
    pronouns = {m.value.pronoun for m in genders if m.manner is not Manner.NEGATED}
    several = any(mention.plural for mention in mentions)
    return pronouns.pop() if len(pronouns) == 1 and not several else "they"


def case_fault(old: Token, new: Token) -> str | None:
    """Return how the same word is written in another case than its place in the sentence wants."""
    if old.text == new.text and not (new.starts and new.text[:1].islower() and old.starts is False):
        return None
    if new.starts and new.text[:1].isupper() and new.text.lower() == old.text.lower():
        return None
    if old.starts and not new.starts and new.text == old.text[:1].lower() + old.text[1:]:
        return None
    return f"'{old.text}' becomes '{new.text}': the case changes"
