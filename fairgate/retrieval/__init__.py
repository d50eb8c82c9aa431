"""Corpora, embedders and indexes: which documents a text finds."""
