"""`fairgate run --shard` and `fairgate merge`: one run in parts."""
