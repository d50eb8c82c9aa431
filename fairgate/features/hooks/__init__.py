"""`fairgate hook`: what runs before a commit."""
