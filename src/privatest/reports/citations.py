"""What each method of the catalogue does, in a sentence for a paper, and where it comes from."""

from __future__ import annotations

import re
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
    begins : tuple of str
        How a result that was not asked for by name calls its method.
    """

    sentence: str
    keys: tuple[str, ...]
    begins: tuple[str, ...] = ()

    @property
    def references(self) -> list[Reference]:
        """The papers."""
        return [REFERENCES[key] for key in self.keys]


_SEVERAL = re.compile(r"^\d+(?=-sample)")
_SMOOTHED = "by a private permutation test with a smoothed p-value"
_EXACT = "its p-value is exact, noise included"
_SUBSETS = "which runs a test on disjoint parts of the data and adds noise to how many reject"
_RANDOMISED = "which runs a test on disjoint parts of the data and flips their answers at random"
_MOMENTS = "from noisy moments, with intervals that count the noise"


def _ipm(what: str, *begins: str) -> Cited:
    return Cited(f"We compared the samples by {what}, {_SMOOTHED}", ("kim2023",), begins)


def _ks(what: str, *begins: str) -> Cited:
    return Cited(f"We used the private {what}; {_EXACT}", ("awan2022",), begins)


_TOT = Cited(f"We used a test of tests, {_SUBSETS}", ("kazan2023",), ("test of tests",))
_SARRM = Cited(f"We used SARRM, {_RANDOMISED}", ("pena2022",), ("SARRM",))
_SYNTHETIC = ("balog2018", "balle2018")

# By question and method; what the catalogue does not have is under no question.
CITED: Mapping[tuple[str, str], Cited] = {
    ("two-sample", "mmd"): Cited(
        "We compared whole distributions by the largest of several statistics, among them the "
        f"maximum mean discrepancy with several bandwidths, {_SMOOTHED}",
        ("kim2023", "gretton2012"),
        ("two-sample test by the largest of", "two-sample MMD test", "several-sample"),
    ),
    ("two-sample", "mean"): _ipm("the difference of their means", "two-sample test by difference"),
    ("two-sample", "wasserstein"): _ipm(
        "the Wasserstein distance", "two-sample test by Wasserstein"
    ),
    ("two-sample", "tv"): _ipm("the total variation distance", "two-sample test by total"),
    ("two-sample", "kolmogorov"): _ipm(
        "the Kolmogorov distance", "two-sample test by Kolmogorov", "two-sample test by"
    ),
    ("two-sample", "ks"): _ks(
        "two-sample Kolmogorov–Smirnov test", "two-sample Kolmogorov-Smirnov"
    ),
    ("two-sample", "kuiper"): _ks("two-sample Kuiper test", "two-sample Kuiper"),
    ("two-sample", "mann-whitney"): Cited(
        "We used a private Mann–Whitney test", ("couch2019",), ("Mann–Whitney",)
    ),
    ("two-sample", "kruskal"): Cited(
        "We used a private Kruskal–Wallis test on absolute differences of mean ranks",
        ("couch2019",),
        ("Kruskal–Wallis",),
    ),
    ("two-sample", "median"): Cited(
        f"We used a median test with Tulap noise; {_EXACT}", ("awan2018",), ("median test",)
    ),
    ("two-sample", "hodges-lehmann"): Cited(
        "We estimated the Hodges–Lehmann shift from noisy counts of pairs by their difference",
        ("hodges1963", "drechsler2021"),
        ("Hodges–Lehmann",),
    ),
    ("two-sample", "me"): Cited(
        "We compared mean embeddings of the samples at public locations with a private test",
        ("raj2019", "chwialkowski2015"),
        ("two-sample mean embedding", "paired mean embedding"),
    ),
    ("two-sample", "scf"): Cited(
        "We compared smoothed characteristic functions of the samples with a private test",
        ("raj2019", "chwialkowski2015"),
        ("two-sample smooth", "paired smooth"),
    ),
    ("two-sample", "me-permutation"): Cited(
        f"We compared mean embeddings of the samples at public locations, {_SMOOTHED}",
        ("kim2023", "chwialkowski2015"),
        ("two-sample mean embedding permutation",),
    ),
    ("two-sample", "scf-permutation"): Cited(
        f"We compared smoothed characteristic functions of the samples, {_SMOOTHED}",
        ("kim2023", "chwialkowski2015"),
        ("two-sample smooth characteristic function permutation",),
    ),
    ("two-sample", "hotelling"): Cited(
        f"We compared mean vectors by a private Hotelling test, {_MOMENTS}",
        ("dunsche2022", "amin2019"),
        ("two-sample Hotelling", "one-sample Hotelling"),
    ),
    ("two-sample", "ttest"): Cited(
        f"We compared means by a private t-test, {_MOMENTS}",
        ("dunsche2022",),
        ("two-sample t-test", "one-sample t-test"),
    ),
    ("two-sample", "tost"): Cited(
        f"We tested equivalence of means by two one-sided private t-tests, {_MOMENTS}",
        ("schuirmann1987", "dunsche2022"),
        ("equivalence of two means",),
    ),
    ("two-sample", "proportion"): Cited(
        "We compared shares of successes by noisy counts", ("awan2018",), ("test of equal prop",)
    ),
    ("two-sample", "tost-proportion"): Cited(
        "We tested equivalence of shares by two one-sided tests on noisy counts",
        ("schuirmann1987", "awan2018"),
        ("equivalence of two proportions",),
    ),
    ("two-sample", "anova"): Cited(
        f"We compared means of groups by a private analysis of variance, {_MOMENTS}",
        ("swanberg2019", "dunsche2022"),
        ("one-way analysis",),
    ),
    ("two-sample", "tot"): _TOT,
    ("two-sample", "sarrm"): _SARRM,
    ("independence", "hsic"): Cited(
        "We tested independence by the largest of several statistics, among them the "
        f"Hilbert–Schmidt independence criterion with several bandwidths, {_SMOOTHED}",
        ("kim2023", "gretton2007"),
        ("independence test by the largest of", "HSIC"),
    ),
    ("independence", "kendall"): Cited(
        "We used Kendall's rank correlation with discrete Laplace noise",
        ("dwork2006",),
        ("Kendall",),
    ),
    ("independence", "spearman"): Cited(
        "We used Spearman's rank correlation with discrete Laplace noise",
        ("dwork2006",),
        ("Spearman",),
    ),
    ("independence", "pearson"): Cited(
        f"We estimated Pearson's correlation {_MOMENTS}", ("alabi2022",), ("Pearson",)
    ),
    ("independence", "slope"): Cited(
        f"We fitted a line of y on x {_MOMENTS}", ("alabi2022",), ("linear regression",)
    ),
    ("independence", "chi2"): Cited(
        "We tested independence of categories by a chi-squared statistic of a noisy table",
        ("gaboardi2016", "rogers2017"),
        ("chi-squared test of independence",),
    ),
    ("independence", "gcm"): Cited(
        "We tested conditional independence by the covariance of residuals of private regressions",
        ("shah2020", "kalemaj2024"),
        ("generalised covariance", "conditional independence"),
    ),
    ("independence", "tot"): _TOT,
    ("independence", "sarrm"): _SARRM,
    ("paired", "ks"): _ks(
        "symmetry test of Kolmogorov–Smirnov type on differences of pairs",
        "symmetry test for paired data (Kolmogorov",
    ),
    ("paired", "kuiper"): _ks(
        "symmetry test of Kuiper type on differences of pairs",
        "symmetry test for paired data (Kuiper",
        "symmetry test",
    ),
    ("paired", "sign"): Cited(
        f"We used a sign test with Tulap noise; {_EXACT}", ("awan2018",), ("sign test",)
    ),
    ("paired", "wilcoxon"): Cited(
        "We used a private Wilcoxon signed-rank test", ("couch2019",), ("Wilcoxon",)
    ),
    ("paired", "ttest"): Cited(
        f"We tested the mean of differences by a private paired t-test, {_MOMENTS}",
        ("dunsche2022",),
        ("paired t-test",),
    ),
    ("paired", "tost"): Cited(
        f"We tested equivalence of paired means by two one-sided private t-tests, {_MOMENTS}",
        ("schuirmann1987", "dunsche2022"),
        ("equivalence of paired means",),
    ),
    ("fit", "distribution"): _ks(
        "one-sample test of Kolmogorov–Smirnov type against a given distribution",
        "one-sample Kolmogorov",
        "one-sample Kuiper",
        "one-sample Cram",
        "one-sample Wasserstein",
    ),
    ("fit", "family"): _ks(
        "distance of Kolmogorov–Smirnov type to the nearest member of a location-scale family",
        "Kolmogorov-Smirnov test of a location-scale family",
        "Kuiper test of a location-scale family",
    ),
    ("fit", "shares"): Cited(
        "We compared shares of categories with given ones by a chi-squared statistic of noisy "
        "counts",
        ("gaboardi2016", "rogers2017"),
        ("chi-squared test of shares",),
    ),
    ("mean", "moments"): Cited(
        f"We estimated means {_MOMENTS}", ("dunsche2022", "amin2019"), ("private means",)
    ),
    ("mean", "proportion"): Cited(
        "We estimated a share from a noisy count, with an exact interval",
        ("awan2018",),
        ("binomial test", "private share"),
    ),
    ("mean", "quantiles"): Cited(
        "We estimated a quantile from noisy counts below the edges of a public grid, with an "
        "interval that holds for every distribution",
        ("drechsler2021",),
        ("private quantile",),
    ),
    ("release", "auto"): Cited(
        "We released synthetic rows that fit noisy measurements of the data", _SYNTHETIC
    ),
    ("release", "tables"): Cited(
        "We released synthetic rows that fit noisy tables of columns and of pairs of columns",
        _SYNTHETIC,
        ("tables",),
    ),
    ("release", "subspace"): Cited(
        "We released public points with private weights, by the kernel mean embedding of the data",
        _SYNTHETIC,
        ("subspace",),
    ),
    ("release", "features"): Cited(
        "We released synthetic points with weights, found by a search from noisy features of the "
        "data",
        _SYNTHETIC,
        ("features",),
    ),
    ("", "shares"): Cited(
        "The owners published noisy moments of public features, and these were compared",
        ("raj2019",),
        ("comparison of two shares",),
    ),
    ("", "releases"): Cited(
        "We tested noisy tables that releases of synthetic data had measured",
        _SYNTHETIC,
        ("comparison of two releases", "test of a", "independence from a measured"),
    ),
    ("", "own"): Cited(
        f"We used a statistic of our own with a declared sensitivity, {_SMOOTHED}",
        ("kim2023",),
        ("two-sample permutation test of", "independence permutation test of"),
    ),
    ("", "randomisation"): Cited(
        f"We tested conditional independence by drawing x anew given z, {_SMOOTHED}",
        ("kim2023", "candes2018"),
        ("conditional randomisation",),
    ),
}


def cited(question: str, method: str, words: str) -> Cited | None:
    """Return a method by its name, or by how a result calls it; None for an unknown one.

    Parameters
    ----------
    question, method : str
        Of the request; "" where there is none.
    words : str
        The method as the result calls it.
    """
    if (question, method) in CITED:
        return CITED[question, method]
    words = _SEVERAL.sub("several", words)
    found = [
        (len(begin), entry)
        for entry in CITED.values()
        for begin in entry.begins
        if words.startswith(begin)
    ]
    return max(found, key=lambda each: each[0])[1] if found else None
