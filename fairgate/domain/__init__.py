"""The nouns of FairGate: frozen dataclasses and enums, standard library only."""
