"""Meta-Fair's relations (P4): pairs that were written beforehand, one relation a file."""
