"""The public columns of a plan, as JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privatest.core.errors import DataError, ParameterError
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema
from privatest.shares.document import field

__all__ = ["read_columns", "written_columns"]


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
