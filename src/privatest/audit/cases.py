"""What is audited: every method of the catalogue, on made-up people.

A case is a request as a curator would admit it, so that reading, encoding, grouping and the test
itself are all part of what is attacked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from privatest.audit.schemas import SCHEMAS, Bounds
from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.curator.admission import admit
from privatest.curator.config import ALL_TESTS, DatasetConfig, Policy
from privatest.data.schema import NumericColumn, Schema
from privatest.questions import METHODS, Request

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NAMES", "PYTHON", "Case", "cases", "chosen"]

_DELTA = 1e-3  # where a method needs it: large, so that an audit can see it
_COLUMNS: dict[str, dict[str, Any]] = {
    "two-sample": {"columns": ["x"]},
    "independence": {"x": ["x"], "y": ["y"]},
    "paired": {"before": "x", "after": "y"},
    "fit": {"column": "x"},
    "mean": {"columns": ["x", "y"]},
    "release": {"columns": ["x", "colour"]},
}
_LARGER = {"tot", "sarrm", "gcm"}  # they cut the rows, or each group, into parts
PYTHON = (
    "binom_test",
    "conditional_randomisation_test",
    "hotelling_1samp",
    "permutation_test",
    "permutation_test, naive",
    "private_covariance",
    "private_median",
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
        """The name without its groups, as in :data:`NAMES`; "" for one that is not there."""
        name = self.name.removesuffix(", private groups").removesuffix(", public groups")
        return name if name in NAMES else ""

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
    """Return the cases of a method: one, or one for private and one for public groups."""
    if name not in NAMES:
        raise ParameterError(f"TEST must be one of {', '.join(NAMES)}.")
    question, _, method = name.partition("/")
    if question == "python":
        from privatest.audit.python_cases import python_case  # noqa: PLC0415

        yield python_case(method, epsilon, SCHEMAS[bounds])
        return
    if question == "mechanism":
        from privatest.audit.mechanism_cases import mechanism_case  # noqa: PLC0415

        yield mechanism_case(method, epsilon, SCHEMAS[bounds])
        return
    yield from _catalogue_cases(question, method, epsilon, SCHEMAS[bounds])


def _catalogue_cases(question: str, method: str, epsilon: float, schema: Schema) -> Iterator[Case]:
    entry = METHODS[question][method]
    request = {"question": question, "method": method, "epsilon": epsilon, "dataset": "people"}
    request |= {"delta": _DELTA} if entry.needs_delta else {}
    request |= _parts(question, method, schema) | _options(question, method, schema)
    name = f"{question}/{method}"
    if question != "two-sample":
        yield _catalogue_case(name, Request.from_dict(request), schema)
        return
    for group in ("arm",) if entry.public_groups else ("group", "arm"):
        kind = "private groups" if group == "group" else "public groups"
        asked = Request.from_dict({**request, "group": group})
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
