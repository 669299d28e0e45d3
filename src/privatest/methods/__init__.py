"""The tests: a file for each family, from its statistics to its public functions."""
