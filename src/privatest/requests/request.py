"""A request (public words) and a prepared request (checked against a public schema)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.core.results import ADJUSTMENTS, Adjustment, Outcome, adjust
from privatest.core.validation import number, one_of
from privatest.data.reading import Grouping
from privatest.data.schema import Schema, spelling
from privatest.data.sources import Source
from privatest.requests.catalogue import METHODS, PARTS, Method, find
from privatest.requests.results import ColumnResults, Result

if TYPE_CHECKING:
    import pyarrow as pa

_ALPHA = 0.05
_WHY_DELTA = (
    "synthetic data needs Gaussian noise on many coefficients, which is not private for any "
    "epsilon alone. Choose delta well below 1 divided by the number of rows, for example 1e-6"
)
_LISTS = ("columns", "groups", "x", "y", "given")
_TEXTS = {part for parts in PARTS.values() for part in parts} - {*_LISTS}


@dataclass(frozen=True, slots=True)
class Request:
    """A question about data.

    Attributes
    ----------
    question : {"two-sample", "independence", "paired", "fit", "mean", "release"}
        The kind of question.
    method : str
        The name of the method in the catalogue.
    budget : Budget
        The cost of the answer.
    alpha : float or None
        Level of the test or of the intervals; None for a method without one.
    parts : mapping
        The columns, by their part in the question.
    options : mapping
        Options of the method.
    dataset : str
        The data set, for a curator.
    where : mapping of str to tuple of str
        A filter of rows: for each public column, the categories that pass.

    Notes
    -----
    **Invariant**: every name is in the catalogue, and the budget and the level are valid. Nothing
    is known about the data yet.
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
        """Check names and values; drop those that are None."""
        method, entry = find(self.question, self.method)
        object.__setattr__(self, "method", method)  # an alias becomes the catalogue's name
        if entry.level:
            alpha = _ALPHA if self.alpha is None else self.alpha
            object.__setattr__(self, "alpha", number("alpha", alpha, above=0, below=1))
        elif self.alpha is not None:
            raise ParameterError("alpha", f"does not go with the question {self.question}")
        if entry.needs_delta and not self.budget.delta:
            raise ParameterError("delta", f"must be above 0: {_WHY_DELTA}")
        parts, options = _checked(self.parts), _checked(self.options)
        for name in parts:
            if name not in PARTS[self.question]:
                raise ParameterError(name, f"does not go with the question {self.question}")
        for name in options:
            if name not in entry.options:
                raise ParameterError(name, f"does not go with method {method}")
        for name in entry.needed:
            if name not in options:
                raise ParameterError(f"method {method} needs {name}.", remedy={name: ""})
        if "release" in options and options["release"] not in entry.releases:
            raise ParameterError(
                "release", f"must be {' or '.join(entry.releases)} for method {method}"
            )
        object.__setattr__(self, "parts", MappingProxyType(parts))
        object.__setattr__(self, "options", MappingProxyType(options))
        object.__setattr__(self, "where", MappingProxyType(_labels(self.where)))

    @property
    def entry(self) -> Method:
        """Return the catalogue's entry."""
        return METHODS[self.question][self.method]

    @property
    def gaussian(self) -> bool:
        """Return whether the answer is one analytic Gaussian mechanism at this budget.

        A statistic alone, without moments, has Laplace noise, which composes less well.
        """
        one = "each_column" not in self.parts  # several mechanisms are not one
        return self.entry.gaussian and bool(self.budget.delta) and not self.statistic_only and one

    @property
    def statistic_only(self) -> bool:
        """Return whether a method that can release moments releases only its statistic.

        Moments need delta; without it the default is the statistic.
        """
        default = "moments" if self.budget.delta else "statistic"
        both = "statistic" in self.entry.releases
        return both and self.options.get("release", default) == "statistic"

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Request:
        """Read a flat document such as ``{"question": "two-sample", "method": "mmd", ...}``."""
        if not isinstance(document, Mapping):
            raise ParameterError("request must be a table of names and values.")
        rest = {str(name): value for name, value in document.items()}
        question, method = rest.pop("question", None), rest.pop("method", None)
        about = {name: rest.pop(name, None) for name in ("dataset", "where")}
        about = {name: value for name, value in about.items() if value}
        if "epsilon" not in rest:
            raise ParameterError("epsilon", "must be given: the cost of the answer")
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
    """A filter of rows by the categories of one public column."""

    column: Schema
    codes: frozenset[int]

    def passes(self, table: pa.Table) -> NDArray[np.bool_]:
        """Return whether each row passes."""
        codes = self.column.encode(table.select(list(self.column.columns)))[:, 0]
        return np.isin(codes, sorted(self.codes))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that was checked against its schema.

    Attributes
    ----------
    names : sequence of str
        Columns to read.
    text : sequence of str
        Those to read as text.
    words : str
        What is compared with what.
    label : str
        The heading of these words in a printed result.
    call : callable
        From tables (one, or one for each sample) to the function's positional arguments.
    arguments : mapping
        The function's other arguments.
    request : Request
        The request.
    schema : Schema or None
        The public description of the columns.
    grouping : Grouping or None
        How one table is split into groups, if it is.
    quick : callable or None
        From a public size to a request that takes less time and fails by the same parameters,
        for a rehearsal; None where the request itself is quick enough.
    filters : mapping of str to Filter
        Filters of rows, by public columns.

    Notes
    -----
    **Invariant**: everything that can be checked without data was checked, against the public
    schema alone.
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
        """Return the columns to read: :attr:`names` and those of the filter."""
        return [*self.names, *(name for name in self.filters if name not in self.names)]

    @property
    def asked(self) -> dict[str, Any]:
        """Return the request in full: with columns, groups and membership from the schema."""
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
        """Answer from tables with the columns :attr:`reads`; ``more`` goes to the function."""
        request, entry = self.request, self.request.entry
        arguments = dict(entry.preset) | dict(self.arguments) | more
        cost = {"epsilon": request.budget.epsilon, "delta": request.budget.delta}
        level = {"alpha": request.alpha} if entry.level else {}
        rows = self.call(*map(self._chosen, tables))
        with renamed_options(entry.options):
            result: Result = entry.function(*rows, **arguments, **cost, **level, noise=noise)
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
        if not self.filters:
            return source.select(list(self.names))
        passes = partial(_passes, filters=tuple(self.filters.values()))
        rows = source.partition(list(self.names), tuple(self.filters), passes, 2)[1]
        if not len(rows):  # by public columns only
            raise DataError("no row passes the filter where.")
        return rows


@dataclass(frozen=True, slots=True)
class PreparedEach(Prepared):
    """A prepared request for each of several columns, which runs as one.

    Attributes
    ----------
    columns : mapping of str to Prepared
        The request of each column.
    """

    columns: Mapping[str, Prepared] = field(default_factory=dict)

    @classmethod
    def gather(
        cls, request: Request, columns: Mapping[str, Prepared], schema: Schema | None
    ) -> PreparedEach:
        """Combine requests that read the same tables."""
        (head, first), *_ = columns.items()
        described = [] if schema is None else [name for name in columns if name in schema.columns]
        return cls(
            names=_union(part.names for part in columns.values()),
            text=_union(part.text for part in columns.values()),
            words=", ".join(columns) + first.words.removeprefix(head),
            label=first.label,
            call=lambda *tables: tables,
            arguments=first.arguments,
            request=request,
            schema=schema.select(described) if schema is not None and described else None,
            grouping=first.grouping,
            filters=first.filters,
            columns=columns,
        )

    def run(
        self, *tables: pa.Table, noise: NoiseSource | None = None, **more: Any
    ) -> ColumnResults:
        """Answer for each column and adjust the p-values."""
        results = {
            name: each.run(*(table.select(each.reads) for table in tables), noise=noise, **more)
            for name, each in self.columns.items()
        }
        method: Adjustment = self.request.parts["each_column"]
        adjusted = adjust([*results.values()], method=method)  # type: ignore[list-item]
        columns = dict(zip(results, adjusted, strict=True))
        return ColumnResults(columns, method, self.request.budget)


def _union(names: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for each in names for name in each))


def _passes(batch: Any, filters: Sequence[Filter]) -> NDArray[np.bool_]:
    passed: NDArray[np.bool_] = np.logical_and.reduce([each.passes(batch) for each in filters])
    return passed


def _with_labels(result: Result, labels: Sequence[str]) -> Result:
    """Name groups by their public labels, where the test numbered them."""
    if isinstance(result, Outcome) and len(result.parameters.get("group_names", ())) == len(labels):
        return replace(result, parameters={**result.parameters, "group_names": list(labels)})
    return result


@contextmanager
def renamed_options(options: Mapping[str, str]) -> Iterator[None]:
    """Let an error name an option as the request does, not as the function does.

    ``options`` maps names of a request to names of parameters.
    """
    try:
        yield
    except ParameterError as error:
        for name, parameter in options.items():
            for side in ("", "_x", "_y"):  # of a test of independence
                error.rename({f"{parameter}{side}": name})
        raise


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not None, of the right types."""
    present = {name: value for name, value in values.items() if value is not None}
    for name in _LISTS:
        if name in present:
            if isinstance(present[name], str) or not isinstance(present[name], (list, tuple)):
                raise ParameterError(name, "must be a list of names")
            present[name] = tuple(map(str, present[name]))
    if "each_column" in present:
        one_of("each_column", present["each_column"], ADJUSTMENTS)
    for name, value in present.items():
        if name in _TEXTS and not isinstance(value, str):
            raise ParameterError(name, "must be text")
    return present


def _labels(where: object) -> dict[str, tuple[str, ...]]:
    """Return the labels of a filter, sorted: one value for each column, or a list of them."""
    if not isinstance(where, Mapping):
        raise ParameterError("where", 'must be a table, such as {"region": "north"}')
    labels = {}
    for name, value in sorted(where.items()):
        values = value if isinstance(value, (list, tuple)) else [value]
        if not values or not all(type(item) in (str, bool, int, float) for item in values):
            raise ParameterError(f"where: {name!r} must be a category, or a list of categories.")
        labels[str(name)] = tuple(sorted({spelling(item) for item in values}))
    return labels


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
