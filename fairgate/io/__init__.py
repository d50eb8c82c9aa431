"""Files, tables, HTTP, git and processes, as everything above uses them."""
