"""How answers in sentences are read: split, masked, and looked through for facts and phrasings."""
