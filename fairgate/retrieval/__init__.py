"""Corpora, embedders, indexes and vector stores: which documents a text finds."""
