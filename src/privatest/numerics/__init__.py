"""Pure functions of data and public parameters: kernels, ranks, permuted statistics, laws."""
