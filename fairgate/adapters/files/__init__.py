"""Files that users bring (tables, corpora, sources, recordings) and files that we write."""
