"""`fairgate baseline`: accepts, compares and verifies baselines and anchors."""
