"""Fit data to its public description: rows become floats, and what does not fit is refused.

Messages name the parameter, the column and the rule that was broken, never a value or a row.
The caller's data is never changed, and temporary arrays are small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.validation import listed
from privatest.data.columns import (
    BLOCK,
    Units,
    as_floats,
    check_finite,
    fill_codes,
    fill_numbers,
    one_column,
    placed,
    refuse_missing,
)
from privatest.data.domain import Domain
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema
from privatest.data.tables import Table, arranged, label_of, read_data

__all__ = [
    "Bounds",
    "EncodedSample",
    "EncodedSamples",
    "Unnamed",
    "described",
    "encode_pairs",
    "encode_sample",
    "encode_samples",
    "encode_table",
]

Unnamed: TypeAlias = Schema | Sequence[float] | Sequence[Sequence[float]] | NDArray[Any] | None
Bounds: TypeAlias = Unnamed | Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class EncodedSamples:
    """Two samples in one public domain, and the unit that is to be hidden."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    domain: Domain
    unit: str = "row"
    rows_per_person: int = 1
    names: tuple[str, ...] | None = None  # of the columns, where the schema or the data has them


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EncodedSample:
    """One sample in its public domain, and the unit that is to be hidden."""

    rows: NDArray[np.float64]
    domain: Domain
    unit: str = "row"
    rows_per_person: int = 1
    names: tuple[str, ...] | None = None  # of the columns, where the schema or the data has them


def encode_samples(x: object, y: object, bounds: Bounds) -> EncodedSamples:
    """Encode two samples of the same columns.

    Parameters
    ----------
    x, y : array, data frame, series or Arrow table
        One row per observation; one dimension is one column. NumPy, nested lists, pandas,
        Polars, Arrow, and mappings of names to columns.
    bounds : None, (lower, upper), (d, 2) array, mapping of names to (lower, upper), or Schema
        Public bounds of all columns, of each, or a description. A mapping or a schema finds the
        columns of a frame by name; a schema those of an array by position. With None numbers
        are taken as they are and must be finite.

    Returns
    -------
    EncodedSamples
        New arrays; with ``bounds=None`` read-only views where the data has the right form.
        There may be no rows.
    """
    bounds = described(bounds, x, y)
    first, second = read_data(x, "x"), read_data(y, "y")
    first, second = first.with_columns(second.width), second.with_columns(first.width)
    if isinstance(bounds, Schema):
        left, right = _by_schema(first, bounds, "x"), _by_schema(second, bounds, "y")
        return EncodedSamples(left, right, **_facts(bounds))
    if first.width != second.width:
        raise DataError(
            f"x and y must have the same columns: x has {first.width}, y has {second.width}."
        )
    if first.names is not None and second.names is not None:
        second = arranged(second, first.names, "y")
    pairs = None if bounds is None else _pairs(bounds, first.width)
    left, right = _by_bounds(first, pairs, "x"), _by_bounds(second, pairs, "y")
    domain = Domain((0,) * first.width, bounded=pairs is not None)
    return EncodedSamples(left, right, domain, names=first.labels or second.labels)


def encode_pairs(
    x: object, y: object, bounds_x: Bounds, bounds_y: Bounds, *, units: Units = "box"
) -> tuple[EncodedSample, EncodedSample]:
    """Encode the two sides of paired rows, each with its own columns and bounds.

    Parameters
    ----------
    x, y : array, data frame, series or Arrow table
        Row i of ``x`` belongs to row i of ``y``.
    bounds_x, bounds_y : None, (lower, upper), (d, 2) array, mapping of names to pairs, or Schema
        As in :func:`encode_samples`.
    units : {"box", "own"}
        As in :func:`encode_sample`.
    """
    left = encode_sample(x, bounds_x, "x", units=units)
    right = encode_sample(y, bounds_y, "y", units=units)
    if len(left.rows) != len(right.rows):
        raise DataError("x and y must have the same number of rows: row i of x belongs to y's.")
    if left.rows_per_person != right.rows_per_person:
        raise ParameterError("bounds_x and bounds_y must have the same rows_per_person.")
    return left, right


def encode_sample(
    data: object, bounds: Bounds, name: str = "x", *, units: Units = "box"
) -> EncodedSample:
    """Encode one sample; ``name`` is what messages call it.

    With ``units="own"`` numbers are clipped to their bounds but not mapped to [0, 1]: equal
    values stay equal to the last bit, whatever their bounds.
    """
    bounds = described(bounds, data)
    source = read_data(data, name)
    if isinstance(bounds, Schema):
        facts = _facts(bounds)
        if units == "own":
            facts["domain"] = Domain(bounds.domain.levels, bounded=False)
        return EncodedSample(_by_schema(source, bounds, name, units), **facts)
    pairs = None if bounds is None else _pairs(bounds, source.width)
    domain = Domain((0,) * source.width, bounded=pairs is not None and units == "box")
    rows = _by_bounds(source, pairs, name, units)
    return EncodedSample(rows, domain, names=source.labels)


def described(bounds: Bounds, *data: object) -> Unnamed:
    """Return bounds by name as the schema that they are; other bounds as they are.

    Call it first where bounds are used for more than encoding ``data``. Data without names is
    refused: the order of a mapping is not meant to be that of columns.
    """
    if not isinstance(bounds, Mapping):
        return bounds
    schema = Schema.from_bounds(bounds)
    for source in (read_data(each, "data") for each in data):
        if source.labels is None and not source.shapeless:
            raise ParameterError(
                "bounds must be (lower, upper), a pair for each column, or a Schema: bounds by "
                "name are for a data frame, a table or a named series, not for plain arrays."
            )
        if source.title is not None and tuple(schema.columns) != source.labels:
            raise ParameterError(
                f"bounds must be {{{source.title!r}: (lower, upper)}}, the name of the series, "
                "or just (lower, upper)."
            )
    return schema


def _facts(schema: Schema) -> dict[str, Any]:
    return {
        "domain": schema.domain,
        "unit": schema.unit,
        "rows_per_person": schema.rows_per_person,
        "names": tuple(schema.columns),
    }


def encode_table(schema: Schema, table: object) -> NDArray[np.float64]:
    """Encode the columns that ``schema`` names; see :meth:`Schema.encode`."""
    source = read_data(table, "table")
    if source.names is None:
        raise DataError("table must have named columns: a data frame, a table or a mapping.")
    return _by_schema(source, schema, "")


def _pairs(bounds: object, width: int) -> NDArray[np.float64]:
    """Return public bounds as one (lower, upper) for each column."""
    try:
        pairs = np.asarray(bounds)
    except ValueError:  # ragged
        pairs = np.empty(0)
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


def _by_schema(
    source: Table, schema: Schema, name: str, units: Units = "box"
) -> NDArray[np.float64]:
    names = tuple(schema.columns)
    source = source.with_columns(len(names))
    if source.names is not None:
        source = arranged(source, names, name)
    elif source.width != len(names):
        raise DataError(
            f"{name} must have the schema's {len(names)} columns ({listed(names)}); "
            f"it has {source.width}."
        )
    labels = [label_of(column, name) for column in names]
    return _by_columns(source, list(schema.columns.values()), labels, units)


def _by_bounds(
    source: Table, pairs: NDArray[np.float64] | None, name: str, units: Units = "box"
) -> NDArray[np.float64]:
    if source.array is not None and source.array.dtype.kind not in "biuf":
        raise DataError(f"{name} must hold real numbers; describe categories by a Schema.")
    if source.array is not None:
        if pairs is None:
            return _as_it_is(source.array, name)
        return _placed_array(source.array, pairs, name, units)
    columns = [None] * source.width if pairs is None else [NumericColumn(*pair) for pair in pairs]
    if source.names is not None:
        labels = [label_of(own, name) for own in source.names]
    elif source.width == 1:
        labels = [name]
    else:
        labels = [f"column {index} of {name}" for index in range(1, source.width + 1)]
    return _by_columns(source, columns, labels, units)


def _placed_array(
    array: NDArray[Any], pairs: NDArray[np.float64], name: str, units: Units
) -> NDArray[np.float64]:
    """Fit the columns of an array to their bounds, a block of rows at a time."""
    rows = np.empty(array.shape)
    for start in range(0, len(array), BLOCK):
        block = as_floats(array[start : start + BLOCK])
        if np.isnan(block).any():
            column = int(np.flatnonzero(np.isnan(block).any(axis=0))[0]) + 1
            refuse_missing(name if array.shape[1] == 1 else f"column {column} of {name}")
        placed(block, pairs[:, 0], pairs[:, 1], units, rows[start : start + BLOCK])
    return rows


def _as_it_is(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    rows = as_floats(array).view()
    rows.flags.writeable = False  # it may be the caller's own
    for start in range(0, len(rows), BLOCK):
        check_finite(rows[start : start + BLOCK], name)
    return rows


def _by_columns(
    source: Table, columns: Sequence[Column | None], labels: Sequence[str], units: Units
) -> NDArray[np.float64]:
    rows = np.empty((0, 0))
    for index, (column, label) in enumerate(zip(columns, labels, strict=True)):
        values = one_column(source.column(index), label)
        if index == 0:
            rows = np.empty((len(values), len(columns)))
        elif len(values) != len(rows):
            raise DataError(f"{label} must be as long as the other columns.")
        if isinstance(column, CategoricalColumn):
            fill_codes(rows[:, index], values, column, label)
        else:
            fill_numbers(rows[:, index], values, column, label, units)
    return rows
