"""Data larger than memory: time and memory of a test beside those of reading its columns."""
