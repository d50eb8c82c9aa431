"""The one client for HTTP, and what it is asked and answers."""
