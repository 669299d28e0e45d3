"""What is audited: every method of the catalogue, on made-up people.

A case is a request as a curator would admit it, so that reading, encoding, grouping and the test
itself are all part of what is attacked.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.curator.admission import admit
from privatest.curator.config import ALL_TESTS, DatasetConfig, Policy
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.questions import METHODS, Prepared, Request, Result
from privatest.questions.rehearsal import quiet

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NAMES", "SCHEMA", "Case", "cases"]

SCHEMA = Schema(
    {
        "x": NumericColumn(0.0, 1.0),
        "y": NumericColumn(0.0, 1.0),
        "count": NumericColumn(0.0, 4.0, integer=True),
        "colour": CategoricalColumn(("red", "green", "blue")),
        "yes": CategoricalColumn(("no", "yes")),
        "group": CategoricalColumn(("a", "b")),
        "arm": CategoricalColumn(("a", "b"), membership="public"),
    }
)
_DATASET = DatasetConfig("people", "", SCHEMA, Budget(10**6, "0.5"), policy=Policy(ALL_TESTS))
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


@dataclass(frozen=True, slots=True)
class Case:
    """A test as it is asked for.

    Attributes
    ----------
    name : str
        Question and method, and where there are two ways, which membership.
    prepared : Prepared
        The request, admitted.
    rows : int
        The least number of rows on which it does anything.
    """

    name: str
    prepared: Prepared
    rows: int

    @property
    def budget(self) -> Budget:
        """What it costs."""
        return self.prepared.request.budget

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.prepared.reads

    @property
    def private_groups(self) -> bool:
        """Whether a person can change their group."""
        return "group" in self.columns

    def run(self, table: pa.Table, noise: NoiseSource, *, rng: int | None = None) -> Result:
        """Answer, without warnings; ``rng`` is public randomness, where there is any."""
        takes = inspect.signature(self.prepared.request.entry.load()).parameters
        more = {"rng": rng} if "rng" in takes else {}
        with quiet():
            return self.prepared.run(table, noise=noise, **more)


NAMES: tuple[str, ...] = tuple(f"{q}/{m}" for q, methods in METHODS.items() for m in methods)


def cases(name: str, epsilon: float) -> Iterator[Case]:
    """Return the cases of a method: one, or one for private and one for public groups."""
    question, _, method = name.partition("/")
    if name not in NAMES:
        raise ParameterError(f"TEST must be one of {', '.join(NAMES)}.")
    entry = METHODS[question][method]
    request = {"question": question, "method": method, "epsilon": epsilon, "dataset": "people"}
    request |= {"delta": _DELTA} if entry.needs_delta else {}
    request |= _parts(question, method) | _options(question, method)
    rows = 80 if method in _LARGER else 12
    if question != "two-sample":
        yield Case(name, admit(Request.from_dict(request), _DATASET), rows)
        return
    for group in ("arm",) if entry.public_groups else ("group", "arm"):
        kind = "private groups" if group == "group" else "public groups"
        asked = Request.from_dict({**request, "group": group})
        yield Case(f"{name}, {kind}", admit(asked, _DATASET), rows)


def _parts(question: str, method: str) -> dict[str, Any]:
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
        parts |= {"family": {"family": "norm"}}.get(method, {"dist": "uniform(0, 1)"})
    if entry.part == "given":
        parts |= {"given": ["colour"]}
    return parts


def _options(question: str, method: str) -> dict[str, Any]:
    entry = METHODS[question][method]
    options: dict[str, Any] = {"permutations": 19} if "permutations" in entry.options else {}
    options |= {"locations": 3} if "locations" in entry.needed else {}
    options |= {"low": -0.5, "high": 0.5} if "low" in entry.needed else {}
    options |= {"points": 5} if "points" in entry.options else {}
    options |= {"success": 4} if entry.outcomes else {}
    del question
    return options
