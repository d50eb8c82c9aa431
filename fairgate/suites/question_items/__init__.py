"""Question items about two groups, asked with and without retrieved documents."""
