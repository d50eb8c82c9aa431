"""The composition root: a policy file to everything a run needs; the only code that names adapters."""
