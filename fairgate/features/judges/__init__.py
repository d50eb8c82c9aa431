"""`fairgate judge evaluate`: how often a judge agrees with people."""
