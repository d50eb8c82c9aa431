"""What the gate can do without: a folder each, which can be removed."""
