"""Verdicts to numbers: one metric family a file, its equation and paper in the docstring."""
