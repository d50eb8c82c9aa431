"""`fairgate relations` and `metrics`: the catalogues, and measured precision."""
