"""Fit data to its public description: rows become floats, and what does not fit is refused.

Messages name the parameter, the column and the rule that was broken, never a value or a row.
The caller's data is never changed, and temporary arrays are small.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privatest.columns import (
    BLOCK,
    check_finite,
    fill_codes,
    fill_numbers,
    one_column,
    refuse_missing,
    to_unit,
)
from privatest.domain import Domain
from privatest.errors import DataError, ParameterError
from privatest.schema import CategoricalColumn, Column, NumericColumn, Schema
from privatest.validation import reject

if TYPE_CHECKING:
    pass

__all__ = [
    "Bounds",
    "EncodedSample",
    "EncodedSamples",
    "encode_pairs",
    "encode_sample",
    "encode_samples",
    "encode_table",
]

Bounds: TypeAlias = Schema | Sequence[float] | Sequence[Sequence[float]] | NDArray[Any] | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class EncodedSamples:
    """Two samples in one public domain, and the unit that is to be hidden."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    domain: Domain
    unit: str = "row"
    rows_per_person: int = 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EncodedSample:
    """One sample in its public domain, and the unit that is to be hidden."""

    rows: NDArray[np.float64]
    domain: Domain
    unit: str = "row"
    rows_per_person: int = 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Table:
    """Columns of any origin, fetched one at a time."""

    names: tuple[str, ...] | None
    width: int
    column: Callable[[int], Any]
    array: NDArray[Any] | None = None  # all columns, where they are one NumPy array


def encode_samples(x: object, y: object, bounds: Bounds) -> EncodedSamples:
    """Encode two samples of the same columns.

    Parameters
    ----------
    x, y : array, data frame, series or Arrow table
        One row per observation; one dimension is one column. NumPy, nested lists, pandas,
        Polars, Arrow, and mappings of names to columns.
    bounds : None, (lower, upper), (d, 2) array or Schema
        Public bounds of all columns, of each, or a description. A schema finds the columns of
        a frame by name and those of an array by position. With None numbers are taken as they
        are and must be finite.

    Returns
    -------
    EncodedSamples
        New arrays; with ``bounds=None`` read-only views where the data has the right form.
        There may be no rows.
    """
    first, second = _read(x, "x"), _read(y, "y")
    if isinstance(bounds, Schema):
        left, right = _by_schema(first, bounds, "x"), _by_schema(second, bounds, "y")
        return EncodedSamples(left, right, bounds.domain, bounds.unit, bounds.rows_per_person)
    if first.width != second.width:
        raise DataError(
            f"x and y must have the same columns: x has {first.width}, y has {second.width}."
        )
    if first.names is not None and second.names is not None:
        second = _arranged(second, first.names, "y")
    pairs = None if bounds is None else _pairs(bounds, first.width)
    left, right = _by_bounds(first, pairs, "x"), _by_bounds(second, pairs, "y")
    return EncodedSamples(left, right, Domain((0,) * first.width, bounded=pairs is not None))


def encode_pairs(
    x: object, y: object, bounds_x: Bounds, bounds_y: Bounds
) -> tuple[EncodedSample, EncodedSample]:
    """Encode the two sides of paired rows, each with its own columns and bounds.

    Parameters
    ----------
    x, y : array, data frame, series or Arrow table
        Row i of ``x`` belongs to row i of ``y``.
    bounds_x, bounds_y : None, (lower, upper), (d, 2) array or Schema
        As in :func:`encode_samples`.
    """
    left, right = encode_sample(x, bounds_x, "x"), encode_sample(y, bounds_y, "y")
    if len(left.rows) != len(right.rows):
        raise DataError("x and y must have the same number of rows: row i of x belongs to y's.")
    if left.rows_per_person != right.rows_per_person:
        raise ParameterError("bounds_x and bounds_y must have the same rows_per_person.")
    return left, right


def encode_sample(data: object, bounds: Bounds, name: str = "x") -> EncodedSample:
    """Encode one sample; ``name`` is what messages call it."""
    source = _read(data, name)
    if isinstance(bounds, Schema):
        rows = _by_schema(source, bounds, name)
        return EncodedSample(rows, bounds.domain, bounds.unit, bounds.rows_per_person)
    pairs = None if bounds is None else _pairs(bounds, source.width)
    domain = Domain((0,) * source.width, bounded=pairs is not None)
    return EncodedSample(_by_bounds(source, pairs, name), domain)


def encode_table(schema: Schema, table: object) -> NDArray[np.float64]:
    """Encode the columns that ``schema`` names; see :meth:`Schema.encode`."""
    source = _read(table, "table")
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
    if not (np.isfinite(size) & (size > 0)).all():
        reject("bounds", "finite numbers, each lower below its upper", pairs.tolist())
    return pairs


# --- reading ---------------------------------------------------------------------------------


def _read(data: Any, name: str) -> _Table:
    """Find the columns of whatever was passed."""
    pandas = sys.modules.get("pandas")  # not imported: whoever passes a frame has done so
    if pandas is not None and isinstance(data, pandas.Series):
        return _Table(None, 1, lambda _: data)
    if pandas is not None and isinstance(data, pandas.DataFrame):
        names = tuple(str(label) for label in data.columns)
        table = _Table(names, len(names), lambda index: data.iloc[:, index])
    elif isinstance(data, Mapping):
        table = _Table(tuple(map(str, data)), len(data), list(data.values()).__getitem__)
    elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        table = _read_arrow(data)
    else:
        table = _read_array(data, name)
    if table.width == 0:
        raise DataError(f"{name} must have at least one column.")
    return table


def _read_arrow(data: Any) -> _Table:
    import pyarrow as pa  # noqa: PLC0415

    if hasattr(data, "to_arrow"):  # Polars: gives text in a form that older Arrows know too
        data = data.to_arrow()
    if not isinstance(data, (pa.Table, pa.RecordBatch, pa.ChunkedArray, pa.Array)):
        data = pa.chunked_array(data) if hasattr(data, "__arrow_c_stream__") else pa.array(data)
    if isinstance(data, (pa.ChunkedArray, pa.Array)):
        if not pa.types.is_struct(data.type):
            return _Table(None, 1, lambda _: data)
        data = pa.Table.from_struct_array(data)
    return _Table(tuple(data.schema.names), len(data.schema.names), data.column)


def _read_array(data: Any, name: str) -> _Table:
    if np.ma.is_masked(data):
        refuse_missing(name)
    try:
        array = np.asarray(data)
    except ValueError:
        raise DataError(f"{name} must have rows of one length.") from None
    if array.ndim not in (1, 2) or array.dtype.kind == "V":
        raise DataError(f"{name} must be a data frame, or an array of one or two dimensions.")
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    return _Table(None, array.shape[1], lambda index: array[:, index], array)


def _arranged(source: _Table, names: tuple[str, ...], name: str) -> _Table:
    """Pick columns by their names."""
    own = source.names or ()
    for wanted in names:
        if own.count(wanted) != 1:
            problem = "occurs more than once" if wanted in own else "is missing"
            columns = ", ".join(own)
            raise DataError(f"{_label(wanted, name)} {problem}; the columns are: {columns}.")
    order = [own.index(wanted) for wanted in names]
    return _Table(names, len(names), lambda index: source.column(order[index]))


def _label(column: str, name: str) -> str:
    return f"column {column!r} of {name}" if name else f"column {column!r}"


# --- converting ------------------------------------------------------------------------------


def _by_schema(source: _Table, schema: Schema, name: str) -> NDArray[np.float64]:
    names = tuple(schema.columns)
    if source.names is not None:
        source = _arranged(source, names, name)
    elif source.width != len(names):
        raise DataError(
            f"{name} must have the schema's {len(names)} columns ({', '.join(names)}); "
            f"it has {source.width}."
        )
    labels = [_label(column, name) for column in names]
    return _by_columns(source, list(schema.columns.values()), labels)


def _by_bounds(source: _Table, pairs: NDArray[np.float64] | None, name: str) -> NDArray[np.float64]:
    if source.array is not None and source.array.dtype.kind not in "biuf":
        raise DataError(f"{name} must hold real numbers; describe categories by a Schema.")
    if source.array is not None:
        if pairs is None:
            return _as_it_is(source.array, name)
        return _to_box(source.array, pairs, name)
    columns = [None] * source.width if pairs is None else [NumericColumn(*pair) for pair in pairs]
    if source.names is not None:
        labels = [_label(own, name) for own in source.names]
    elif source.width == 1:
        labels = [name]
    else:
        labels = [f"column {index} of {name}" for index in range(1, source.width + 1)]
    return _by_columns(source, columns, labels)


def _to_box(array: NDArray[Any], pairs: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Map the columns of an array to [0, 1], a block of rows at a time."""
    rows = np.empty(array.shape)
    for start in range(0, len(array), BLOCK):
        block = array[start : start + BLOCK].astype(np.float64, copy=False)
        if np.isnan(block).any():
            column = int(np.flatnonzero(np.isnan(block).any(axis=0))[0]) + 1
            refuse_missing(name if array.shape[1] == 1 else f"column {column} of {name}")
        to_unit(block, pairs[:, 0], pairs[:, 1], rows[start : start + BLOCK])
    return rows


def _as_it_is(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        rows = np.asarray(array, dtype=np.float64).view()
    rows.flags.writeable = False  # it may be the caller's own
    for start in range(0, len(rows), BLOCK):
        check_finite(rows[start : start + BLOCK], name)
    return rows


def _by_columns(
    source: _Table, columns: Sequence[Column | None], labels: Sequence[str]
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
            fill_numbers(rows[:, index], values, column, label)
    return rows
