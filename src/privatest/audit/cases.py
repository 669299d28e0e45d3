"""What is audited: every method on made-up people, and the mechanisms by themselves.

A case of the catalogue is a request as a curator would admit it, so that reading, encoding,
grouping and the test itself are all attacked.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, PermutationSensitivity, Sensitivity
from privatest.curator.admission import admit
from privatest.curator.config import ALL_TESTS, DatasetConfig, Policy
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.mechanisms.additive import (
    count_noise,
    gaussian,
    laplace,
    linf_mean,
    noisy_argmax,
    noisy_counts,
    select_candidate,
    signed_sums,
)
from privatest.mechanisms.covariance import covariance_ed
from privatest.mechanisms.lattice import noise_law, noisy_cumulative, noisy_integer
from privatest.mechanisms.permutation import (
    LevelShare,
    any_rejects,
    smoothed_decision,
    smoothed_pvalue,
)
from privatest.mechanisms.subsample import sarrm_parameters, sarrm_rejects
from privatest.methods.conditional import conditional_randomisation_test
from privatest.methods.custom import permutation_test
from privatest.methods.means import hotelling_1samp, private_covariance, ttest_1samp
from privatest.methods.mmd import mmd_test
from privatest.methods.proportions import binom_test
from privatest.methods.quantiles import private_median
from privatest.methods.shares import share
from privatest.numerics.order import Tree
from privatest.requests.catalogue import METHODS
from privatest.requests.request import Request

if TYPE_CHECKING:
    import pyarrow as pa

Bounds = Literal["unit", "offset", "wide", "missing"]


def _schema(low: float, high: float, missing: float | Literal["refuse"] = "refuse") -> Schema:
    filled = missing != "refuse"
    return Schema(
        {
            "x": NumericColumn(low, high, missing=missing),
            "y": NumericColumn(low, high, missing=missing),
            "count": NumericColumn(0.0, 4.0, integer=True, missing=0 if filled else "refuse"),
            "colour": CategoricalColumn(
                ("red", "green", "blue"), missing="red" if filled else "refuse"
            ),
            "yes": CategoricalColumn(("no", "yes"), missing="no" if filled else "refuse"),
            "group": CategoricalColumn(("a", "b")),
            "arm": CategoricalColumn(("a", "b"), membership="public"),
        }
    )


def with_three_groups(schema: Schema) -> Schema:
    """Return the schema with a third group, private and public."""
    three = {
        "group": CategoricalColumn(("a", "b", "c")),
        "arm": CategoricalColumn(("a", "b", "c"), membership="public"),
    }
    return replace(schema, columns={**schema.columns, **three})


SCHEMAS: Mapping[Bounds, Schema] = {
    "unit": _schema(0.0, 1.0),
    "offset": _schema(1e9, 1e9 + 1),  # a width of 2^-30 of the values
    "wide": _schema(-(2.0**40), 2.0**40),
    "missing": _schema(0.0, 1.0, 0.5),  # a missing value has a public meaning
}

Floats = NDArray[np.float64]
Replaced = Literal["a row", "two rows of a person", "a row of each group"]

_DELTA = 1e-3  # where a method needs it: large, so that an audit can see it
_COLUMNS: dict[str, dict[str, Any]] = {
    "two-sample": {"columns": ["x"]},
    "independence": {"x": ["x"], "y": ["y"]},
    "paired": {"before": "x", "after": "y"},
    "fit": {"column": "x"},
    "mean": {"columns": ["x", "y"]},
    "release": {"columns": ["x", "colour"]},
}
_ONE_ROW = {  # they refuse more, or are told the sensitivity by whoever calls them
    "sarrm",
    "permutation_test",
    "permutation_test, naive",
}
_ORDERED = {  # by values, in passes where there are many rows
    *(f"two-sample/{method}" for method in ("ks", "kuiper", "mann-whitney", "kruskal", "median")),
    *(f"paired/{method}" for method in ("ks", "kuiper", "wilcoxon")),
}
_LARGER = {"tot", "sarrm", "gcm"}  # they cut the rows, or each group, into parts


@dataclass(frozen=True, slots=True)
class Case:
    """A test as it is asked for.

    Attributes
    ----------
    name : str
        Question and method, and where there are two ways, which membership.
    function : str
        The public function.
    budget : Budget
        What it claims to cost.
    schema : Schema
        What is publicly known of the columns.
    columns : tuple of str
        What it reads.
    call : callable
        From a table, a noise source and public randomness to a result.
    rows : int
        The least number of rows on which it does anything.
    caution : str
        Why its time is not promised, "" if it is.
    composed : bool
        Whether losses of its mechanisms add up; not where only a part of what they draw leaves.
    replaces : str
        What neighbours differ by.
    plain : bool
        Whether all attacks are made; if not, those on numbers before noise: nothing else differs
        from the plain case.
    """

    name: str
    function: str
    budget: Budget
    schema: Schema
    columns: tuple[str, ...]
    call: Callable[[Any, NoiseSource, int | None], Any] = field(repr=False)
    rows: int = 12
    caution: str = ""
    composed: bool = True
    replaces: Replaced = "a row"
    plain: bool = True

    @property
    def private_groups(self) -> bool:
        """Whether a person can change their group."""
        return "group" in self.columns

    @property
    def public_groups(self) -> bool:
        """Whether rows lie in groups of public sizes."""
        return "arm" in self.columns

    @property
    def asked(self) -> str:
        """What to ask for to get it, as in :data:`NAMES`; "" for one that is not there."""
        return request_name(self.name)

    def other(self, bounds: Bounds = "unit", epsilon: float | None = None) -> Case:
        """Return the same with other bounds or another budget, where it is one of :data:`NAMES`."""
        epsilon = self.budget.as_floats[0] if epsilon is None else epsilon
        found = cases(self.asked, epsilon, bounds) if self.asked else iter([self])
        return next(each for each in found if each.name == self.name)

    def run(self, table: pa.Table, noise: NoiseSource, *, rng: int | None = None) -> Any:
        """Answer; ``rng`` is public randomness, where there is any."""
        return self.call(table, noise, rng)


@dataclass(frozen=True, slots=True)
class _FunctionCall:
    """The arguments of a public function that the catalogue does not have."""

    table: pa.Table
    schema: Schema
    spend: Mapping[str, Any]  # epsilon, delta and noise
    rng: int | None

    def read(self, *names: str) -> dict[str, Any]:
        """Return columns, and the schema by which a function reads them."""
        return {"x": self.table.select(list(names)), "bounds": self.schema.select(list(names))}

    def unit(self) -> Floats:
        """Return x on [0, 1]."""
        codes: Floats = self.schema.select(["x"]).encode(self.table.select(["x"]))[:, 0]
        return codes

    def middle(self) -> float:
        """Return the middle of the bounds of x."""
        return sum(_bounds(self.schema)) / 2


def _python_case(name: str, epsilon: float, schema: Schema) -> Case:
    columns, function = _PYTHON[name]
    schema = with_three_groups(schema) if "three" in name else schema
    delta = _DELTA if name == "share" else 0.0
    axes = name in ("hotelling_1samp", "private_covariance")

    def run(table: pa.Table, noise: NoiseSource, rng: int | None) -> Any:
        spend = {"epsilon": epsilon, "delta": delta, "noise": noise}
        return function(_FunctionCall(table, schema, spend, rng))

    return Case(
        f"python/{name}",
        name.partition(",")[0],
        Budget(epsilon, delta),
        schema,
        columns,
        run,
        caution="the time to draw the axes of a covariance depends on values" if axes else "",
    )


def _bounds(schema: Schema) -> tuple[float, float]:
    column = schema.columns["x"]
    if not isinstance(column, NumericColumn):
        raise AssertionError("x is a number")
    return column.lower, column.upper


def _width(schema: Schema) -> float:
    low, high = _bounds(schema)
    return high - low


def _given_colour(u: Floats, z: Floats, *, bounds: tuple[float, float]) -> Floats:
    """Return x given the colour: uniform, and wider for some colours."""
    low, high = bounds
    return low + (high - low) * u * (1.0 + np.ravel(z)) / 3.0


def _randomisation(call: _FunctionCall) -> Any:
    colours = call.schema.columns["colour"].categories  # type: ignore[union-attr]
    z = [colours.index(colour or "red") for colour in call.table.column("colour").to_pylist()]
    x, y = call.read("x"), call.read("y")
    return conditional_randomisation_test(
        x["x"],
        y["x"],
        np.array(z, float),
        partial(_given_colour, bounds=_bounds(call.schema)),
        bounds_x=x["bounds"],
        bounds_y=y["bounds"],
        n_resamples=9,
        rng=call.rng,
        **call.spend,
    )


def _three_samples(call: _FunctionCall, group: str) -> Any:
    """Compare three samples; private ones come in other orders of columns, and [] for none.

    Without a schema nothing but the names of the columns says which is which.
    """
    import pyarrow.compute as pc  # noqa: PLC0415

    table, schema = call.table, call.schema
    known = schema.columns[group].categories  # type: ignore[union-attr]
    private, samples = group == "group", []
    for place, label in enumerate(known):
        rows = table.filter(pc.equal(table.column(group), label))
        names = ["y", "x"] if private and place % 2 else ["x", "y"]
        samples.append(rows.select(names) if len(rows) or not private else [])
    described = schema.rows_per_person > 1 or schema.columns["x"].missing != "refuse"
    return mmd_test(
        *samples,
        bounds=schema.select(["x", "y"]) if described or not private else _bounds(schema),
        adjacency="row" if private else "one",
        n_permutations=9,
        rng=call.rng,
        **call.spend,
    )


def _mean_difference(x: Floats, y: Floats) -> float:
    return float(abs(np.mean(x) - np.mean(y)))


def _permutation(call: _FunctionCall, how: str) -> Any:
    first, x = np.array(call.table.column("arm").to_pylist()) == "a", call.unit()
    options: dict[str, Any] = {"privatization": how, **call.spend}
    return permutation_test(
        (x[first], x[~first]),
        _mean_difference,
        sensitivity=1.0 / min(first.sum(), (~first).sum()),
        bounds=(0.0, 1.0),
        n_permutations=19 if how == "naive" else 9,  # ranks below alpha need as many
        rng=call.rng,
        check_sensitivity=False,
        **options,
    )


def _median_window(call: _FunctionCall) -> Any:
    """Return a median of enough rows for a window: those of the table, and public ones."""
    low, high = _bounds(call.schema)
    count = math.ceil(150 * call.schema.rows_per_person / call.spend["epsilon"])
    x = np.concatenate([call.unit(), np.linspace(0, 1, count)])
    rows = {"x": low + (high - low) * x}
    return private_median(rows, bounds=call.schema.select(["x"]), **call.spend)


_PYTHON: dict[str, tuple[tuple[str, ...], Callable[[_FunctionCall], Any]]] = {
    "binom_test": (
        ("count",),
        lambda call: binom_test(**call.read("count"), success=4, **call.spend),
    ),
    "conditional_randomisation_test": (("x", "y", "colour"), _randomisation),
    "hotelling_1samp": (
        ("x", "y"),
        lambda call: hotelling_1samp(
            **call.read("x", "y"), mean=[call.middle()] * 2, rng=call.rng, **call.spend
        ),
    ),
    "mmd_test, three private groups": (
        ("x", "y", "group"),
        lambda call: _three_samples(call, "group"),
    ),
    "mmd_test, three public groups": (("x", "y", "arm"), lambda call: _three_samples(call, "arm")),
    "permutation_test": (("x", "arm"), lambda call: _permutation(call, "smoothed")),
    "permutation_test, naive": (("x", "arm"), lambda call: _permutation(call, "naive")),
    "private_covariance": (
        ("x", "y"),
        lambda call: private_covariance(**call.read("x", "y"), rng=call.rng, **call.spend),
    ),
    "private_median": (
        ("x",),
        lambda call: private_median(**call.read("x"), cells=16, **call.spend),
    ),
    "private_median, window": (("x",), _median_window),
    "share": (
        ("x", "y"),
        lambda call: share(**call.read("x", "y"), locations=3, rng=call.rng or 0, **call.spend),
    ),
    "ttest_1samp": (
        ("x",),
        lambda call: ttest_1samp(
            **call.read("x"), popmean=call.middle(), rng=call.rng, **call.spend
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class _UnitRows:
    """The numbers of the made-up rows on [0, 1], and what a mechanism spends.

    The neighbours that a search finds move them by the whole sensitivity.
    """

    x: Floats
    y: Floats
    budget: Budget
    noise: NoiseSource

    @property
    def epsilon(self) -> float:
        return float(self.budget.epsilon)

    @property
    def rest(self) -> dict[str, Any]:
        return {"budget": self.budget, "noise": self.noise}

    @property
    def step(self) -> float:
        return 1 / len(self.x) * (1 + 1e-12)  # a mean of n floats errs by less

    @property
    def opposite(self) -> tuple[float, float]:
        """Two means: one rises as the other falls."""
        return float(self.x.mean()), float(1 - self.x.mean())

    @property
    def above(self) -> int:
        return int((self.x > 0.5).sum())

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.bincount(np.minimum((4 * self.x).astype(int), 3), minlength=4)


def _mechanism_case(name: str, epsilon: float, schema: Schema) -> Case:
    budget, function = Budget(epsilon, _DELTA if name == "gaussian" else 0.0), _MECHANISMS[name]

    def run(table: pa.Table, noise: NoiseSource, rng: int | None) -> Any:
        del rng
        codes = schema.select(["x", "y"]).encode(table.select(["x", "y"]))
        return function(_UnitRows(codes[:, 0], codes[:, 1], budget, noise))

    return Case(
        f"mechanism/{name}",
        name,
        budget,
        schema,
        ("x", "y"),
        run,
        caution="the time to draw axes depends on values" if name == "covariance" else "",
        composed=name != "argmax",
    )


def _add_gaussian(given: _UnitRows) -> Any:
    means = np.array([given.x.mean(), given.y.mean()])
    return gaussian(means, sensitivity=Sensitivity(np.sqrt(2) * given.step, "l2"), **given.rest)


def _add_linf(given: _UnitRows) -> Any:
    means = np.array([given.x.mean(), given.y.mean()])
    return linf_mean(means, sensitivity=given.step, epsilon=given.epsilon, noise=given.noise)


def _add_signed_sums(given: _UnitRows) -> Any:
    means = np.array(given.opposite)
    return signed_sums(means, sensitivity=given.step, epsilon=given.epsilon, noise=given.noise)


def _release_covariance(given: _UnitRows) -> Any:
    rows = np.column_stack([given.x, given.y]) / np.sqrt(2)
    n, noise = len(rows), given.noise
    return covariance_ed(rows.T @ rows, n=n, epsilon=given.epsilon, error=1e-13 * n, noise=noise)


def _select(given: _UnitRows) -> Any:
    scores = np.array([given.above, len(given.x) - given.above])  # one rises as the other falls
    return select_candidate(scores, np.ones(2, dtype=np.int64), sensitivity=1, **given.rest)


def _statistics(x: Floats) -> tuple[Floats, PermutationSensitivity]:
    """Return one observed statistic, and permuted ones which move against it."""
    observed, permuted = float(x.mean()), float(1 - x.mean())
    bound = 1 / len(x) * (1 + 1e-12)
    return np.array([observed, *[permuted] * 19]), PermutationSensitivity(bound, bound)


def _smoothed_pvalue(given: _UnitRows) -> Any:
    statistics, bound = _statistics(given.x)
    return smoothed_pvalue(statistics, sensitivity=bound, **given.rest)


def _smoothed_decision(given: _UnitRows) -> Any:
    statistics, bound = _statistics(given.x)
    return smoothed_decision(statistics, 0.05, sensitivity=bound, **given.rest)


def _one_draw(given: _UnitRows) -> Any:
    tests = [LevelShare(*_statistics(x), Fraction(1, 2)) for x in (given.x, given.y)]
    return any_rejects(tests, 0.1, **given.rest)


def _flip_coins(given: _UnitRows) -> Any:
    parameters = sarrm_parameters(given.epsilon, 0.05)
    rejections = [False] * (parameters.n_subsets - 1)
    return sarrm_rejects([*rejections, bool(given.x[0] > 0.5)], parameters, given.noise)


_MECHANISMS: dict[str, Callable[[_UnitRows], Any]] = {
    "laplace": lambda given: laplace(
        given.opposite[0], sensitivity=Sensitivity(given.step), **given.rest
    ),
    "gaussian": _add_gaussian,
    "l-infinity": _add_linf,
    "signed sums": _add_signed_sums,
    "covariance": _release_covariance,
    "counts": lambda given: noisy_counts(
        given.counts, law=count_noise(4, given.budget), **given.rest
    ),
    "cumulative": lambda given: noisy_cumulative(
        given.counts, Tree(4, 2, 2), moved=1, **given.rest
    ),
    "exponential": _select,
    "tulap": lambda given: noisy_integer(
        given.above, law=noise_law(1, given.budget, "auto"), noise=given.noise
    ),
    "smoothed p-value": _smoothed_pvalue,
    "smoothed decision": _smoothed_decision,
    "one draw": _one_draw,
    "flipped coins": _flip_coins,
    "argmax": lambda given: noisy_argmax(
        given.opposite, sensitivity=Sensitivity(given.step), **given.rest
    ),
}


NAMES: tuple[str, ...] = (
    *(f"{q}/{m}" for q, methods in METHODS.items() for m in methods),
    *(f"python/{name}" for name in _PYTHON),
    *(f"mechanism/{name}" for name in _MECHANISMS),
)


def request_name(case: str) -> str:
    """Return the name by which a case is asked for, "" if there is none."""
    fitting = [name for name in NAMES if case == name or case.startswith(f"{name}, ")]
    return max(fitting, key=len, default="")


def matching_names(words: list[str]) -> list[str]:
    """Return the names that are meant: a name, a question, or a public function."""
    found: list[str] = []
    for word in words:
        own = [name for name in NAMES if word in (name, name.partition("/")[0], *_functions(name))]
        if not own:
            raise ParameterError(
                f"TEST must be a public function, a question or one of {', '.join(NAMES)}."
            )
        found += [name for name in own if name not in found]
    return found


def _functions(name: str) -> tuple[str, ...]:
    question, _, method = name.partition("/")
    if question == "python":
        return (method, method.partition(",")[0])
    if question == "mechanism":
        return (method,)
    return (METHODS[question][method].function.__name__,)


def cases(name: str, epsilon: float, bounds: Bounds = "unit") -> Iterator[Case]:
    """Return the cases of a method: private and public groups, and neighbours of every kind."""
    if name not in NAMES:
        raise ParameterError(f"TEST must be one of {', '.join(NAMES)}.")
    schema, (question, _, method) = SCHEMAS[bounds], name.partition("/")
    yield from _by_a_row(name, epsilon, schema)
    if question != "mechanism" and method not in _ONE_ROW:
        person = replace(schema, rows_per_person=2)
        yield from _differing(_by_a_row(name, epsilon, person), "two rows of a person")
    if question == "two-sample" and method not in _ONE_ROW:
        found = _catalogue_cases(question, method, epsilon, schema, adjacency="both")
        yield from _differing(found, "a row of each group")
    if name in _ORDERED:
        from privatest.audit.coupling import in_passes  # noqa: PLC0415

        for case in _by_a_row(name, epsilon, schema):
            if not case.private_groups:  # those are permuted, in memory
                yield in_passes(case)


def _differing(found: Iterator[Case], by: Replaced) -> Iterator[Case]:
    for case in found:
        yield replace(case, name=f"{case.name}, {by}", replaces=by, plain=False)


def _by_a_row(name: str, epsilon: float, schema: Schema) -> Iterator[Case]:
    """Return the cases whose neighbours differ as the schema says and in one group."""
    question, _, method = name.partition("/")
    if question == "python":
        yield _python_case(method, epsilon, schema)
    elif question == "mechanism":
        yield _mechanism_case(method, epsilon, schema)
    else:
        yield from _catalogue_cases(question, method, epsilon, schema)


def _catalogue_cases(
    question: str, method: str, epsilon: float, schema: Schema, **parts: str
) -> Iterator[Case]:
    entry = METHODS[question][method]
    request = {"question": question, "method": method, "epsilon": epsilon, "dataset": "people"}
    request |= {"delta": _DELTA} if entry.needs_delta else {}
    request |= _parts(question, method, schema) | _options(question, method, schema)
    name = f"{question}/{method}"
    if question != "two-sample":
        yield _catalogue_case(name, Request.from_dict(request), schema)
        return
    for group in ("arm",) if entry.public_groups or parts else ("group", "arm"):
        kind = "private groups" if group == "group" else "public groups"
        asked = Request.from_dict({**request, "group": group, **parts})
        yield _catalogue_case(f"{name}, {kind}", asked, schema)


def _catalogue_case(name: str, request: Request, schema: Schema) -> Case:
    dataset = DatasetConfig("people", "", schema, Budget(10**6, "0.5"), policy=Policy(ALL_TESTS))
    prepared, entry = admit(request, dataset), request.entry
    takes_rng = "rng" in inspect.signature(entry.function).parameters

    def call(table: pa.Table, noise: NoiseSource, rng: int | None) -> Any:
        return prepared.run(table, noise=noise, **({"rng": rng} if takes_rng else {}))

    return Case(
        name,
        entry.function.__name__,
        request.budget,
        schema,
        tuple(prepared.reads),
        call,
        80 if request.method in _LARGER else 12,
        entry.caution,
    )


def _parts(question: str, method: str, schema: Schema) -> dict[str, Any]:
    entry, parts = METHODS[question][method], dict(_COLUMNS[question])
    if method == "tv" or (question == "two-sample" and entry.categorical):
        parts = {"columns": ["colour"]}
    elif entry.outcomes:
        parts = {"columns": ["count"]}
    elif method == "mmd":
        parts = {"columns": ["x", "colour"]}
    elif question == "two-sample" and not entry.one_column:
        parts = {"columns": ["x", "y"]}
    elif question == "mean" and entry.one_column:
        parts = {"columns": ["x"]}
    elif entry.categorical:
        one = question == "fit"
        parts = {"column": "colour", "shares": "equal"} if one else {"x": ["yes"], "y": ["colour"]}
    elif question == "fit":
        low, high = _bounds(schema)
        parts |= {"family": {"family": "norm"}}.get(
            method, {"dist": f"uniform({low}, {high - low})"}
        )
    if entry.part == "given":
        parts |= {"given": ["colour"]}
    return parts


def _options(question: str, method: str, schema: Schema) -> dict[str, Any]:
    entry = METHODS[question][method]
    half = 0.5 * (1.0 if entry.outcomes else _width(schema))
    options: dict[str, Any] = {"permutations": 9} if "permutations" in entry.options else {}
    options |= {"locations": 3} if "locations" in entry.needed else {}
    options |= {"low": -half, "high": half} if "low" in entry.needed else {}
    options |= {"points": 5} if "points" in entry.options else {}
    options |= {"success": 4} if entry.outcomes else {}
    return options
