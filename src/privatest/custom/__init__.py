"""A private permutation test for a statistic of the user's own."""

from privatest.custom.testing import permutation_test

__all__ = ["permutation_test"]
