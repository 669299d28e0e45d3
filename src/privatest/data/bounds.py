"""Bounds, in whichever form they are given, become a schema: here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.data.persons import check_persons
from privatest.data.schema import NumericColumn, Schema
from privatest.data.tables import Table, read_data

__all__ = [
    "Bounds",
    "bounds_of_measurements",
    "bounds_of_sides",
    "numbered_names",
    "schema_of",
]

Bounds: TypeAlias = (
    Schema
    | Mapping[str, Sequence[float]]
    | Sequence[float]
    | Sequence[Sequence[float]]
    | NDArray[Any]
    | None
)


def schema_of(bounds: Bounds, *data: Table) -> Schema | None:
    """Return the schema that public bounds stand for, or None without bounds.

    Parameters
    ----------
    bounds : None, (lower, upper), (d, 2) array, mapping of names to (lower, upper), or Schema
        One pair is for all columns. Bounds by name need data with names: the order of a mapping
        is not meant to be that of columns.
    *data : Table
        What the bounds are for, of one width; it gives the columns their names, else they are
        x1, x2, ... Without data there is a column for each pair.
    """
    if bounds is None or isinstance(bounds, Schema):
        return bounds
    if isinstance(bounds, Mapping):
        schema = Schema.from_bounds(bounds)
        for table in data:
            _check_names(schema, table)
        return schema
    pairs = _pairs(bounds, data[0].width if data else None)
    names = next((table.names for table in data if table.names is not None), ())
    if len(set(names)) < len(pairs):  # none, or some more than once
        names = numbered_names(len(pairs))
    columns = (NumericColumn(lower, upper) for lower, upper in pairs.tolist())
    return Schema(dict(zip(names, columns, strict=True)))


def numbered_names(width: int) -> tuple[str, ...]:
    """Return x1, x2, ...: what columns without names are called."""
    return tuple(f"x{place}" for place in range(1, width + 1))


def bounds_of_sides(bounds: Any, x: object, y: object) -> tuple[Bounds, Bounds]:
    """Part the bounds of the two sides of paired rows.

    One pair is for all columns, and two of anything are for x and for y. A schema or a mapping
    is parted by the names of the columns; a schema, or a pair for each column of both sides,
    also by their order.
    """
    bounds = check_persons(bounds, [x, y], together=False)  # a pair is one row
    left, right = read_data(x, "x"), read_data(y, "y")
    both = left.width + right.width
    if isinstance(bounds, (Schema, Mapping)):
        schema = bounds if isinstance(bounds, Schema) else Schema.from_bounds(bounds)
        sides = [[n for n in schema.columns if n in (t.labels or ())] for t in (left, right)]
        if not all(sides) and isinstance(bounds, Mapping):
            raise ParameterError(
                "bounds by name must have the names of x and y: tables or named series."
            )
        if not all(sides) and len(schema.columns) == both:
            names = list(schema.columns)
            sides = [names[: left.width], names[left.width :]]
        if not all(sides):
            raise ParameterError("bounds must describe the columns of x and those of y.")
        return schema.select(sides[0]), schema.select(sides[1])
    parts = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds
    if not isinstance(parts, (list, tuple)) or all(isinstance(part, Real) for part in parts):
        return bounds, bounds
    if len(parts) == 2:
        return parts[0], parts[1]
    if len(parts) == both:
        return parts[: left.width], parts[left.width :]
    return bounds, bounds


def bounds_of_measurements(bounds: Any, x: object, y: object) -> tuple[Bounds, Bounds]:
    """Part the bounds of two measurements of the same rows: a schema of one column is for both."""
    alike = isinstance(bounds, Schema) and len(bounds.columns) == 1
    return (bounds, bounds) if alike else bounds_of_sides(bounds, x, y)


def _check_names(schema: Schema, table: Table) -> None:
    if table.labels is None and not table.shapeless:
        raise ParameterError(
            "bounds must be (lower, upper), a pair for each column, or a Schema: bounds by "
            "name are for a data frame, a table or a named series, not for plain arrays."
        )
    if table.title is not None and tuple(schema.columns) != table.labels:
        raise ParameterError(
            f"bounds must be {{{table.title!r}: (lower, upper)}}, the name of the series, "
            "or just (lower, upper)."
        )


def _pairs(bounds: object, width: int | None) -> NDArray[np.float64]:
    """Return public bounds as one (lower, upper) for each column."""
    try:
        pairs = np.asarray(bounds)
    except ValueError:  # ragged
        pairs = np.empty(0)
    if width is None:
        width = len(pairs) if pairs.ndim == 2 and len(pairs) else 1
    if pairs.dtype.kind not in "iuf" or pairs.shape not in {(2,), (width, 2)}:
        # not quoted: what has another shape may be data, passed here by mistake
        raise ParameterError(
            f"bounds must be (lower, upper), a pair for each of the {width} columns, or a Schema."
        )
    pairs = np.broadcast_to(pairs.astype(np.float64), (width, 2))
    with np.errstate(over="ignore", invalid="ignore"):
        size = pairs[:, 1] - pairs[:, 0]
    good = np.isfinite(size) & (size > 0)
    if not good.all():
        where = f" (see column {int(np.argmin(good)) + 1})" if width > 1 else ""
        raise ParameterError(
            f"bounds must be two finite numbers, the lower below the upper{where}."
        )
    return pairs
