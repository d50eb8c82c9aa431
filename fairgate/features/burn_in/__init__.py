"""`fairgate burn-in`: how much an unchanged system varies."""
