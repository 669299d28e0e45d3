"""Statistics: pure functions of data and public parameters, each with its sensitivity."""
