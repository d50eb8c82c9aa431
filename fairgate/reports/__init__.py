"""One presentation model (`view`), rendered to text by functions that decide nothing."""
