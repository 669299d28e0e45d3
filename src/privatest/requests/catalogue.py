"""Methods that can be requested by name.

A method is one entry in :data:`METHODS`. It declares what the signature of its function cannot
say; the command line, the curator, the client and the planner derive the rest from here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from privatest.core.errors import ParameterError
from privatest.core.validation import one_of, reject

if TYPE_CHECKING:
    from privatest.core.privacy import Budget
    from privatest.data.schema import Schema

Question = Literal["two-sample", "independence", "paired", "fit", "mean", "release"]
QUESTIONS: tuple[str, ...] = get_args(Question)
# Which columns play which part, and how groups are formed, by question.
PARTS: Mapping[str, tuple[str, ...]] = {
    "two-sample": ("columns", "group", "groups", "membership", "adjacency", "each_column"),
    "independence": ("x", "y", "given"),
    "paired": ("before", "after"),
    "fit": ("column", "dist", "family", "shares"),
    "mean": ("columns",),
    "release": ("columns",),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Method:
    """A method that answers a question.

    Attributes
    ----------
    function : str
        Module and name of the public function, imported when it is needed.
    about : str
        What it tests or estimates, in a few words for a list of methods.
    part : str
        The part of a request that selects this method where none is named, or "".
    options : mapping of str to str
        From the public name of an option to the function's parameter.
    preset : mapping
        Arguments that this name fixes, where several names share a function.
    public_groups : str
        Why group sizes must be public, or "".
    gaussian : bool
        Whether with delta > 0 it is one Gaussian mechanism, for tighter composition.
    one_column : bool
        Whether it takes one numeric column only, or one on each side.
    unbounded : bool
        Whether its columns need no description: ranks and signs do not depend on bounds.
    aliases : tuple of str
        Other names, such as SciPy's.
    outcomes : bool
        Whether it takes one column of successes and failures.
    categorical : bool
        Whether it takes one categorical column, on each side if there are two.
    caution : str
        Why its running time may depend on values, so that a curator offers it on request only.
    plan : str
        Module and name of the function that plans its measurements, from the request and public
        sizes, or "".
    work : str
        Module and name of the function that counts its steps, from the schema and the number of
        rows, or "".
    sized : bool
        Whether by default it releases as many rows as the data have.
    """

    function: str
    about: str = ""
    part: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    public_groups: str = ""
    gaussian: bool = False
    one_column: bool = False
    unbounded: bool = False
    aliases: tuple[str, ...] = ()
    outcomes: bool = False
    categorical: bool = False
    caution: str = ""
    plan: str = ""
    work: str = ""
    sized: bool = False

    @property
    def method_id(self) -> str:
        """Return the method id of its results."""
        chosen = (self.preset.get(name) for name in ("distance", "method", "statistic"))
        return "/".join([self.function.rpartition(".")[2], *(str(each) for each in chosen if each)])

    def load(self) -> Callable[..., Any]:
        """Import the function."""
        return _load(self.function)

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.load()).parameters

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.load())

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Return the options without a default."""
        return tuple(
            name
            for name, parameter in self.options.items()
            if parameter not in self.preset
            and parameter in self._parameters
            and self._parameters[parameter].default is inspect.Parameter.empty
        )

    @cached_property
    def releases(self) -> tuple[str, ...]:
        """Return what the option ``release`` may be, the usual one first."""
        return _literals(self._hints.get("release")) or ("pvalue", "decision")

    @property
    def level(self) -> bool:
        """Return whether it has a level ``alpha``."""
        return "alpha" in self._parameters

    @property
    def needs_delta(self) -> bool:
        """Return whether delta must be above 0: the parameter has no default."""
        return self._parameters["delta"].default is inspect.Parameter.empty

    @property
    def steps(self) -> bool:
        """Return whether it reports progress."""
        return "progress" in self._parameters

    @property
    def several(self) -> bool:
        """Return whether it compares more than two groups too."""
        kinds = {parameter.kind for parameter in self._parameters.values()}
        return inspect.Parameter.VAR_POSITIONAL in kinds

    @property
    def drawn(self) -> bool:
        """Return whether its result can be plotted; a decision alone cannot."""
        from privatest.core.results import Decision  # noqa: PLC0415

        return "release" in self._parameters or self._hints["return"] is not Decision

    def planned_rounds(
        self, schema: Schema, rows: int, budget: Budget, options: Mapping[str, Any]
    ) -> Any:
        """Return the measurements it would make, if they can be planned."""
        if not self.plan:
            return []
        return _load(self.plan)(schema, rows, budget, self.preset["method"], options)

    def count_work(self, schema: Schema, rows: int) -> int:
        """Return about how many numbers it looks at; 0 if unknown."""
        return int(_load(self.work)(schema, rows)) if self.work else 0


def _load(place: str) -> Callable[..., Any]:
    module, _, name = place.rpartition(".")
    loaded: Callable[..., Any] = getattr(import_module(f"privatest.{module}"), name)
    return loaded


def _literals(hint: Any) -> tuple[str, ...]:
    """Return the strings of a Literal, also inside a union."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(text for part in get_args(hint) for text in _literals(part))


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


def _ipm(distance: str, *options: str, about: str = "") -> Method:
    named = _PERMUTED | _same(*options)
    return Method(
        function="methods.ipm.ipm_test",
        options=named,
        preset={"distance": distance},
        about=about,
    )


def _ks(statistic: str, *sided: str, aliases: tuple[str, ...] = ()) -> Method:
    return Method(
        function="methods.ks.ks_2samp",
        options={"permutations": "n_permutations"} | _same("grid", *sided),
        preset={"statistic": statistic},
        one_column=True,
        unbounded=True,
        aliases=aliases,
        about="one column, exact p-values",
    )


def _rank(function: str, *options: str, aliases: tuple[str, ...] = ()) -> Method:
    return Method(
        function=function,
        options=_same(*options),
        public_groups=_BY_RANKS,
        one_column=True,
        unbounded=True,
        aliases=aliases,
        about=_RANKED,
    )


def _correlation(function: str, about: str, *, unbounded: bool = False) -> Method:
    return Method(
        function=f"methods.{function}",
        options=_same("alternative"),
        one_column=True,
        unbounded=unbounded,
        aliases=(function.rpartition(".")[2],),
        about=about,
    )


def _subsampled(function: str, pvalue: str, scheme: str) -> Method:
    return Method(
        function=f"methods.subsample.{function}",
        options=_SUBTEST,
        preset={"pvalue": pvalue, "scheme": scheme},
        public_groups=_BY_PARTS,
        about="a subtest on parts of the data",
    )


def _embedding(function: str, places: str, *options: str) -> Method:
    named = _same("release", *options, locations=places, bandwidths="bandwidth")
    return Method(
        function=f"methods.embedding.{function}",
        options=named,
        public_groups=_BY_SIZES,
        gaussian=True,
        about="at locations",
    )


def _embedding_permuted(function: str, places: str, *options: str) -> Method:
    named = _PERMUTED | _same(*options, locations=places, bandwidths="bandwidth")
    return Method(
        function=f"methods.embedding.{function}",
        options=named,
        public_groups=_BY_SIZES,
    )


def _symmetry(statistic: str) -> Method:
    return Method(
        function="methods.signs.symmetry_test",
        preset={"statistic": statistic},
        unbounded=True,
        about="any asymmetry",
    )


def _equivalence(function: str, about: str, *options: str, **more: Any) -> Method:
    options = ("low", "high", *options)
    return Method(function=function, options=_same(*options), about=about, **more)


_POINTS = _same("public_points", "weights", "kernel", "bandwidth", points="n_points")
_ROWS = _same("weights", "bins", points="n_points")


def _synthetic(
    method: str,
    about: str,
    options: Mapping[str, str] = _POINTS,
    *,
    caution: str = "",
    tables: bool = False,
) -> Method:
    return Method(
        function="synthetic.release",
        options=options,
        preset={"method": method},
        gaussian=True,
        caution=caution,
        plan="synthetic.tables.planned_rounds" if tables else "",
        work="synthetic.tables.count_steps" if tables else "",
        sized=tables,
        about=about,
    )


METHODS: Mapping[str, Mapping[str, Method]] = {
    "two-sample": {
        "mmd": Method(
            function="methods.mmd.mmd_test",
            options=_PERMUTED
            | _same("kernel", "bandwidths", "estimator", "statistics", computation="method"),
            about="whole distributions, by kernels and more",
        ),
        "mean": _ipm("mean", "norm"),
        "wasserstein": _ipm("wasserstein", "grid"),
        "tv": _ipm("total-variation", about="categories"),
        "kolmogorov": _ipm("kolmogorov", "grid"),
        "ks": _ks("ks", "alternative", aliases=("ks_2samp", "kstest")),
        "kuiper": _ks("kuiper"),
        "mann-whitney": Method(
            function="methods.ranks.mannwhitneyu",
            options=_PERMUTED | _same("alternative"),
            one_column=True,
            unbounded=True,
            aliases=("mannwhitneyu", "ranksums"),
            about=_RANKED,
        ),
        "kruskal": _rank("methods.ranks.kruskal"),
        "median": _rank("methods.ranks.median_test", "alternative", aliases=("median_test",)),
        "hodges-lehmann": Method(
            function="methods.quantiles.hodges_lehmann",
            options=_same("cells"),
            public_groups=_BY_RANKS,
            one_column=True,
            about="the shift of one column, with an interval",
        ),
        "me": _embedding("me_test", "locations", "kernel"),
        "scf": _embedding("scf_test", "frequencies"),
        "me-permutation": _embedding_permuted("me_permutation_test", "locations", "kernel"),
        "scf-permutation": _embedding_permuted("scf_permutation_test", "frequencies"),
        "hotelling": Method(
            function="methods.means.hotelling_test",
            public_groups=_BY_SIZES,
            gaussian=True,
            caution=_BY_AXES,
            about="means",
        ),
        "ttest": Method(
            function="methods.means.ttest_ind",
            options=_same("alternative", "calibration"),
            public_groups=_BY_SIZES,
            gaussian=True,
            one_column=True,
            aliases=("t-test", "ttest_ind"),
            about="one mean",
        ),
        "tost": _equivalence(
            "methods.means.tost_ind",
            "equivalence of one mean",
            "calibration",
            public_groups=_BY_SIZES,
            gaussian=True,
            one_column=True,
            aliases=("tost_ind",),
        ),
        "proportion": Method(
            function="methods.proportions.proportions_test",
            options=_same("alternative", "success"),
            outcomes=True,
            aliases=("proportions_test",),
            about="shares of successes",
        ),
        "tost-proportion": _equivalence(
            "methods.proportions.tost_proportions",
            "equivalence of shares",
            "success",
            outcomes=True,
            aliases=("tost_proportions",),
        ),
        "anova": Method(
            function="methods.anova.f_oneway",
            options=_same("calibration"),
            public_groups=_BY_SIZES,
            gaussian=True,
            one_column=True,
            aliases=("f_oneway",),
            about="means of several groups",
        ),
        "tot": _subsampled("test_of_tests", "mmd", "two-sample"),
        "sarrm": _subsampled("sarrm_test", "mmd", "two-sample"),
    },
    "independence": {
        "hsic": Method(
            function="methods.hsic.hsic_test",
            options=_PERMUTED | _same("kernel", "bandwidths", "estimator", "statistics"),
            about="any dependence, by kernels and more",
        ),
        "kendall": _correlation(
            "correlation.kendalltau", "one column a side, by pairs", unbounded=True
        ),
        "spearman": _correlation(
            "correlation.spearmanr", "one column a side, by ranks", unbounded=True
        ),
        "pearson": _correlation("regression.pearsonr", "one column a side, by the covariance"),
        "slope": _correlation("regression.linregress", "of y on x, by the covariance"),
        "chi2": Method(
            function="methods.tables.chi2_contingency",
            categorical=True,
            aliases=("chi2_contingency",),
            about="two categorical columns, with their table",
        ),
        "gcm": Method(
            function="methods.conditional.conditional_independence_test",
            options=_same("cells"),
            caution=_BY_CELLS,
            about="one column and another, given more columns",
            part="given",
        ),
        "tot": _subsampled("test_of_tests", "hsic", "independence"),
        "sarrm": _subsampled("sarrm_test", "hsic", "independence"),
    },
    "paired": {
        "ks": _symmetry("ks"),
        "kuiper": _symmetry("kuiper"),
        "sign": Method(
            function="methods.signs.sign_test", options=_same("alternative"), unbounded=True
        ),
        "wilcoxon": Method(
            function="methods.signs.wilcoxon",
            options=_same("alternative"),
            unbounded=True,
            about="signed ranks",
        ),
        "ttest": Method(
            function="methods.means.ttest_rel",
            options=_same("alternative", "calibration"),
            gaussian=True,
            aliases=("t-test", "ttest_rel"),
            about="the mean; needs bounds",
        ),
        "tost": _equivalence(
            "methods.means.tost_rel",
            "equivalence of the mean; needs bounds",
            "calibration",
            gaussian=True,
            aliases=("tost_rel",),
        ),
    },
    "fit": {
        "distribution": Method(
            function="methods.ks.ks_1samp",
            options=_same("statistic", "alternative", "grid"),
            part="dist",
        ),
        "family": Method(
            function="methods.fit_families.ks_family",
            options=_same("statistic"),
            caution=_BY_FIT,
            part="family",
        ),
        "shares": Method(function="methods.tables.chisquare", categorical=True, part="shares"),
    },
    "mean": {
        "moments": Method(
            function="methods.means.private_mean",
            gaussian=True,
            caution=_BY_AXES,
            about="means of numeric columns",
        ),
        "proportion": Method(
            function="methods.proportions.private_share",
            options=_same("success"),
            outcomes=True,
            about="share of successes in one column",
            part="success",
        ),
        "quantiles": Method(
            function="methods.quantiles.private_quantile",
            options=_same("q", "cells"),
            one_column=True,
            about="a quantile of one column, the median by default",
            part="q",
        ),
    },
    "release": {
        "auto": _synthetic("auto", "what suits the columns", _POINTS | _ROWS, tables=True),
        "tables": _synthetic(
            "tables",
            "rows that fit noisy tables of columns and pairs",
            _ROWS,
            tables=True,
        ),
        "subspace": _synthetic("subspace", "public points, private weights"),
        "features": _synthetic(
            "features",
            "private points and weights, found by a search",
            caution=_BY_SEARCH,
        ),
    },
}


def default_method(question: str) -> str:
    """Return the method that a command uses by default: the first one."""
    return next(iter(METHODS[question]))


def methods_where(question: str, holds: Callable[[Method], object]) -> str:
    """Return the names of the methods for which something holds, in words."""
    *names, last = [name for name, entry in METHODS[question].items() if holds(entry)]
    return " or ".join([", ".join(names), last] if names else [last])


def find(question: object, method: object, parts: Collection[str] = ()) -> tuple[str, Method]:
    """Return the method's name and its entry, or raise an error that lists the methods.

    The method may be None where a part of the request selects one, or where only one method is
    selected by no part.
    """
    if question is None:
        raise ParameterError("question", f"must be given, one of {', '.join(QUESTIONS)}")
    known = METHODS[one_of("question", question, QUESTIONS)]
    if method is None:
        selected = [name for name, entry in known.items() if entry.part in {*parts} - {""}]
        selected = selected or [name for name, entry in known.items() if not entry.part]
        method = selected[0] if len(selected) == 1 else None
    if method is None:
        raise ParameterError("method", f"must be given, one of {', '.join(known)}")
    for name, entry in known.items():
        # a document may hold a list here, which has no hash
        if method == name or method in entry.aliases:
            return name, entry
    others = [name for name, entries in METHODS.items() if method in list(entries)]
    where = f" ({method} belongs to question {', '.join(others)})" if others else ""
    reject("method", f"one of {', '.join(known)}{where}", method, remedy={"method": ""})
