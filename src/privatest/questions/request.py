"""What is asked: as public words (Request), and checked against a schema (Prepared).

A request is a frozen description that can be written as JSON and compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.adjusting import ADJUSTMENTS
from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.core.results import Outcome
from privatest.core.validation import number, one_of
from privatest.data.categories import spelling
from privatest.data.grouping import Grouping
from privatest.data.schema import Schema
from privatest.data.source import Source
from privatest.questions.catalogue import METHODS, Method, find
from privatest.questions.results import Result

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PARTS", "Filter", "Prepared", "Request", "named_as_asked"]

# Which columns play which part, for each question.
PARTS: Mapping[str, tuple[str, ...]] = {
    "two-sample": ("columns", "group", "groups", "membership", "adjacency", "each_column"),
    "independence": ("x", "y", "given"),
    "paired": ("before", "after"),
    "fit": ("column", "dist", "family", "shares"),
    "mean": ("columns",),
    "release": ("columns",),
}
_ALPHA = 0.05
_HEAD = re.compile(r"(\w*)(.*)", re.DOTALL)
_LISTS = ("columns", "groups", "x", "y", "given")
_TEXTS = {part for parts in PARTS.values() for part in parts} - {*_LISTS}


@dataclass(frozen=True, slots=True)
class Request:
    """A question about data.

    Attributes
    ----------
    question : {"two-sample", "independence", "paired", "fit", "mean", "release"}
        What is to be found out.
    method : str
        How it is answered.
    budget : Budget
        What it may cost.
    alpha : float or None
        Level of the decision, or of the intervals; None for a method without.
    parts : mapping
        Which columns play which part.
    options : mapping
        What the method takes besides.
    dataset : str
        The data set it is about, for a curator; a command is given files.
    where : mapping of str to tuple of str
        Which rows are meant, by categories of public columns; empty is all.

    Notes
    -----
    **Invariant**: every word is known to the catalogue, and the budget and the level are valid.
    Nothing is known of the data yet, not even its columns.
    """

    question: str
    method: str
    budget: Budget
    alpha: float | None = None
    parts: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    dataset: str = ""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what the method does not have; drop what was not given."""
        method, entry = find(self.question, self.method)
        object.__setattr__(self, "method", method)  # an alias becomes the catalogue's name
        if entry.level:
            alpha = _ALPHA if self.alpha is None else self.alpha
            object.__setattr__(self, "alpha", number("alpha", alpha, above=0, below=1))
        elif self.alpha is not None:
            raise ParameterError(f"alpha does not go with the question {self.question}.")
        if entry.needs_delta and not self.budget.delta:
            raise ParameterError(f"delta must be above 0: {entry.needs_delta}.")
        parts = _given(self.parts)
        for name in parts:
            if name not in PARTS[self.question]:
                raise ParameterError(f"{name} does not go with the question {self.question}.")
        options = _given(self.options)
        for name in options:
            if name not in entry.options:
                raise ParameterError(f"{name} does not go with method {self.method}.")
        for name in entry.needed:
            if name not in options:
                raise ParameterError(f"method {self.method} needs {name}.").with_flags(
                    f"Pass --{name}."
                )
        if options.get("release", entry.releases[0]) not in entry.releases:
            raise ParameterError(
                f"release must be {' or '.join(entry.releases)} for method {self.method}."
            )
        object.__setattr__(self, "parts", MappingProxyType(parts))
        object.__setattr__(self, "options", MappingProxyType(options))
        object.__setattr__(self, "where", MappingProxyType(_labels(self.where)))

    @property
    def entry(self) -> Method:
        """The catalogue's entry."""
        return METHODS[self.question][self.method]

    @property
    def gaussian(self) -> bool:
        """Whether the answer is one analytic Gaussian mechanism at this budget.

        A statistic of the same method has Laplace noise, which costs more when composed.
        """
        one = "each_column" not in self.parts  # several mechanisms are not one
        return self.entry.gaussian and bool(self.budget.delta) and not self.statistic_only and one

    @property
    def statistic_only(self) -> bool:
        """Whether a method that can release moments releases only its statistic.

        Moments need delta; without it, and where nobody says, there is a statistic.
        """
        usual = "moments" if self.budget.delta else "statistic"
        may = "statistic" in self.entry.releases
        return may and self.options.get("release", usual) == "statistic"

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Request:
        """Read a flat document such as ``{"question": "two-sample", "method": "mmd", ...}``."""
        if not isinstance(document, Mapping):
            raise ParameterError("request must be a table of names and values.")
        rest = {str(name): value for name, value in document.items()}
        question, method = rest.pop("question", None), rest.pop("method", None)
        about = {name: rest.pop(name) for name in ("dataset", "where") if rest.get(name)}
        rest = {name: value for name, value in rest.items() if name not in ("dataset", "where")}
        if "epsilon" not in rest:
            raise ParameterError("epsilon must be given: what may the answer cost?")
        budget = Budget(rest.pop("epsilon"), rest.pop("delta", 0))
        method, entry = find(question, method, rest.keys())
        parts = {name: rest.pop(name) for name in PARTS[str(question)] if name in rest}
        alpha = rest.pop("alpha", None)
        options = {name: rest.pop(name) for name in entry.options if name in rest}
        if rest:
            known = (*PARTS[str(question)], *entry.options)
            raise ParameterError(
                f"unknown key {next(iter(rest))!r}; a {question} request with method {method} "
                f"has: {', '.join(known)}."
            )
        return cls(str(question), method, budget, alpha, parts, options, **about)

    def to_dict(self) -> dict[str, Any]:
        """Return the flat document; :meth:`from_dict` reads it back."""
        head: dict[str, Any] = {"question": self.question, "method": self.method}
        head |= {} if self.alpha is None else {"alpha": self.alpha}
        cost = {"epsilon": _plain(self.budget.epsilon), "delta": _plain(self.budget.delta)}
        rest = {name: _plain(value) for name, value in {**self.parts, **self.options}.items()}
        about: dict[str, Any] = {"dataset": self.dataset} if self.dataset else {}
        about |= {"where": _plain(self.where)} if self.where else {}
        return head | cost | rest | about


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows pass, by the codes of one public column."""

    column: Schema
    codes: frozenset[int]

    def passes(self, table: pa.Table) -> NDArray[np.bool_]:
        """Return whether each row does."""
        own = self.column.encode(table.select(list(self.column.columns)))[:, 0]
        return np.isin(own, sorted(self.codes))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that fits its schema.

    Attributes
    ----------
    names : sequence of str
        Columns to read.
    text : sequence of str
        Those to read as they are written.
    words : str
        What is compared with what.
    label : str
        What a printed result calls these words.
    call : callable
        From tables (one, or one for each sample) to the test's positional arguments.
    arguments : mapping
        The test's other arguments.
    request : Request
        Where it comes from.
    schema : Schema or None
        What is publicly known of the columns.
    grouping : Grouping or None
        How one table is split in two, if it is.
    quick : callable or None
        From a public size to a request that needs less time and fails by the same parameters,
        for a rehearsal; None where the request itself is quick enough.
    filters : mapping of str to Filter
        Which rows are meant, by public columns.

    Notes
    -----
    **Invariant**: all that can be checked without data has been, against the public schema alone,
    and a table is all that is missing.
    """

    names: Sequence[str]
    text: Sequence[str]
    words: str
    label: str
    call: Callable[..., tuple[Any, ...]]
    arguments: Mapping[str, Any]
    request: Request
    schema: Schema | None = None
    grouping: Grouping | None = None
    quick: Callable[[int], Prepared] | None = None
    filters: Mapping[str, Filter] = field(default_factory=dict)

    @property
    def reads(self) -> list[str]:
        """Columns to read: :attr:`names`, and those of the filter."""
        return [*self.names, *(name for name in self.filters if name not in self.names)]

    @property
    def asked(self) -> dict[str, Any]:
        """The request in full, with what the schema added: columns, groups and their membership."""
        full = self.request.to_dict()
        if "columns" in PARTS[self.request.question] and self.schema is not None:
            full["columns"] = list(self.schema.columns)
        if "adjacency" in self.arguments:
            full["adjacency"] = self.arguments["adjacency"]
        if self.grouping is not None:
            grouping = self.grouping
            full |= {"groups": list(grouping.labels), "membership": grouping.membership}
        return full

    def run(self, *tables: pa.Table, noise: NoiseSource | None = None, **more: Any) -> Result:
        """Answer from the tables, which hold :attr:`reads`; ``more`` goes to the function."""
        request, entry = self.request, self.request.entry
        arguments = dict(entry.preset) | dict(self.arguments) | more
        cost = {"epsilon": request.budget.epsilon, "delta": request.budget.delta}
        level = {"alpha": request.alpha} if entry.level else {}
        rows = self.call(*map(self._chosen, tables))
        with named_as_asked(entry.options):
            result: Result = entry.load()(*rows, **arguments, **cost, **level, noise=noise)
        return result if self.grouping is None else _with_labels(result, self.grouping.labels)

    def _chosen(self, table: pa.Table | Source) -> pa.Table | Source:
        if isinstance(table, Source):
            return self._chosen_source(table)
        keep = [each.passes(table) for each in self.filters.values()]
        rows = table.select(list(self.names))
        if not keep:
            return rows
        rows = rows.filter(np.logical_and.reduce(keep))
        if rows.num_rows == 0:  # by public columns only
            raise DataError("no row passes the filter where.")
        return rows

    def _chosen_source(self, source: Source) -> Source:
        from privatest.data.source_groups import chosen_source  # noqa: PLC0415

        if not self.filters:
            return source.select(list(self.names))
        passes = partial(_passes, filters=tuple(self.filters.values()))
        rows = chosen_source(source, list(self.names), tuple(self.filters), passes)
        if not len(rows):  # by public columns only
            raise DataError("no row passes the filter where.")
        return rows


def _passes(batch: Any, filters: Sequence[Filter]) -> NDArray[np.bool_]:
    passed: NDArray[np.bool_] = np.logical_and.reduce([each.passes(batch) for each in filters])
    return passed


def _with_labels(result: Result, labels: Sequence[str]) -> Result:
    """Name groups by their public labels, where the test numbered them."""
    if isinstance(result, Outcome) and len(result.parameters.get("group_names", ())) == len(labels):
        return replace(result, parameters={**result.parameters, "group_names": list(labels)})
    return result


@contextmanager
def named_as_asked(options: Mapping[str, str]) -> Iterator[None]:
    """Let a refusal name an option as the request does, not as the function that was called.

    Refusals begin with the name of the parameter. ``options`` maps a request's names to it.
    """
    try:
        yield
    except ParameterError as error:
        head, rest = _HEAD.match(str(error)).groups()  # type: ignore[union-attr]
        for asked, parameter in options.items():
            if head in (parameter, f"{parameter}_x", f"{parameter}_y"):  # sides of independence
                error.args = (asked + rest,)
        raise


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in values.items() if value is not None}
    for name in _LISTS:
        if name in kept:
            if isinstance(kept[name], str) or not isinstance(kept[name], (list, tuple)):
                raise ParameterError(f"{name} must be a list of names.")
            kept[name] = tuple(map(str, kept[name]))
    if "each_column" in kept:
        one_of("each_column", kept["each_column"], ADJUSTMENTS)
    for name, value in kept.items():
        if name in _TEXTS and not isinstance(value, str):
            raise ParameterError(f"{name} must be text.")
    return kept


def _labels(where: object) -> dict[str, tuple[str, ...]]:
    """Return the labels of a filter, sorted: one value for each column, or a list of them."""
    if not isinstance(where, Mapping):
        raise ParameterError('where must be a table, such as {"region": "north"}.')
    found = {}
    for name, value in sorted(where.items()):
        values = value if isinstance(value, (list, tuple)) else [value]
        if not values or not all(type(item) in (str, bool, int, float) for item in values):
            raise ParameterError(f"where: {name!r} must be a category, or a list of categories.")
        found[str(name)] = tuple(sorted({spelling(item) for item in values}))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
