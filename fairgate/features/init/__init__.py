"""`fairgate init`: a first policy for a system."""
