"""A table of outcomes as a suite: everything was asked elsewhere."""
