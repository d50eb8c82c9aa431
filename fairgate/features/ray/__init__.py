"""A run's models on worker processes or the machines of a Ray cluster."""
