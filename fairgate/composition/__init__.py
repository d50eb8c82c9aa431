"""The composition root: a policy file to everything a run needs; alone in naming adapters."""
