"""FairGate: a fairness gate for retrieval-augmented small language models."""

__version__ = "0.1.0"
