"""What policy models of every layer share: closed models, fields, described types."""
