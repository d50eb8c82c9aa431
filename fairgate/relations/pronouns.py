"""The third-person pronouns: which form each has in each case."""

from __future__ import annotations

FORMS = {
    "they": {"she": "she", "he": "he", "they": "they"},
    "them": {"she": "her", "he": "him", "they": "them"},
    "their": {"she": "her", "he": "his", "they": "their"},
    "theirs": {"she": "hers", "he": "his", "they": "theirs"},
    "themselves": {"she": "herself", "he": "himself", "they": "themselves"},
}
"""Form of each pronoun, by the case as the form of `they` names it."""
CASES = tuple(frozenset(forms.values()) for forms in FORMS.values())
"""Forms that may stand for one another."""
PRONOUNS = {form: pronoun for forms in FORMS.values() for pronoun, form in forms.items()}
"""Every form with its pronoun: `she`, `he` or `they`."""
