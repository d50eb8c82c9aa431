"""Relations about two attributes at once."""
