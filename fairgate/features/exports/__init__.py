"""A run in the formats of others: SARIF, JUnit, CycloneDX, badges, control maps."""
