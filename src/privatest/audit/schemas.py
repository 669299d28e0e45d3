"""Public descriptions of the made-up columns: plain bounds, and those that strain floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from privatest.data.schema import CategoricalColumn, NumericColumn, Schema

__all__ = ["SCHEMAS", "Bounds", "with_three_groups"]

Bounds = Literal["unit", "offset", "wide", "missing"]


def _schema(low: float, high: float, missing: float | Literal["refuse"] = "refuse") -> Schema:
    filled = missing != "refuse"
    return Schema(
        {
            "x": NumericColumn(low, high, missing=missing),
            "y": NumericColumn(low, high, missing=missing),
            "count": NumericColumn(0.0, 4.0, integer=True, missing=0 if filled else "refuse"),
            "colour": CategoricalColumn(
                ("red", "green", "blue"), missing="red" if filled else "refuse"
            ),
            "yes": CategoricalColumn(("no", "yes"), missing="no" if filled else "refuse"),
            "group": CategoricalColumn(("a", "b")),
            "arm": CategoricalColumn(("a", "b"), membership="public"),
        }
    )


def with_three_groups(schema: Schema) -> Schema:
    """Return the schema with a third group, private and public."""
    three = {
        "group": CategoricalColumn(("a", "b", "c")),
        "arm": CategoricalColumn(("a", "b", "c"), membership="public"),
    }
    return replace(schema, columns={**schema.columns, **three})


SCHEMAS: Mapping[Bounds, Schema] = {
    "unit": _schema(0.0, 1.0),
    "offset": _schema(1e9, 1e9 + 1),  # a width of 2^-30 of the values
    "wide": _schema(-(2.0**40), 2.0**40),
    "missing": _schema(0.0, 1.0, 0.5),  # a missing value has a public meaning
}
