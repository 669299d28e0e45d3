"""The experiments of each paper: data and functions, one file a paper."""
