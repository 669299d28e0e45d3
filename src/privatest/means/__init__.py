"""Means of one or several columns: private tests, estimates and confidence regions."""

from privatest.means.equivalence import tost_ind, tost_rel
from privatest.means.estimates import (
    CovarianceEstimate,
    MeanEstimate,
    private_covariance,
    private_mean,
)
from privatest.means.hotelling import hotelling_1samp, hotelling_test
from privatest.means.ttest import ttest_1samp, ttest_ind, ttest_rel

__all__ = [
    "CovarianceEstimate",
    "MeanEstimate",
    "hotelling_1samp",
    "hotelling_test",
    "private_covariance",
    "private_mean",
    "tost_ind",
    "tost_rel",
    "ttest_1samp",
    "ttest_ind",
    "ttest_rel",
]
