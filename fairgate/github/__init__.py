"""A pull request: its event, the base commit, comments, and what the action's step does."""
