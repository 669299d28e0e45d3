"""Public points: spread over a schema's box or brought by the user, and back to table columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.data.domain import Domain
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema

__all__ = [
    "box_points",
    "check_points",
    "check_size",
    "column_names",
    "decode",
    "domain_of",
    "snapping",
]

_MOST_TRIED = 8  # times the wanted number, where rows of integers repeat


def box_points(schema: Schema, count: int) -> NDArray[np.float64]:
    """Return at most ``count`` different rows of the schema, spread evenly over its box.

    A low-discrepancy sequence; integers are integers and categories categories. Where the
    schema has fewer rows there are fewer points.
    """
    domain, tried = schema.domain, count
    while True:
        points = _valid(domain.points(tried), schema)
        _, first = np.unique(points, axis=0, return_index=True)
        if len(first) >= count or tried >= _MOST_TRIED * count:
            return points[np.sort(first)[:count]]
        tried *= 2


def _valid(points: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """Move the entries of integer columns to the nearest integers, each with its share."""
    for index, column in enumerate(schema.columns.values()):
        if isinstance(column, NumericColumn) and column.integer:
            width = column.upper - column.lower
            points[:, index] = np.floor(points[:, index] * (width + 1)).clip(0, width) / width
    return points


def snapping(schema: Schema | None) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
    """Return what moves encoded points to the nearest rows of the schema; None for nothing."""
    widths = {
        index: column.upper - column.lower
        for index, column in enumerate(() if schema is None else schema.columns.values())
        if isinstance(column, NumericColumn) and column.integer
    }

    def snap(points: NDArray[np.float64]) -> NDArray[np.float64]:
        points = points.copy()
        for index, width in widths.items():
            points[:, index] = np.rint(points[:, index] * width) / width
        return points

    return snap if widths else None


def check_points(points: NDArray[np.float64], n: int) -> None:
    """Refuse public points that are no use."""
    if len(points) < 1:
        raise ParameterError("public_points must have at least one row.")
    check_size(len(points), n)
    if len(np.unique(points, axis=0)) < len(points):
        raise ParameterError(
            "public_points must be different from each other; some rows are equal after "
            "clipping to the bounds. Remove the repeats."
        )


def check_size(count: int, n: int) -> None:
    """Refuse more points than rows."""
    if count > n:
        raise ParameterError(
            f"n_points must be at most the number of rows of x, {n}: each public point takes "
            "noise, and more of them than rows cannot say more than the rows."
        )


def column_names(data: Any, width: int) -> tuple[str, ...]:
    """Return the names that data has for its columns, or x1, x2, ..."""
    names: Any = None
    pandas = sys.modules.get("pandas")
    if isinstance(data, Mapping):
        names = list(data)
    elif pandas is not None and isinstance(data, pandas.DataFrame):
        names = list(data.columns)
    elif hasattr(data, "column_names"):  # Arrow
        names = list(data.column_names)
    elif hasattr(data, "get_column_names") or type(data).__module__.startswith("polars"):
        names = getattr(data, "columns", None)
    if names is None or len(names) != width:
        return tuple(f"x{index}" for index in range(1, width + 1))
    return tuple(str(name) for name in names)


def decode(
    points: NDArray[np.float64], names: tuple[str, ...], schema: Schema | None
) -> Mapping[str, NDArray[Any]]:
    """Return encoded rows as columns in the schema's own units and categories."""
    columns: dict[str, NDArray[Any]] = {}
    for index, name in enumerate(names):
        values = points[:, index]
        column = schema.columns[name] if schema is not None else None
        if isinstance(column, CategoricalColumn):
            kinds = {type(category) for category in column.categories}
            dtype = None if len(kinds) == 1 and str not in kinds else object
            columns[name] = np.array(column.categories, dtype=dtype)[values.astype(np.intp)]
        elif column is not None:
            numbers = column.lower + values * (column.upper - column.lower)
            numbers = np.clip(numbers, column.lower, column.upper)
            columns[name] = np.rint(numbers).astype(np.int64) if column.integer else numbers
        else:
            columns[name] = values.copy()
        columns[name].flags.writeable = False
    return MappingProxyType(columns)


def domain_of(schema: Schema | None, width: int) -> Domain:
    """Return the set that encoded rows lie in."""
    return Domain((0,) * width, bounded=False) if schema is None else schema.domain
