"""One pass over rows, wherever they are: blocks are added up apart, and the sums merged."""
