"""A data set that somebody else keeps: its public facts, and the library's functions on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privatest.client.functions import Function, function_named, function_names
from privatest.core.errors import ParameterError
from privatest.data.categories import spelling
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema
from privatest.requests.request import Request

if TYPE_CHECKING:
    from privatest.client.budget import RemoteBudget
    from privatest.client.client import Client

__all__ = ["Columns", "Dataset", "Functions"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a data set, in the place of an array: ``visits["age"]``."""

    dataset: Dataset
    names: tuple[str, ...]

    def __repr__(self) -> str:
        """Show their names: nobody here has their values."""
        return f"<columns {', '.join(self.names)} of {self.dataset.name}>"


class Functions:
    """The library's functions, by their own names; whatever they return is up to ``answer``."""

    __slots__ = ("_answer", "_dataset")

    def __init__(self, answer: Callable[[Request], Any], dataset: Dataset | None = None) -> None:
        self._answer, self._dataset = answer, dataset

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function of the library, asked of the curator."""
        if name.startswith("_"):
            raise AttributeError(name)
        function = function_named(name)

        def call(*data: Any, **options: Any) -> Any:
            return self._answer(_request(function, self._dataset, data, options))

        call.__name__ = call.__qualname__ = name
        call.__doc__ = function.doc
        call.__signature__ = function.signature()  # type: ignore[attr-defined]
        return call

    def __dir__(self) -> Iterable[str]:
        """Return their names."""
        return sorted(function_names())


class Dataset:
    """A data set of a curator.

    Its methods are the library's functions, with names of columns in the place of arrays:
    ``visits.mmd_test(["visits", "age"], group="plan", epsilon=0.5)``. It also stands for a frame
    itself: ``client.mmd_test(visits, columns=["visits"], group="plan", epsilon=0.5)``.

    Attributes
    ----------
    name : str
        Its name.
    facts : mapping
        What is public: columns, policy, rows, and whether it can be asked about.
    """

    __slots__ = ("_client", "facts", "name")

    def __init__(self, client: Client, facts: Mapping[str, Any]) -> None:
        self._client, self.facts = client, facts
        self.name: str = facts["name"]

    @property
    def schema(self) -> Schema:
        """Its columns with their bounds and categories, as far as the service tells."""
        columns = {str(each["name"]): _column(each) for each in self.facts["columns"]}
        return Schema(columns, self.facts["rows_per_person"])

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [str(each["name"]) for each in self.facts["columns"]]

    @property
    def budget(self) -> RemoteBudget:
        """What is left of the budgets now."""
        return self._client.budget(self.name)

    @property
    def request(self) -> Functions:
        """The same functions, which only say what they would ask: for ``client.price``."""
        return Functions(Request.to_dict, self)

    def __getitem__(self, names: str | list[str]) -> Columns:
        """Return columns, in the place of an array."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        unknown = next((name for name in wanted if name not in self.columns), None)
        if unknown is not None or not wanted:
            raise KeyError(f"{unknown!r} is no column of {self.name}: {', '.join(self.columns)}.")
        return Columns(self, wanted)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function of the library, asked about this data set."""
        if name.startswith("_") or name in Dataset.__slots__:
            raise AttributeError(name)
        function: Callable[..., Any] = getattr(Functions(self._client.ask, self), name)
        return function

    def __dir__(self) -> Iterable[str]:
        """Return facts and functions."""
        return sorted({*object.__dir__(self), *function_names()})

    def __repr__(self) -> str:
        """Describe it: what is public, and nothing else."""
        lines = [f"Data set {self.name}: {_rows(self.facts)}"]
        if not self.facts["ready"]:
            lines.append(f"  It cannot be asked about: {self.facts['reason']}")
        width = max(map(len, self.columns), default=0)
        lines += [f"  {each['name']:<{width}}  {_words(each)}" for each in self.facts["columns"]]
        return "\n".join(lines)


def _request(
    function: Function, dataset: Dataset | None, data: tuple[Any, ...], options: Mapping[str, Any]
) -> Request:
    """Return the request of a call, in which handles stand for data."""
    found = {each.name: each for each in _datasets([*data, *options.values()])}
    if dataset is not None:
        found[dataset.name] = dataset
    if len(found) != 1:
        raise ParameterError(
            "data must be columns of one data set of the curator: client.dataset(NAME), or "
            "client.dataset(NAME)[COLUMNS]."
        )
    (about,) = found.values()
    named = tuple(map(_names, data))
    if named[:1] == (None,) and "columns" in options:  # a frame, and which of its columns
        named = named[1:]
    given = {name: _names(value) for name, value in options.items()}
    for name in [name for name in given if name.startswith("bounds")]:
        _check_bounds(name, given.pop(name), about)
    return function.request(about.name, named, given)


def _datasets(values: Iterable[Any]) -> Iterable[Dataset]:
    for value in values:
        if isinstance(value, Columns):
            yield value.dataset
        elif isinstance(value, Dataset):
            yield value


def _names(value: Any) -> Any:
    if isinstance(value, Columns):
        return list(value.names)
    return None if isinstance(value, Dataset) else value


def _check_bounds(name: str, bounds: Any, dataset: Dataset) -> None:
    """Take bounds only if they are those of the curator, which decides them."""
    own = dataset.schema
    given = bounds.columns if isinstance(bounds, Schema) else bounds
    if bounds is None:
        return
    if not isinstance(given, Mapping):
        raise ParameterError(f"{name} must be those of the schema here: leave them out.")
    for column, described in given.items():
        known = own.columns.get(column)
        if known is None or not _agree(known, described):
            raise ParameterError(
                f"{name} of {column!r} differ from those of the curator: leave {name} out, or pass "
                "the schema of the data set."
            )


def _agree(known: Column, given: Any) -> bool:
    if isinstance(known, NumericColumn):
        ends = (given.lower, given.upper) if isinstance(given, NumericColumn) else tuple(given)
        return ends == (known.lower, known.upper)
    if not isinstance(given, CategoricalColumn):
        return False
    return [*map(spelling, given.categories)] == [*map(spelling, known.categories)]


def _column(facts: Mapping[str, Any]) -> Column:
    if facts["type"] == "numeric":
        low, high = facts["bounds"]
        return NumericColumn(low, high, facts["integer"])
    return CategoricalColumn(tuple(facts["categories"]), facts["membership"])


def _rows(facts: Mapping[str, Any]) -> str:
    rows = "unknown" if facts["rows"] is None else f"{facts['rows']:,}"
    return f"{rows} rows, at most {facts['rows_per_person']} of a person"


def _words(facts: Mapping[str, Any]) -> str:
    if facts["type"] == "numeric":
        low, high = facts["bounds"]
        return f"{'integers' if facts['integer'] else 'numbers'} from {low:g} to {high:g}"
    return f"{', '.join(facts['categories'])} ({facts['membership']})"
