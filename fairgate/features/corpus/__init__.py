"""`fairgate corpus prepare`: a corpus as the gate reads it."""
