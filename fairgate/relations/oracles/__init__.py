"""Read an output: which label, choice or score an answer holds."""
