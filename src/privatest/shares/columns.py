"""The public columns of a plan, as JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.validation import reject
from privatest.data.encoding import described
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema
from privatest.data.tables import read_data
from privatest.shares.document import field

__all__ = ["read_columns", "schema_for", "schema_of", "written_columns"]


def schema_for(x: Any, bounds: Any) -> Schema:
    """Return the schema of ``bounds`` for the columns of ``x``: one pair is for all of them."""
    if isinstance(bounds, (Schema, Mapping)):
        return schema_of(described(bounds, x))
    data, columns = read_data(x, "x"), list(schema_of(bounds).columns.values())
    if np.ndim(bounds) == 1:
        columns *= data.width
    if len(columns) != data.width:
        raise ParameterError(
            f"bounds must be (lower, upper), a pair for each of the {data.width} columns, or a "
            "Schema."
        )
    names = data.names or [f"x{place}" for place in range(1, data.width + 1)]
    return Schema(dict(zip(names, columns, strict=True)))


def schema_of(bounds: Any) -> Schema:
    """Return the schema of what a caller may pass as bounds."""
    if isinstance(bounds, Schema):
        return bounds
    if isinstance(bounds, Mapping):
        return Schema.from_bounds(bounds)
    try:
        pairs = np.array(bounds, dtype=np.float64)
    except (TypeError, ValueError):
        pairs = np.empty(0)
    if pairs.shape == (2,):
        pairs = pairs[None, :]
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        reject("bounds", "a Schema, named pairs, a pair, or one pair for each column", bounds)
    named = {f"x{place}": (low, high) for place, (low, high) in enumerate(pairs.tolist(), 1)}
    return Schema.from_bounds(named)


def written_columns(schema: Schema) -> list[dict[str, Any]]:
    """Return the columns in their order, as plain values."""
    return [{"name": name} | _written(column) for name, column in schema.columns.items()]


def _written(column: Column) -> dict[str, Any]:
    if isinstance(column, NumericColumn):
        bounds = [column.lower, column.upper]
        shape: dict[str, Any] = {"type": "numeric", "bounds": bounds, "integer": column.integer}
    else:
        shape = {"type": "categorical", "categories": list(column.categories)}
    return shape | {"missing": column.missing}


def read_columns(parameters: Mapping[str, Any]) -> Schema:
    """Return the schema of what :func:`written_columns` wrote."""
    columns: dict[str, Column] = {}
    for entry in field(parameters, "columns", list):
        if not isinstance(entry, dict):
            raise DataError("its 'columns' do not describe columns.")
        name = field(entry, "name", str)
        if name in columns or not name.isprintable():
            raise DataError("its 'columns' have a name twice, or one that cannot be printed.")
        try:
            columns[name] = _read(entry)
        except ParameterError as error:
            raise DataError(f"its column {name!r} cannot be used: {error}") from None
    return Schema(columns, field(parameters, "rows_per_person", int))


def _read(entry: Mapping[str, Any]) -> Column:
    kind, missing = field(entry, "type", str), entry.get("missing")
    if kind == "categorical":
        categories = field(entry, "categories", list)
        return CategoricalColumn(tuple(categories), missing=missing)  # type: ignore[arg-type]
    bounds = field(entry, "bounds", list)
    if kind != "numeric" or len(bounds) != 2:
        raise DataError("its 'columns' do not describe columns.")
    lower, upper = bounds
    integer = field(entry, "integer", bool)
    return NumericColumn(lower, upper, integer=integer, missing=missing)  # type: ignore[arg-type]
