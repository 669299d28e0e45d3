"""Differentially private hypothesis tests: the answer, and a proof that it hides each person."""

from privatest.any_test import sarrm_test, test_of_tests
from privatest.core.adjusting import adjust
from privatest.core.errors import (
    BudgetError,
    DataError,
    LedgerError,
    ParameterError,
    PrivacyError,
    PrivatestError,
)
from privatest.core.intervals import Interval
from privatest.core.privacy import Adjacency, Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome
from privatest.custom import permutation_test
from privatest.data.schema import Schema
from privatest.goodness_of_fit.family import ks_family
from privatest.goodness_of_fit.ks import ks_1samp
from privatest.independence.conditional import conditional_independence_test
from privatest.independence.hsic import hsic_test
from privatest.independence.linear import linregress, pearsonr
from privatest.independence.rank_correlation import kendalltau, spearmanr
from privatest.means import (
    CovarianceEstimate,
    MeanEstimate,
    hotelling_1samp,
    hotelling_test,
    private_covariance,
    private_mean,
    tost_ind,
    tost_rel,
    ttest_1samp,
    ttest_ind,
    ttest_rel,
)
from privatest.paired.signed import sign_test, symmetry_test, wilcoxon
from privatest.quantiles import (
    QuantileEstimate,
    hodges_lehmann,
    private_median,
    private_quantile,
)
from privatest.several_groups import f_oneway, kruskal
from privatest.shares import Share, SharePlan, compare, compare_all, plan_share, share
from privatest.synthetic import Estimate, SyntheticData, compare_releases, release
from privatest.tables.binomial import binom_test, private_share
from privatest.tables.contingency import chi2_contingency
from privatest.tables.fit import chisquare
from privatest.tables.proportions import proportions_test, tost_proportions
from privatest.two_sample import (
    MomentsRelease,
    PrivateChoice,
    StatisticRelease,
    distinguishing_features,
    ipm_test,
    ks_2samp,
    mannwhitneyu,
    me_permutation_test,
    me_test,
    median_test,
    mmd_test,
    optimise_frequencies,
    optimise_locations,
    scf_permutation_test,
    scf_test,
    speaking_features,
)

__version__ = "0.1.0"

__all__ = [
    "Adjacency",
    "Budget",
    "BudgetError",
    "CovarianceEstimate",
    "DataError",
    "Decision",
    "Estimate",
    "Interval",
    "LedgerError",
    "MeanEstimate",
    "MomentsRelease",
    "Outcome",
    "ParameterError",
    "PermutationSensitivity",
    "PrivacyError",
    "PrivateChoice",
    "PrivatestError",
    "QuantileEstimate",
    "Schema",
    "Share",
    "SharePlan",
    "StatisticRelease",
    "SyntheticData",
    "adjust",
    "binom_test",
    "chi2_contingency",
    "chisquare",
    "compare",
    "compare_all",
    "compare_releases",
    "conditional_independence_test",
    "distinguishing_features",
    "f_oneway",
    "hodges_lehmann",
    "hotelling_1samp",
    "hotelling_test",
    "hsic_test",
    "ipm_test",
    "kendalltau",
    "kruskal",
    "ks_1samp",
    "ks_2samp",
    "ks_family",
    "linregress",
    "mannwhitneyu",
    "me_permutation_test",
    "me_test",
    "median_test",
    "mmd_test",
    "optimise_frequencies",
    "optimise_locations",
    "pearsonr",
    "permutation_test",
    "plan_share",
    "private_covariance",
    "private_mean",
    "private_median",
    "private_quantile",
    "private_share",
    "proportions_test",
    "release",
    "sarrm_test",
    "scf_permutation_test",
    "scf_test",
    "share",
    "sign_test",
    "speaking_features",
    "spearmanr",
    "symmetry_test",
    "test_of_tests",
    "tost_ind",
    "tost_proportions",
    "tost_rel",
    "ttest_1samp",
    "ttest_ind",
    "ttest_rel",
    "wilcoxon",
]
