"""Samples from one frame with a group column: what a row's group is, and whether it is private."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import ADJACENCIES, Adjacency
from privatest.core.validation import listed, one_of, reject
from privatest.data.bounds import schema_of
from privatest.data.categories import Category, spelling
from privatest.data.columns import one_column
from privatest.data.grouping import Grouping
from privatest.data.persons import check_persons
from privatest.data.schema import Membership, Schema
from privatest.data.source import Source
from privatest.data.source_groups import split_source
from privatest.data.tables import arranged, label_of, read_data

__all__ = ["GroupOptions", "SampleLayout", "group_names", "persons_in_groups", "resolve_samples"]

_PUBLIC = "pass adjacency='one', if everybody may know who is in which group"


class GroupOptions(TypedDict, total=False):
    """How one frame is split in samples."""

    group: str | None
    groups: Sequence[Category] | None
    columns: str | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """Which samples a test compares, in public terms; it holds no data.

    Attributes
    ----------
    adjacency : {"one", "both", "row"}
        What is hidden.
    count : int
        The number of samples.
    bounds : object
        Public bounds, as they were passed.
    grouping : Grouping or None
        How one frame is split; None for separate samples.
    columns : tuple of str or None
        The columns to compare; None for all columns that the frame has.
    """

    adjacency: Adjacency
    count: int
    bounds: Any
    grouping: Grouping | None = None
    columns: tuple[str, ...] | None = None

    def read(self, data: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the samples and the bounds of their columns; a frame is paid for and split."""
        if self.grouping is None:
            return data, self.bounds
        frame = next(each for each in data if each is not None)
        return _by_group(frame, self.grouping, self.columns, self.bounds, self.adjacency)


def resolve_samples(
    data: tuple[Any, ...],
    bounds: Any,
    adjacency: Adjacency | None,
    *,
    group: str | None,
    groups: Sequence[Category] | None,
    columns: str | Sequence[str] | None,
    several: bool = False,
    public_groups: str = "",
) -> SampleLayout:
    """Return which samples are compared and what is hidden; nothing is read, nothing is paid.

    Parameters
    ----------
    data : tuple
        Samples, or one frame where ``group`` names a column; None is left out.
    bounds : pair, (d, 2) array, mapping of names to pairs, Schema or None
        Public bounds; a schema describes the group column too.
    adjacency : {"one", "both", "row"} or None
        What is hidden. By default "one" for samples, whose sizes are what was passed. For a
        frame "row", or "one" where the schema says that membership is public.
    group, groups, columns
        The group column, its groups and the columns to compare, or None each.
    several : bool
        Whether there may be more than two groups.
    public_groups : str
        Why the test needs public group sizes, or "" if it can do without.
    """
    if adjacency is not None:
        one_of("adjacency", adjacency, ADJACENCIES)
    schema_of(bounds)  # refuses what no data could fit
    given = tuple(each for each in data if each is not None)
    if group is None:
        if groups is not None or columns is not None:
            raise ParameterError("groups and columns need group, the column that splits a frame.")
        if len(given) < len(data):
            raise ParameterError(
                "y must be given, the second sample; or group, the column of one frame that says "
                "which sample a row is in."
            )
        return SampleLayout(adjacency or "one", len(data), bounds)
    if len(given) != 1:
        raise ParameterError("group splits one frame: pass it alone, without a second sample.")
    grouping = _grouping(group, groups, bounds, adjacency, several=several)
    adjacency = adjacency or ("row" if grouping.membership == "private" else "one")
    if adjacency == "row" and public_groups:
        raise ParameterError(
            f"groups are private unless you say otherwise, and here {public_groups}: {_PUBLIC}, or "
            'membership = "public" in the schema; or use mmd_test, which hides the group too.'
        )
    names = _compared(grouping.column, columns, bounds)
    return SampleLayout(adjacency, len(grouping.labels), bounds, grouping, names)


def group_names(
    count: int, bounds: Any, adjacency: Adjacency | None, group: str | None, groups: Any
) -> list[str]:
    """Return what a reader may call the groups: their public labels in a frame, or numbers."""
    if group is None:
        return [f"group {place + 1}" for place in range(count)]
    return list(_grouping(group, groups, bounds, adjacency, several=True).labels)


def _grouping(
    group: str, groups: Any, bounds: Any, adjacency: Adjacency | None, *, several: bool
) -> Grouping:
    """Find the groups in what is public."""
    if not isinstance(group, str):
        reject("group", "the name of a column", group)
    if isinstance(groups, str) or not isinstance(groups, (Sequence, type(None))):
        reject("groups", "a list of values of the group column", groups)
    labels = None if groups is None else tuple(map(_label, groups))
    membership: Membership | None = None
    if adjacency is not None:
        membership = "private" if adjacency == "row" else "public"
    schema = bounds if isinstance(bounds, Schema) else None
    return Grouping.ask(group, schema, labels, membership, several=several)


def _label(value: Any) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, (str, bool, int, float)):
        raise ParameterError("groups must be text, numbers, or true and false.")
    return spelling(value)


def _by_group(
    frame: Any,
    grouping: Grouping,
    columns: tuple[str, ...] | None,
    bounds: Any,
    adjacency: Adjacency,
) -> tuple[tuple[Any, ...], Any]:
    if adjacency == "both":
        bounds = persons_in_groups(frame, grouping, bounds)
    else:
        bounds = check_persons(bounds, [frame])
    source = read_data(frame, "x")
    if source.names is None:
        raise DataError("x must have named columns: a data frame, a table or a mapping.")
    names = columns or tuple(name for name in source.names if name != grouping.column)
    if columns is None and len(names) != 1:
        raise ParameterError("columns must be given: the columns to compare.")
    bounds = _bounds_of(bounds, names)
    if isinstance(frame, Source):
        read = arranged(source, (*names, grouping.column), "x").names
        samples = split_source(frame.select(read or ()), grouping)
        grouping.require_rows([len(sample) > 0 for sample in samples])
        return samples, bounds
    chosen = arranged(source, (*names, grouping.column), "x")
    sides = grouping.sides_of(chosen.column(len(names)))
    grouping.require_rows([(sides == place).any() for place in range(len(grouping.labels))])
    values = {}
    for place, name in enumerate(names):
        values[name] = one_column(chosen.column(place), f"column {name!r} of x")
        if len(values[name]) != len(sides):
            raise DataError(f"column {name!r} of x must be as long as the group column.")
    split = tuple(
        {name: _chosen(column, sides == place) for name, column in values.items()}
        for place in range(len(grouping.labels))
    )
    return split, bounds


def persons_in_groups(frame: Any, grouping: Grouping, bounds: Any) -> Any:
    """Count rows per person in each group, for adjacency "both"; return bounds without ids."""
    who = bounds.id_column if isinstance(bounds, Schema) else None
    if who is None:
        return bounds
    if isinstance(frame, Source):
        parts = split_source(frame.select([who, grouping.column]), grouping)
        return check_persons(bounds, parts, together=False)
    both = arranged(read_data(frame, "x"), (who, grouping.column), "x")
    sides, ids = grouping.sides_of(both.column(1)), one_column(both.column(0), label_of(who, "x"))
    split = [{who: _chosen(ids, sides == place)} for place in range(len(grouping.labels))]
    return check_persons(bounds, split, together=False)


def _bounds_of(bounds: Any, names: Sequence[str]) -> Any:
    """Return the bounds of these columns."""
    if isinstance(bounds, Schema):
        return bounds.select(names)
    return {name: bounds[name] for name in names} if isinstance(bounds, Mapping) else bounds


def _chosen(column: Any, rows: Any) -> Any:
    return column[rows] if isinstance(column, np.ndarray) else column.filter(rows)


def _compared(group: str, columns: Any, bounds: Any) -> tuple[str, ...] | None:
    """Return the names of the columns to compare, or None if only the frame has them."""
    known = bounds.columns if isinstance(bounds, Schema) else bounds
    by_name = isinstance(known, Mapping)
    if columns is None and not by_name:
        return None
    names = (columns,) if isinstance(columns, str) else columns
    if names is None:
        names = [name for name in known if name != group]
    if not isinstance(names, Iterable):
        reject("columns", "a name or a list of names of columns", names)
    names = tuple(names)
    if not names or not all(isinstance(name, str) for name in names):
        raise ParameterError("columns must name at least one column.")
    if len({*names, group}) <= len(names):
        raise ParameterError("columns must be different from each other and from the group.")
    unknown = next((name for name in names if by_name and name not in known), None)
    if unknown is not None:
        raise ParameterError(
            f"columns must be among those that bounds describe ({listed(known)}): {unknown!r} is "
            "not."
        )
    return names
