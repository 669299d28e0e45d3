"""What can be asked for by name, and what each method takes.

A new test is one entry here: the command line and the curator need no change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from privatest.core.errors import ParameterError
from privatest.core.validation import one_of, reject

if TYPE_CHECKING:
    from privatest.core.privacy import Budget
    from privatest.data.schema import Schema

__all__ = ["METHODS", "QUESTIONS", "Method", "Question", "find", "such", "usual"]

Question = Literal["two-sample", "independence", "paired", "fit", "mean", "release"]
QUESTIONS: tuple[str, ...] = get_args(Question)


@dataclass(frozen=True, slots=True)
class Method:
    """One way to answer a question.

    Attributes
    ----------
    function : str
        Module and name of the test, loaded when it is needed.
    about : str
        What it looks at, in a few words for a list of methods.
    part : str
        The part of a request that chooses this method where none is named, or "".
    options : mapping of str to str
        What it takes besides the data, the budget and the level: the option's public name, and
        the function's parameter.
    preset : mapping
        Arguments that it always gets.
    public_groups : str
        Why it needs public group sizes, or "" if it can do without.
    gaussian : bool
        Whether with delta > 0 it is one analytic Gaussian mechanism, which composes better.
    one_column : bool
        Whether it compares one numeric column only.
    outcomes : bool
        Whether it looks at one column of successes and failures: 0 and 1, or categories.
    needed : tuple of str
        Options that must be given.
    releases : tuple of str
        What the option ``release`` may be.
    level : bool
        Whether it has a level ``alpha``.
    needs_delta : str
        Why delta has to be above 0, or "" if it may be 0.
    caution : str
        Why a curator offers it only if its custodian names it, or "" if it is always offered:
        an analyst can watch how long an answer takes.
    steps : bool
        Whether it takes long and can tell how far it is (a parameter ``progress``).
    picture : str
        Module and name of the function that draws what was released, or "" if there is none.
    foretold : str
        Module and name of the function that says what would be measured and with how much
        noise, from the request and public sizes, or "" if there is none.
    work : str
        Module and name of the function that counts its steps, from the request and public
        sizes, or "" if it is quick or the curator knows how to count them.
    sized : bool
        Whether a release has as many rows as the data where nobody says how many.
    """

    function: str
    options: Mapping[str, str] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    public_groups: str = ""
    gaussian: bool = False
    one_column: bool = False
    outcomes: bool = False
    needed: tuple[str, ...] = ()
    releases: tuple[str, ...] = ("pvalue", "decision")
    level: bool = True
    needs_delta: str = ""
    caution: str = ""
    steps: bool = False
    picture: str = ""
    foretold: str = ""
    work: str = ""
    sized: bool = False
    about: str = ""
    part: str = ""

    def load(self) -> Callable[..., Any]:
        """Import the function."""
        return _load(self.function)

    def load_picture(self) -> Callable[..., Any]:
        """Import what draws the picture."""
        return _load(self.picture)

    def foretell(self, schema: Schema, rows: int, budget: Budget, given: Collection[str]) -> Any:
        """Return what would be measured, if there is anything to say before."""
        if not self.foretold:
            return []
        return _load(self.foretold)(schema, rows, budget, self.preset["method"], given)

    def count_work(self, schema: Schema, rows: int) -> int:
        """Return about how many numbers it looks at; 0 if nobody counts them here."""
        return int(_load(self.work)(schema, rows)) if self.work else 0


def _load(place: str) -> Callable[..., Any]:
    module, _, name = place.rpartition(".")
    loaded: Callable[..., Any] = getattr(import_module(f"privatest.{module}"), name)
    return loaded


def _same(*names: str, **renamed: str) -> dict[str, str]:
    return {name: name for name in names} | renamed


_PERMUTED = _same("release", permutations="n_permutations")
_SUBTEST = {"subtest": "pvalue", "permutations": "n_permutations"}
_BY_PARTS = "it cuts each group into parts by its size"
_RANKED = "one column, by ranks"
_BY_RANKS = "its p-value needs the group sizes"
_BY_SIZES = "its noise and its statistic need the group sizes"
_BY_AXES = "the time to draw the axes of a covariance depends on values"
_BY_FIT = "the time of an exact fit depends on values"
_BY_SEARCH = "its search may take minutes; what it starts from is private already"
_DIFFERENCES = "plots.differences.plot_differences"
_BY_GAUSSIAN = (
    "synthetic data needs Gaussian noise on many coefficients, which is not private for any "
    "epsilon alone. Choose delta well below 1 divided by the number of rows, for example 1e-6"
)


def _ipm(distance: str, *options: str, about: str = "") -> Method:
    named = _PERMUTED | _same(*options)
    return Method("two_sample.ipm.ipm_test", named, {"distance": distance}, about=about)


def _ks(statistic: str) -> Method:
    options = {"permutations": "n_permutations"}
    preset = {"statistic": statistic}
    words = "one column, exact p-values"
    return Method("two_sample.ks.ks_2samp", options, preset, one_column=True, about=words)


def _rank(function: str, *options: str) -> Method:
    return Method(
        f"two_sample.{function}",
        _same(*options),
        public_groups=_BY_RANKS,
        one_column=True,
        about=_RANKED,
    )


def _subsampled(function: str, pvalue: str, scheme: str) -> Method:
    preset = {"pvalue": pvalue, "scheme": scheme}
    return Method(
        f"any_test.{function}",
        _SUBTEST,
        preset,
        public_groups=_BY_PARTS,
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
        picture="plots.features.plot_features",
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
    return Method("paired.symmetry_test", preset=preset, about="any asymmetry")


_POINTS = _same("public_points", "weights", "kernel", "bandwidth", points="n_points")
_ROWS = _same("weights", points="n_points")


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
        picture="plots.marginals.plot_marginals",
        foretold="synthetic.tables_plan.foretell" if tables else "",
        work="synthetic.tables_plan.count_steps" if tables else "",
        sized=tables,
        about=about,
    )


METHODS: Mapping[str, Mapping[str, Method]] = {
    "two-sample": {
        "mmd": Method(
            "two_sample.mmd.mmd_test",
            _PERMUTED
            | _same("kernel", "bandwidths", "estimator", "statistics", computation="method"),
            about="whole distributions, by kernels and more",
        ),
        "mean": _ipm("mean", "norm"),
        "wasserstein": _ipm("wasserstein"),
        "tv": _ipm("total-variation", about="categories"),
        "kolmogorov": _ipm("kolmogorov"),
        "ks": _ks("ks"),
        "kuiper": _ks("kuiper"),
        "mann-whitney": Method(
            "two_sample.ranks.mannwhitneyu",
            _PERMUTED | _same("alternative"),
            one_column=True,
            about=_RANKED,
        ),
        "kruskal": _rank("kruskal_wallis.kruskal"),
        "median": _rank("ranks.median_test", "alternative"),
        "me": _embedding("embedding.me_test", "locations", "kernel"),
        "scf": _embedding("embedding.scf_test", "frequencies"),
        "me-permutation": _embedding_permuted("me_permutation_test", "locations", "kernel"),
        "scf-permutation": _embedding_permuted("scf_permutation_test", "frequencies"),
        "hotelling": Method(
            "means.hotelling.hotelling_test",
            public_groups=_BY_SIZES,
            gaussian=True,
            caution=_BY_AXES,
            picture=_DIFFERENCES,
            about="means",
        ),
        "ttest": Method(
            "means.ttest.ttest_ind",
            _same("alternative"),
            public_groups=_BY_SIZES,
            gaussian=True,
            one_column=True,
            picture=_DIFFERENCES,
            about="one mean",
        ),
        "proportion": Method(
            "tables.proportions.proportions_test",
            _same("alternative", "success"),
            outcomes=True,
            about="shares of successes",
        ),
        "tot": _subsampled("test_of_tests", "mmd", "two-sample"),
        "sarrm": _subsampled("sarrm_test", "mmd", "two-sample"),
    },
    "independence": {
        "hsic": Method(
            "independence.hsic_test",
            _PERMUTED | _same("kernel", "bandwidths", "estimator", "statistics"),
            about="any dependence, by kernels and more",
        ),
        "tot": _subsampled("test_of_tests", "hsic", "independence"),
        "sarrm": _subsampled("sarrm_test", "hsic", "independence"),
    },
    "paired": {
        "ks": Method("paired.symmetry_test", preset={"statistic": "ks"}, about="any asymmetry"),
        "kuiper": Method(
            "paired.symmetry_test", preset={"statistic": "kuiper"}, about="any asymmetry"
        ),
        "sign": Method("paired.sign_test", _same("alternative")),
        "wilcoxon": Method("paired.wilcoxon", _same("alternative"), about="signed ranks"),
    },
    "fit": {
        "distribution": Method("goodness_of_fit.ks_1samp", _same("statistic"), part="dist"),
        "family": Method(
            "goodness_of_fit.ks_family", _same("statistic"), caution=_BY_FIT, part="family"
        ),
    },
    "mean": {
        "moments": Method(
            "means.private_mean",
            gaussian=True,
            caution=_BY_AXES,
            picture="plots.differences.plot_means",
            about="means of numeric columns",
        ),
        "proportion": Method(
            "tables.binomial.private_share",
            _same("success"),
            outcomes=True,
            picture="plots.differences.plot_means",
            about="share of successes in one column",
        ),
    },
    "release": {
        "auto": _synthetic("auto", "what suits the columns", steps=True, tables=True),
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

    It needs no name where there is one method, or where a part of the request chooses it.
    """
    if question is None:
        raise ParameterError(f"question must be given, one of {', '.join(QUESTIONS)}.")
    known = METHODS[one_of("question", question, QUESTIONS)]
    if method is None:
        chosen = [m for m in known if len(known) == 1 or known[m].part in {*parts} - {""}]
        method = chosen[0] if len(chosen) == 1 else None
    if method is None:
        raise ParameterError(f"method must be given, one of {', '.join(known)}.")
    if not isinstance(method, str) or method not in known:
        try:
            reject("method", f"one of {', '.join(known)}", method)
        except ParameterError as error:
            raise error.with_flags("Pass --method METHOD.") from None
    return method, known[method]
