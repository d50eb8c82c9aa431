"""Kinds of tests, one folder a kind."""
