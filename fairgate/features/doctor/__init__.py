"""`fairgate doctor`: tries a policy's system with a few questions."""
