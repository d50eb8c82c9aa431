"""`fairgate blame`: which part of a change moved a figure."""
