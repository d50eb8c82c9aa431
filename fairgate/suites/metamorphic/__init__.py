"""Metamorphic tests: sources, relations and what perturbs them."""
