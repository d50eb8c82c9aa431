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
NOUNS = {
    noun: pronoun
    for pronoun, nouns in {
        "she": """woman women girl lady mother mum sister daughter wife aunt niece grandmother bride
            widow queen princess actress waitress hostess heiress landlady nun stepmother girlfriend
            granddaughter""",
        "he": """man men boy gentleman father dad brother son husband uncle nephew grandfather groom
            widower king prince actor waiter host heir landlord monk stepfather boyfriend
            grandson""",
    }.items()
    for noun in nouns.split()
}
"""Nouns that say the gender of a person, with the pronoun of it."""
