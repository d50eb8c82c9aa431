"""GenFair's relations (P3, section V-B2): edits of the attributes that a text states."""
