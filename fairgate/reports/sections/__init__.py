"""What reports say, one question a file: each section is built once, as blocks."""
