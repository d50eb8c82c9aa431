"""Each file wraps one third-party library or protocol behind a port of the engine."""
