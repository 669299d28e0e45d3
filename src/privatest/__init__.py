"""Differentially private hypothesis tests: the answer, and a proof that it hides each person.

Modules are loaded when a name is first used, so that ``privatest --help`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privatest.any_test import sarrm_test, test_of_tests
    from privatest.client import Client, connect
    from privatest.core.adjusting import adjust
    from privatest.core.errors import (
        BudgetError,
        DataError,
        EngineError,
        LedgerError,
        ParameterError,
        PrivacyError,
        PrivatestError,
        ServiceError,
    )
    from privatest.core.intervals import Interval
    from privatest.core.privacy import Adjacency, Budget, PermutationSensitivity
    from privatest.core.results import Decision, Outcome
    from privatest.custom import permutation_test
    from privatest.data.scanning import scan, scan_sql
    from privatest.data.schema import Schema
    from privatest.goodness_of_fit.family import ks_family
    from privatest.goodness_of_fit.ks import ks_1samp
    from privatest.independence.conditional import conditional_independence_test
    from privatest.independence.hsic import hsic_test
    from privatest.independence.linear import linregress, pearsonr
    from privatest.independence.randomisation import conditional_randomisation_test
    from privatest.independence.rank_correlation import kendalltau, spearmanr
    from privatest.ledger.spending import BudgetBlock, budget
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
    from privatest.reports import report
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
    "BudgetBlock",
    "BudgetError",
    "Client",
    "CovarianceEstimate",
    "DataError",
    "Decision",
    "EngineError",
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
    "ServiceError",
    "Share",
    "SharePlan",
    "StatisticRelease",
    "SyntheticData",
    "adjust",
    "binom_test",
    "budget",
    "chi2_contingency",
    "chisquare",
    "compare",
    "compare_all",
    "compare_releases",
    "conditional_independence_test",
    "conditional_randomisation_test",
    "connect",
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
    "report",
    "sarrm_test",
    "scan",
    "scan_sql",
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

# Where each public name is defined; the imports above say the same to type checkers.
_HOMES = {
    name: module
    for module, names in {
        "any_test": ("sarrm_test", "test_of_tests"),
        "client": ("Client", "connect"),
        "core.adjusting": ("adjust",),
        "core.errors": (
            "BudgetError",
            "DataError",
            "EngineError",
            "LedgerError",
            "ParameterError",
            "PrivacyError",
            "PrivatestError",
            "ServiceError",
        ),
        "core.intervals": ("Interval",),
        "core.privacy": ("Adjacency", "Budget", "PermutationSensitivity"),
        "core.results": ("Decision", "Outcome"),
        "custom": ("permutation_test",),
        "data.scanning": ("scan", "scan_sql"),
        "data.schema": ("Schema",),
        "goodness_of_fit.family": ("ks_family",),
        "goodness_of_fit.ks": ("ks_1samp",),
        "independence.conditional": ("conditional_independence_test",),
        "independence.hsic": ("hsic_test",),
        "independence.linear": ("linregress", "pearsonr"),
        "independence.randomisation": ("conditional_randomisation_test",),
        "independence.rank_correlation": ("kendalltau", "spearmanr"),
        "ledger.spending": ("BudgetBlock", "budget"),
        "means": (
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
        ),
        "paired.signed": ("sign_test", "symmetry_test", "wilcoxon"),
        "quantiles": ("QuantileEstimate", "hodges_lehmann", "private_median", "private_quantile"),
        "reports": ("report",),
        "several_groups": ("f_oneway", "kruskal"),
        "shares": ("Share", "SharePlan", "compare", "compare_all", "plan_share", "share"),
        "synthetic": ("Estimate", "SyntheticData", "compare_releases", "release"),
        "tables.binomial": ("binom_test", "private_share"),
        "tables.contingency": ("chi2_contingency",),
        "tables.fit": ("chisquare",),
        "tables.proportions": ("proportions_test", "tost_proportions"),
        "two_sample": (
            "MomentsRelease",
            "PrivateChoice",
            "StatisticRelease",
            "distinguishing_features",
            "ipm_test",
            "ks_2samp",
            "mannwhitneyu",
            "me_permutation_test",
            "me_test",
            "median_test",
            "mmd_test",
            "optimise_frequencies",
            "optimise_locations",
            "scf_permutation_test",
            "scf_test",
            "speaking_features",
        ),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    own = getattr(value, "__wrapped__", value)
    if "noise" in (getattr(own, "__kwdefaults__", None) or ()):  # it spends
        value = import_module(f"{__name__}.core.spending").charged(value)
    globals()[name] = value  # found at once from here on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
