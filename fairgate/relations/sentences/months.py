"""Names of months in the languages in which dates are read."""

_MONTHS = (
    "jan|january|januar|janvier|enero|gennaio|januari|janeiro",
    "feb|february|februar|février|febrero|febbraio|februari|fevereiro",
    "mar|march|märz|mars|marzo|maart|março",
    "apr|april|avril|abril|aprile",
    "may|mai|mayo|maggio|mei|maio",
    "jun|june|juni|juin|junio|giugno|junho",
    "jul|july|juli|juillet|julio|luglio|julho",
    "aug|august|août|agosto|augustus",
    "sep|sept|september|septembre|septiembre|settembre|setembro",
    "oct|october|oktober|octobre|octubre|ottobre|outubro",
    "nov|november|novembre|noviembre|novembro",
    "dec|december|dezember|décembre|diciembre|dicembre|dezembro",
)
MONTH_OF = {name: n for n, names in enumerate(_MONTHS, 1) for name in names.split("|")}
"""Name, lower case, to the number of its month."""
MONTHS = "|".join(sorted(MONTH_OF, key=len, reverse=True))
"""Names of months, as a regular expression."""
