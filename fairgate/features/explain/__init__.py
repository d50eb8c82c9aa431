"""`fairgate explain`: one case, with its documents side by side."""
