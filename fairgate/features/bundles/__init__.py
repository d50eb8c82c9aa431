"""`fairgate bundle`: a run as one file that others can check."""
