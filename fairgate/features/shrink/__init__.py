"""`fairgate shrink`: the shortest text that still shows a difference."""
