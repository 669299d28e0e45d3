"""Fit data to its public description: rows become floats, and what does not fit is refused.

Messages name the parameter, the column and the rule that was broken, never a value or a row.
The caller's data is never changed, and temporary arrays are small.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privatest.domain import Domain
from privatest.errors import DataError, ParameterError
from privatest.schema import (
    LABEL_TYPES,
    CategoricalColumn,
    Column,
    NumericColumn,
    Schema,
    category_codes,
    is_number,
    spelling,
)
from privatest.validation import reject

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MISSING_TEXT",
    "Bounds",
    "EncodedSample",
    "EncodedSamples",
    "encode_pairs",
    "encode_samples",
    "encode_table",
]

Bounds: TypeAlias = Schema | Sequence[float] | Sequence[Sequence[float]] | NDArray[Any] | None

# How missing values are spelled in text; a declared category of the same spelling wins.
MISSING_TEXT = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")

_BLOCK = 16_384  # rows converted at a time
_UNKNOWN, _MISSING = -1, -2
_NUMERAL = re.compile(r"[+-]?(\d{1,30}\.?\d{0,30}|\.\d{1,30})([eE][+-]?\d{1,3})?", re.ASCII)


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
    left, right = _encode_one(x, bounds_x, "x"), _encode_one(y, bounds_y, "y")
    if len(left.rows) != len(right.rows):
        raise DataError("x and y must have the same number of rows: row i of x belongs to y's.")
    if left.rows_per_person != right.rows_per_person:
        raise ParameterError("bounds_x and bounds_y must have the same rows_per_person.")
    return left, right


def _encode_one(data: object, bounds: Bounds, name: str) -> EncodedSample:
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
        _refuse_missing(name)
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


def _one_column(values: Any, label: str) -> Any:
    """Return a NumPy array of numbers, or an Arrow array of anything."""
    if np.ma.is_masked(values):
        _refuse_missing(label)
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biuf":
        return np.asarray(values)
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    try:
        values = values.to_arrow() if hasattr(values, "to_arrow") else values
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise DataError(f"{label} must be one column of numbers or of text.") from None


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
    if source.array is not None and pairs is None:
        return _as_it_is(source.array, name)
    columns = [None] * source.width if pairs is None else [NumericColumn(*pair) for pair in pairs]
    if source.names is not None:
        labels = [_label(own, name) for own in source.names]
    elif source.width == 1:
        labels = [name]
    else:
        labels = [f"column {index} of {name}" for index in range(1, source.width + 1)]
    return _by_columns(source, columns, labels)


def _as_it_is(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        rows = np.asarray(array, dtype=np.float64).view()
    rows.flags.writeable = False  # it may be the caller's own
    for start in range(0, len(rows), _BLOCK):
        _check_finite(rows[start : start + _BLOCK], name)
    return rows


def _by_columns(
    source: _Table, columns: Sequence[Column | None], labels: Sequence[str]
) -> NDArray[np.float64]:
    rows = np.empty((0, 0))
    for index, (column, label) in enumerate(zip(columns, labels, strict=True)):
        values = _one_column(source.column(index), label)
        if index == 0:
            rows = np.empty((len(values), len(columns)))
        elif len(values) != len(rows):
            raise DataError(f"{label} must be as long as the other columns.")
        if isinstance(column, CategoricalColumn):
            _fill_codes(rows[:, index], values, column, label)
        else:
            _fill_numbers(rows[:, index], values, column, label)
    return rows


def _fill_numbers(
    out: NDArray[np.float64], values: Any, column: NumericColumn | None, label: str
) -> None:
    end = 0
    for numbers in _number_blocks(values, label):
        start, end = end, end + len(numbers)
        if column is None:
            _check_finite(numbers, label)
            out[start:end] = numbers
            continue
        absent = np.isnan(numbers)
        if absent.any():
            if column.missing == "refuse":
                _refuse_missing(label)
            numbers = np.where(absent, column.missing, numbers)  # noqa: PLW2901
        if column.integer and not np.array_equal(numbers, np.floor(numbers)):
            raise DataError(f"{label} has a value that is not an integer; its rule is integer.")
        _to_unit(numbers, column.lower, column.upper, out[start:end])


def _number_blocks(values: Any, label: str) -> Iterator[NDArray[np.float64]]:
    """Yield a column as floats, NaN where a value is missing; not to be written to."""
    if isinstance(values, np.ndarray):
        for start in range(0, len(values), _BLOCK):
            yield values[start : start + _BLOCK].astype(np.float64, copy=False)
        return
    import pyarrow as pa  # noqa: PLC0415

    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if str(kind) not in {"bool", "null"} and not is_number(kind):
        raise DataError(f"{label} must hold numbers; it holds another type.")
    for block in _blocks(values):
        numbers = block.dictionary_decode() if pa.types.is_dictionary(block.type) else block
        # safe would refuse integers beyond 2^53, and quote them
        yield numbers.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _fill_codes(
    out: NDArray[np.float64], values: Any, column: CategoricalColumn, label: str
) -> None:
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(values, np.ndarray):  # Arrow takes neither extended floats nor swapped bytes
        native = np.float64 if values.dtype.kind == "f" else values.dtype.newbyteorder("=")
        values = pa.array(values.astype(native, copy=False))
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if str(kind) != "null" and str(kind) not in LABEL_TYPES and not is_number(kind):
        raise DataError(f"{label} must hold text, numbers or true and false.")
    known, end = category_codes(column.categories), 0
    for block in _blocks(values):
        start, end = end, end + len(block)
        chunk = block if pa.types.is_dictionary(block.type) else block.dictionary_encode()
        codes = [_code(value, column, known) for value in chunk.dictionary.to_pylist()]
        # missing values point behind the dictionary; its own index type may be too short
        indices = chunk.indices.cast(pa.int64()).fill_null(len(codes)).to_numpy()
        found = np.array([*codes, _MISSING])[indices]
        if (found == _UNKNOWN).any():
            raise DataError(f"{label} has a value outside its declared categories.")
        if (found == _MISSING).any():
            if column.missing == "refuse":
                _refuse_missing(label)
            found[found == _MISSING] = known[spelling(column.missing)]
        out[start:end] = found


def _code(value: Any, column: CategoricalColumn, codes: Mapping[str, int]) -> int:
    """Return the code of the category that a value of the data means."""
    if value is None or value != value:  # noqa: PLR0124 - NaN
        return _MISSING
    code = codes.get(spelling(value), _UNKNOWN)
    if code != _UNKNOWN or not isinstance(value, str):
        return code
    if value in MISSING_TEXT:
        return _MISSING
    text = value.strip()
    if not _NUMERAL.fullmatch(text):
        return _UNKNOWN
    code = codes.get(spelling(float(text) if set(text) & set(".eE") else int(text)), _UNKNOWN)
    # only a category that is a number may be spelled in several ways
    return code if code != _UNKNOWN and not isinstance(column.categories[code], str) else _UNKNOWN


def _to_unit(values: Any, lower: Any, upper: Any, out: NDArray[np.float64]) -> None:
    """Clip to the bounds and map them to [0, 1]; NaN stays."""
    np.clip(values, lower, upper, out=out)
    out -= lower
    out /= upper - lower
    np.clip(out, 0.0, 1.0, out=out)  # rounding must not leave the domain


def _blocks(values: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in values.chunks if hasattr(values, "chunks") else [values]:
        # a dictionary would be gone through again for each block
        size = max(len(chunk), 1) if hasattr(chunk, "dictionary") else _BLOCK
        for start in range(0, len(chunk), size):
            yield chunk.slice(start, size)


def _check_finite(numbers: NDArray[np.float64], label: str) -> None:
    if not np.isfinite(numbers).all():
        if np.isnan(numbers).any():
            _refuse_missing(label)
        raise DataError(f"{label} has an infinite value; with bounds it would be clipped.")


def _refuse_missing(label: str) -> NoReturn:
    raise DataError(f'{label} has a missing value; the rule is missing = "refuse".')
