"""What each method of the catalogue does, in a sentence for a paper, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privatest.reports.references import REFERENCES, Reference

__all__ = ["CITED", "Cited", "cited"]


@dataclass(frozen=True, slots=True)
class Cited:
    """A method for a methods paragraph.

    Attributes
    ----------
    sentence : str
        What was done, without a full stop at its end.
    keys : tuple of str
        Papers, as in :data:`REFERENCES`.
    """

    sentence: str
    keys: tuple[str, ...]

    @property
    def references(self) -> list[Reference]:
        """The papers."""
        return [REFERENCES[key] for key in self.keys]


_SMOOTHED = "by a private permutation test with a smoothed p-value"
_EXACT = "its p-value is exact, noise included"
_SUBSETS = "which runs a test on disjoint parts of the data and adds noise to how many reject"
_RANDOMISED = "which runs a test on disjoint parts of the data and flips their answers at random"
_MOMENTS = "from noisy moments, with intervals that count the noise"


def _ipm(what: str) -> Cited:
    return Cited(f"We compared the samples by {what}, {_SMOOTHED}", ("kim2023",))


def _ks(what: str) -> Cited:
    return Cited(f"We used the private {what}; {_EXACT}", ("awan2022",))


_TOT = Cited(f"We used a test of tests, {_SUBSETS}", ("kazan2023",))
_SARRM = Cited(f"We used SARRM, {_RANDOMISED}", ("pena2022",))
_SYNTHETIC = ("balog2018", "balle2018")

# By method id, or by its function for all of its tests.
CITED: Mapping[str, Cited] = {
    "mmd_test": Cited(
        "We compared whole distributions by the largest of several statistics, among them the "
        f"maximum mean discrepancy with several bandwidths, {_SMOOTHED}",
        ("kim2023", "gretton2012"),
    ),
    "ipm_test/mean": _ipm("the difference of their means"),
    "ipm_test/wasserstein": _ipm("the Wasserstein distance"),
    "ipm_test/total-variation": _ipm("the total variation distance"),
    "ipm_test/kolmogorov": _ipm("the Kolmogorov distance"),
    "ks_2samp/ks": _ks("two-sample Kolmogorov–Smirnov test"),
    "ks_2samp/kuiper": _ks("two-sample Kuiper test"),
    "mannwhitneyu": Cited("We used a private Mann–Whitney test", ("couch2019",)),
    "kruskal": Cited(
        "We used a private Kruskal–Wallis test on absolute differences of mean ranks",
        ("couch2019",),
    ),
    "median_test": Cited(f"We used a median test with Tulap noise; {_EXACT}", ("awan2018",)),
    "hodges_lehmann": Cited(
        "We estimated the Hodges–Lehmann shift from noisy counts of pairs by their difference",
        ("hodges1963", "drechsler2021"),
    ),
    "me_test": Cited(
        "We compared mean embeddings of the samples at public locations with a private test",
        ("raj2019", "chwialkowski2015"),
    ),
    "scf_test": Cited(
        "We compared smoothed characteristic functions of the samples with a private test",
        ("raj2019", "chwialkowski2015"),
    ),
    "me_permutation_test": Cited(
        f"We compared mean embeddings of the samples at public locations, {_SMOOTHED}",
        ("kim2023", "chwialkowski2015"),
    ),
    "scf_permutation_test": Cited(
        f"We compared smoothed characteristic functions of the samples, {_SMOOTHED}",
        ("kim2023", "chwialkowski2015"),
    ),
    "hotelling_test": Cited(
        f"We compared mean vectors by a private Hotelling test, {_MOMENTS}",
        ("dunsche2022", "amin2019"),
    ),
    "ttest_ind": Cited(
        f"We compared means by a private t-test, {_MOMENTS}",
        ("dunsche2022",),
    ),
    "tost_ind": Cited(
        f"We tested equivalence of means by two one-sided private t-tests, {_MOMENTS}",
        ("schuirmann1987", "dunsche2022"),
    ),
    "proportions_test": Cited("We compared shares of successes by noisy counts", ("awan2018",)),
    "tost_proportions": Cited(
        "We tested equivalence of shares by two one-sided tests on noisy counts",
        ("schuirmann1987", "awan2018"),
    ),
    "f_oneway": Cited(
        f"We compared means of groups by a private analysis of variance, {_MOMENTS}",
        ("swanberg2019", "dunsche2022"),
    ),
    "test_of_tests": _TOT,
    "sarrm_test": _SARRM,
    "hsic_test": Cited(
        "We tested independence by the largest of several statistics, among them the "
        f"Hilbert–Schmidt independence criterion with several bandwidths, {_SMOOTHED}",
        ("kim2023", "gretton2007"),
    ),
    "kendalltau": Cited(
        "We used Kendall's rank correlation with discrete Laplace noise",
        ("dwork2006",),
    ),
    "spearmanr": Cited(
        "We used Spearman's rank correlation with discrete Laplace noise",
        ("dwork2006",),
    ),
    "pearsonr": Cited(f"We estimated Pearson's correlation {_MOMENTS}", ("alabi2022",)),
    "linregress": Cited(f"We fitted a line of y on x {_MOMENTS}", ("alabi2022",)),
    "chi2_contingency": Cited(
        "We tested independence of categories by a chi-squared statistic of a noisy table",
        ("gaboardi2016", "rogers2017"),
    ),
    "conditional_independence_test": Cited(
        "We tested conditional independence by the covariance of residuals of private regressions",
        ("shah2020", "kalemaj2024"),
    ),
    "symmetry_test/ks": _ks(
        "symmetry test of Kolmogorov–Smirnov type on differences of pairs",
    ),
    "symmetry_test/kuiper": _ks(
        "symmetry test of Kuiper type on differences of pairs",
    ),
    "sign_test": Cited(f"We used a sign test with Tulap noise; {_EXACT}", ("awan2018",)),
    "wilcoxon": Cited("We used a private Wilcoxon signed-rank test", ("couch2019",)),
    "ttest_rel": Cited(
        f"We tested the mean of differences by a private paired t-test, {_MOMENTS}",
        ("dunsche2022",),
    ),
    "tost_rel": Cited(
        f"We tested equivalence of paired means by two one-sided private t-tests, {_MOMENTS}",
        ("schuirmann1987", "dunsche2022"),
    ),
    "ks_1samp": _ks(
        "one-sample test of Kolmogorov–Smirnov type against a given distribution",
    ),
    "ks_family": _ks(
        "distance of Kolmogorov–Smirnov type to the nearest member of a location-scale family",
    ),
    "chisquare": Cited(
        "We compared shares of categories with given ones by a chi-squared statistic of noisy "
        "counts",
        ("gaboardi2016", "rogers2017"),
    ),
    "private_mean": Cited(f"We estimated means {_MOMENTS}", ("dunsche2022", "amin2019")),
    "private_share": Cited(
        "We estimated a share from a noisy count, with an exact interval",
        ("awan2018",),
    ),
    "private_quantile": Cited(
        "We estimated a quantile from noisy counts below the edges of a public grid, with an "
        "interval that holds for every distribution",
        ("drechsler2021",),
    ),
    "release/auto": Cited(
        "We released synthetic rows that fit noisy measurements of the data", _SYNTHETIC
    ),
    "release/tables": Cited(
        "We released synthetic rows that fit noisy tables of columns and of pairs of columns",
        _SYNTHETIC,
    ),
    "release/subspace": Cited(
        "We released public points with private weights, by the kernel mean embedding of the data",
        _SYNTHETIC,
    ),
    "release/features": Cited(
        "We released synthetic points with weights, found by a search from noisy features of the "
        "data",
        _SYNTHETIC,
    ),
    "compare": Cited(
        "The owners published noisy moments of public features, and these were compared",
        ("raj2019",),
    ),
    "compare_releases": Cited(
        "We tested noisy tables that releases of synthetic data had measured",
        _SYNTHETIC,
    ),
    "permutation_test": Cited(
        f"We used a statistic of our own with a declared sensitivity, {_SMOOTHED}",
        ("kim2023",),
    ),
    "conditional_randomisation_test": Cited(
        f"We tested conditional independence by drawing x anew given z, {_SMOOTHED}",
        ("kim2023", "candes2018"),
    ),
}

# Functions of a method that is cited under another one.
_SAME = {
    "binom_test": "private_share",
    "hotelling_1samp": "hotelling_test",
    "private_covariance": "private_mean",
    "release_test": "compare_releases",
    "ttest_1samp": "ttest_ind",
}


def cited(method_id: str) -> Cited | None:
    """Return the citation of a method; None for an unknown one."""
    function = method_id.partition("/")[0]
    return CITED.get(method_id) or CITED.get(_SAME.get(function, function))
