"""Differentially private hypothesis tests: the answer, and a proof that it hides each person."""

from privatest.any_test import sarrm_test, test_of_tests
from privatest.custom import permutation_test
from privatest.errors import DataError, ParameterError, PrivacyError, PrivatestError
from privatest.family import ks_family
from privatest.goodness_of_fit import ks_1samp
from privatest.independence import hsic_test
from privatest.paired import sign_test, symmetry_test, wilcoxon
from privatest.privacy import Adjacency, Budget, PermutationSensitivity
from privatest.results import Decision, Outcome
from privatest.schema import Schema
from privatest.two_sample import (
    ipm_test,
    kruskal,
    ks_2samp,
    mannwhitneyu,
    median_test,
    mmd_test,
)

__version__ = "0.1.0"

__all__ = [
    "Adjacency",
    "Budget",
    "DataError",
    "Decision",
    "Outcome",
    "ParameterError",
    "PermutationSensitivity",
    "PrivacyError",
    "PrivatestError",
    "Schema",
    "hsic_test",
    "ipm_test",
    "kruskal",
    "ks_1samp",
    "ks_2samp",
    "ks_family",
    "mannwhitneyu",
    "median_test",
    "mmd_test",
    "permutation_test",
    "sarrm_test",
    "sign_test",
    "symmetry_test",
    "test_of_tests",
    "wilcoxon",
]
