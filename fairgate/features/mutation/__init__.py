"""`fairgate mutate`: which planted bias a policy's gate catches."""
