"""The user's contract: what a policy file may contain, and how it is read."""
