"""What can be under test, one kind a file: its part of the policy, and how it is opened."""
