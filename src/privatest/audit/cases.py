"""What is audited: every method of the catalogue, on made-up people.

A case is a request as a curator would admit it, so that reading, encoding, grouping and the test
itself are all part of what is attacked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from privatest.audit.schemas import SCHEMAS, Bounds
from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.curator.admission import admit
from privatest.curator.config import ALL_TESTS, DatasetConfig, Policy
from privatest.data.schema import NumericColumn, Schema
from privatest.requests.catalogue import METHODS
from privatest.requests.request import Request

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NAMES", "PYTHON", "Case", "Replaced", "asked_name", "cases", "chosen"]

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
PYTHON = (
    "binom_test",
    "conditional_randomisation_test",
    "hotelling_1samp",
    "mmd_test, three private groups",
    "mmd_test, three public groups",
    "permutation_test",
    "permutation_test, naive",
    "private_covariance",
    "private_median",
    "private_median, window",
    "share",
    "ttest_1samp",
)
MECHANISMS = (
    "laplace",
    "gaussian",
    "l-infinity",
    "signed sums",
    "covariance",
    "counts",
    "cumulative",
    "exponential",
    "tulap",
    "smoothed p-value",
    "smoothed decision",
    "one draw",
    "flipped coins",
    "argmax",
)


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
        return asked_name(self.name)

    def other(self, bounds: Bounds = "unit", epsilon: float | None = None) -> Case:
        """Return the same with other bounds or another budget, where it is one of :data:`NAMES`."""
        epsilon = self.budget.as_floats[0] if epsilon is None else epsilon
        found = cases(self.asked, epsilon, bounds) if self.asked else iter([self])
        return next(each for each in found if each.name == self.name)

    def run(self, table: pa.Table, noise: NoiseSource, *, rng: int | None = None) -> Any:
        """Answer; ``rng`` is public randomness, where there is any."""
        return self.call(table, noise, rng)


NAMES: tuple[str, ...] = (
    *(f"{q}/{m}" for q, methods in METHODS.items() for m in methods),
    *(f"python/{name}" for name in PYTHON),
    *(f"mechanism/{name}" for name in MECHANISMS),
)


def asked_name(case: str) -> str:
    """Return the name by which a case is asked for, "" if there is none."""
    fitting = [name for name in NAMES if case == name or case.startswith(f"{name}, ")]
    return max(fitting, key=len, default="")


def chosen(words: list[str]) -> list[str]:
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
    return (METHODS[question][method].function.rpartition(".")[2],)


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
        from privatest.audit.passes import in_passes  # noqa: PLC0415

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
        from privatest.audit.python_cases import python_case  # noqa: PLC0415

        yield python_case(method, epsilon, schema)
    elif question == "mechanism":
        from privatest.audit.mechanism_cases import mechanism_case  # noqa: PLC0415

        yield mechanism_case(method, epsilon, schema)
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
    takes_rng = "rng" in inspect.signature(entry.load()).parameters

    def call(table: pa.Table, noise: NoiseSource, rng: int | None) -> Any:
        return prepared.run(table, noise=noise, **({"rng": rng} if takes_rng else {}))

    return Case(
        name,
        entry.function.rpartition(".")[2],
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
        low, width = _range(schema)
        parts |= {"family": {"family": "norm"}}.get(method, {"dist": f"uniform({low}, {width})"})
    if entry.part == "given":
        parts |= {"given": ["colour"]}
    return parts


def _options(question: str, method: str, schema: Schema) -> dict[str, Any]:
    entry = METHODS[question][method]
    half = 0.5 * (1.0 if entry.outcomes else _range(schema)[1])
    options: dict[str, Any] = {"permutations": 9} if "permutations" in entry.options else {}
    options |= {"locations": 3} if "locations" in entry.needed else {}
    options |= {"low": -half, "high": half} if "low" in entry.needed else {}
    options |= {"points": 5} if "points" in entry.options else {}
    options |= {"success": 4} if entry.outcomes else {}
    return options


def _range(schema: Schema) -> tuple[float, float]:
    column = schema.columns["x"]
    if not isinstance(column, NumericColumn):
        raise AssertionError("x is a number")
    return column.lower, column.upper - column.lower
