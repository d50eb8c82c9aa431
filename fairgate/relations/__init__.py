"""Metamorphic relations: how a source test case is transformed, and what must stay as it was."""
