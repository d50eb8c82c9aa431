"""The user's contract: what a policy file may say, and how it is read."""
