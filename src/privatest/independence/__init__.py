"""Tests of whether two sets of columns depend on each other."""

from privatest.independence.conditional import conditional_independence_test
from privatest.independence.hsic import hsic_test
from privatest.independence.linear import linregress, pearsonr
from privatest.independence.rank_correlation import kendalltau, spearmanr

__all__ = [
    "conditional_independence_test",
    "hsic_test",
    "kendalltau",
    "linregress",
    "pearsonr",
    "spearmanr",
]
