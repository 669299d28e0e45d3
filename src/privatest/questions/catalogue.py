"""What can be asked for by name, and what each method takes.

A new test is one entry here: the command line and the curator need no change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, get_args

from privatest.core.errors import ParameterError
from privatest.core.validation import one_of, reject
from privatest.questions.method import Method

__all__ = ["METHODS", "QUESTIONS", "Method", "Question", "find", "such", "usual"]

Question = Literal["two-sample", "independence", "paired", "fit", "mean", "release"]
QUESTIONS: tuple[str, ...] = get_args(Question)


def _same(*names: str, **renamed: str) -> dict[str, str]:
    return {name: name for name in names} | renamed


_PERMUTED = _same("release", permutations="n_permutations")
_SUBTEST = {"subtest": "pvalue", "permutations": "n_permutations"}
_BY_PARTS = "it cuts each group into parts by its size"
_RANKED = "one column, by ranks"
_BY_RANKS = "its p-value needs the group sizes"
_BY_SIZES = "its noise and its statistic need the group sizes"
_BY_AXES = "the time to draw the axes of a covariance depends on values"
_BY_CELLS = "the time to look up cells may depend on values"
_BY_FIT = "the time of an exact fit depends on values"
_BY_SEARCH = "its search may take minutes; what it starts from is private already"
_BY_GAUSSIAN = (
    "synthetic data needs Gaussian noise on many coefficients, which is not private for any "
    "epsilon alone. Choose delta well below 1 divided by the number of rows, for example 1e-6"
)


def _ipm(distance: str, *options: str, about: str = "") -> Method:
    named = _PERMUTED | _same(*options)
    return Method("two_sample.ipm.ipm_test", named, {"distance": distance}, about=about)


def _ks(statistic: str, *sided: str, aliases: tuple[str, ...] = ()) -> Method:
    return Method(
        "two_sample.ks.ks_2samp",
        {"permutations": "n_permutations"} | _same("grid", *sided),
        {"statistic": statistic},
        one_column=True,
        unbounded=True,
        aliases=aliases,
        about="one column, exact p-values",
    )


def _rank(
    function: str, *options: str, several: bool = False, aliases: tuple[str, ...] = ()
) -> Method:
    return Method(
        function,
        _same(*options),
        public_groups=_BY_RANKS,
        one_column=True,
        unbounded=True,
        aliases=aliases,
        several=several,
        about=_RANKED,
    )


def _correlation(function: str, about: str, *, unbounded: bool = False) -> Method:
    return Method(
        f"independence.{function}",
        _same("alternative"),
        one_column=True,
        unbounded=unbounded,
        aliases=(function,),
        about=about,
    )


def _subsampled(function: str, pvalue: str, scheme: str, *, drawn: bool = True) -> Method:
    preset = {"pvalue": pvalue, "scheme": scheme}
    return Method(
        f"any_test.{function}",
        _SUBTEST,
        preset,
        public_groups=_BY_PARTS,
        drawn=drawn,
        about="a subtest on parts of the data",
    )


def _embedding(function: str, places: str, *options: str) -> Method:
    named = _same("release", *options, locations=places, bandwidths="bandwidth")
    return Method(
        f"two_sample.{function}",
        named,
        public_groups=_BY_SIZES,
        gaussian=True,
        needed=("locations",),
        releases=("moments", "statistic"),
        about="at locations",
    )


def _embedding_permuted(function: str, places: str, *options: str) -> Method:
    named = _PERMUTED | _same(*options, locations=places, bandwidths="bandwidth")
    return Method(
        f"two_sample.embedding_permutation.{function}",
        named,
        public_groups=_BY_SIZES,
        needed=("locations",),
    )


def _symmetry(statistic: str) -> Method:
    preset = {"statistic": statistic}
    return Method("paired.symmetry_test", preset=preset, unbounded=True, about="any asymmetry")


def _equivalence(function: str, about: str, *options: str, **more: Any) -> Method:
    ends = ("low", "high")
    return Method(function, _same(*ends, *options), needed=ends, about=about, **more)


_POINTS = _same("public_points", "weights", "kernel", "bandwidth", points="n_points")
_ROWS = _same("weights", "bins", points="n_points")


def _synthetic(
    method: str,
    about: str,
    options: Mapping[str, str] = _POINTS,
    *,
    steps: bool = False,
    caution: str = "",
    tables: bool = False,
) -> Method:
    return Method(
        "synthetic.release",
        options,
        {"method": method},
        gaussian=True,
        level=False,
        needs_delta=_BY_GAUSSIAN,
        caution=caution,
        steps=steps,
        foretold="synthetic.tables.plan.foretell" if tables else "",
        work="synthetic.tables.plan.count_steps" if tables else "",
        sized=tables,
        about=about,
    )


METHODS: Mapping[str, Mapping[str, Method]] = {
    "two-sample": {
        "mmd": Method(
            "two_sample.mmd.mmd_test",
            _PERMUTED
            | _same("kernel", "bandwidths", "estimator", "statistics", computation="method"),
            several=True,
            about="whole distributions, by kernels and more",
        ),
        "mean": _ipm("mean", "norm"),
        "wasserstein": _ipm("wasserstein", "grid"),
        "tv": _ipm("total-variation", about="categories"),
        "kolmogorov": _ipm("kolmogorov", "grid"),
        "ks": _ks("ks", "alternative", aliases=("ks_2samp", "kstest")),
        "kuiper": _ks("kuiper"),
        "mann-whitney": Method(
            "two_sample.ranks.mannwhitneyu",
            _PERMUTED | _same("alternative"),
            one_column=True,
            unbounded=True,
            aliases=("mannwhitneyu", "ranksums"),
            about=_RANKED,
        ),
        "kruskal": _rank("several_groups.kruskal_wallis.kruskal", several=True),
        "median": _rank("two_sample.ranks.median_test", "alternative", aliases=("median_test",)),
        "hodges-lehmann": Method(
            "quantiles.hodges_lehmann",
            _same("cells"),
            public_groups=_BY_RANKS,
            one_column=True,
            about="the shift of one column, with an interval",
        ),
        "me": _embedding("embedding.me_test", "locations", "kernel"),
        "scf": _embedding("embedding.scf_test", "frequencies"),
        "me-permutation": _embedding_permuted("me_permutation_test", "locations", "kernel"),
        "scf-permutation": _embedding_permuted("scf_permutation_test", "frequencies"),
        "hotelling": Method(
            "means.hotelling.hotelling_test",
            public_groups=_BY_SIZES,
            gaussian=True,
            caution=_BY_AXES,
            about="means",
        ),
        "ttest": Method(
            "means.ttest.ttest_ind",
            _same("alternative", "calibration"),
            public_groups=_BY_SIZES,
            gaussian=True,
            one_column=True,
            aliases=("t-test", "ttest_ind"),
            about="one mean",
        ),
        "tost": _equivalence(
            "means.equivalence.tost_ind",
            "equivalence of one mean",
            "calibration",
            public_groups=_BY_SIZES,
            gaussian=True,
            one_column=True,
            aliases=("tost_ind",),
        ),
        "proportion": Method(
            "tables.proportions.proportions_test",
            _same("alternative", "success"),
            outcomes=True,
            several=True,
            aliases=("proportions_test",),
            about="shares of successes",
        ),
        "tost-proportion": _equivalence(
            "tables.proportions.tost_proportions",
            "equivalence of shares",
            "success",
            outcomes=True,
            aliases=("tost_proportions",),
        ),
        "anova": Method(
            "several_groups.anova.f_oneway",
            _same("calibration"),
            public_groups=_BY_SIZES,
            gaussian=True,
            one_column=True,
            several=True,
            aliases=("f_oneway",),
            about="means of several groups",
        ),
        "tot": _subsampled("test_of_tests", "mmd", "two-sample"),
        "sarrm": _subsampled("sarrm_test", "mmd", "two-sample", drawn=False),
    },
    "independence": {
        "hsic": Method(
            "independence.hsic_test",
            _PERMUTED | _same("kernel", "bandwidths", "estimator", "statistics"),
            about="any dependence, by kernels and more",
        ),
        "kendall": _correlation("kendalltau", "one column a side, by pairs", unbounded=True),
        "spearman": _correlation("spearmanr", "one column a side, by ranks", unbounded=True),
        "pearson": _correlation("pearsonr", "one column a side, by the covariance"),
        "slope": _correlation("linregress", "of y on x, by the covariance"),
        "chi2": Method(
            "tables.contingency.chi2_contingency",
            categorical=True,
            aliases=("chi2_contingency",),
            about="two categorical columns, with their table",
        ),
        "gcm": Method(
            "independence.conditional_independence_test",
            _same("cells"),
            caution=_BY_CELLS,
            about="one column and another, given more columns",
            part="given",
        ),
        "tot": _subsampled("test_of_tests", "hsic", "independence"),
        "sarrm": _subsampled("sarrm_test", "hsic", "independence", drawn=False),
    },
    "paired": {
        "ks": _symmetry("ks"),
        "kuiper": _symmetry("kuiper"),
        "sign": Method("paired.sign_test", _same("alternative"), unbounded=True),
        "wilcoxon": Method(
            "paired.wilcoxon", _same("alternative"), unbounded=True, about="signed ranks"
        ),
        "ttest": Method(
            "means.ttest.ttest_rel",
            _same("alternative", "calibration"),
            gaussian=True,
            aliases=("t-test", "ttest_rel"),
            about="the mean; needs bounds",
        ),
        "tost": _equivalence(
            "means.equivalence.tost_rel",
            "equivalence of the mean; needs bounds",
            "calibration",
            gaussian=True,
            aliases=("tost_rel",),
        ),
    },
    "fit": {
        "distribution": Method(
            "goodness_of_fit.ks_1samp", _same("statistic", "alternative", "grid"), part="dist"
        ),
        "family": Method(
            "goodness_of_fit.ks_family", _same("statistic"), caution=_BY_FIT, part="family"
        ),
        "shares": Method("tables.fit.chisquare", categorical=True, part="shares"),
    },
    "mean": {
        "moments": Method(
            "means.private_mean",
            gaussian=True,
            caution=_BY_AXES,
            about="means of numeric columns",
        ),
        "proportion": Method(
            "tables.binomial.private_share",
            _same("success"),
            outcomes=True,
            about="share of successes in one column",
            part="success",
        ),
        "quantiles": Method(
            "quantiles.private_quantile",
            _same("q", "cells"),
            one_column=True,
            about="a quantile of one column, the median by default",
            part="q",
        ),
    },
    "release": {
        "auto": _synthetic(
            "auto", "what suits the columns", _POINTS | _ROWS, steps=True, tables=True
        ),
        "tables": _synthetic(
            "tables",
            "rows that fit noisy tables of columns and pairs",
            _ROWS,
            steps=True,
            tables=True,
        ),
        "subspace": _synthetic("subspace", "public points, private weights"),
        "features": _synthetic(
            "features",
            "private points and weights, found by a search",
            steps=True,
            caution=_BY_SEARCH,
        ),
    },
}


def usual(question: str) -> str:
    """Return the method that a command takes where none is named: the first one."""
    return next(iter(METHODS[question]))


def such(question: str, holds: Callable[[Method], object]) -> str:
    """Return the names of the methods for which something holds, in words."""
    *names, last = [name for name, entry in METHODS[question].items() if holds(entry)]
    return " or ".join([", ".join(names), last] if names else [last])


def find(question: object, method: object, parts: Collection[str] = ()) -> tuple[str, Method]:
    """Return the method's name and its entry, or say which there are.

    It needs no name where a part of the request chooses it, or where there is one method that
    no part chooses.
    """
    if question is None:
        raise ParameterError(f"question must be given, one of {', '.join(QUESTIONS)}.")
    known = METHODS[one_of("question", question, QUESTIONS)]
    if method is None:
        chosen = [m for m in known if known[m].part in {*parts} - {""}]
        chosen = chosen or [m for m in known if not known[m].part]
        method = chosen[0] if len(chosen) == 1 else None
    if method is None:
        raise ParameterError(f"method must be given, one of {', '.join(known)}.")
    for name, entry in known.items():
        if method in entry.aliases:
            return name, entry
    if not isinstance(method, str) or method not in known:
        # a list, as a document may have one here, is none of them, and has no hash
        others = [name for name, entries in METHODS.items() if method in list(entries)]
        where = f" ({method} belongs to question {', '.join(others)})" if others else ""
        try:
            reject("method", f"one of {', '.join(known)}{where}", method)
        except ParameterError as error:
            raise error.with_flags("Pass --method METHOD.") from None
    return method, known[method]
