"""`fairgate power`: what a policy is large enough to see."""
