"""`fairgate lint`: whether written pairs change what they say they change."""
