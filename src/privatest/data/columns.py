"""Columns of data checked against their descriptions and converted to floats.

Messages name the column and the rule that was broken, never a value or a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.data.schema import (
    LABEL_TYPES,
    MISSING,
    UNKNOWN,
    CategoricalColumn,
    Categories,
    Column,
    NumericColumn,
    is_number,
    spelling,
)

if TYPE_CHECKING:
    import pyarrow as pa

Units = Literal["box", "own"]  # numbers mapped to [0, 1] by their bounds, or only clipped

MISSING_RULE = (
    'the rule is missing = "refuse". A schema can name a public value that it counts as instead.'
)
_BLOCK = 32_768  # rows converted at a time
_COLUMN_BLOCK = 65_536  # of one column
_PADDING = 8  # numbers between two columns
_TRANSPOSED = 1 << 17  # rows that may be held twice


@dataclass(frozen=True, slots=True)
class Encoder:
    """Writes columns as floats; it is pickled and sent to other processes.

    Parameters
    ----------
    columns : tuple of Column or None
        Descriptions of the columns in their order; None takes numbers as they are.
    labels : tuple of str
        Names of the columns in messages.
    units : {"box", "own"}
        Whether numbers are mapped to [0, 1] by their bounds, or only clipped to them.
    """

    columns: tuple[Column | None, ...]
    labels: tuple[str, ...]
    units: Units

    @property
    def only_bounds(self) -> bool:
        """Whether all columns are numbers that only need to be clipped and mapped."""
        return all(map(_has_only_bounds, self.columns))

    def encode_array(self, array: NDArray[Any]) -> NDArray[np.float64]:
        """Encode an array of numbers, a block of rows at a time, if :attr:`only_bounds`."""
        rows, (lower, upper) = np.empty(array.shape), self._bounds(range(array.shape[1]))
        if np.ptp(lower) == np.ptp(upper) == 0:  # twice as fast
            lower, upper = lower[0], upper[0]
        for start in range(0, len(array), _BLOCK):
            block = as_floats(array[start : start + _BLOCK])
            if np.isnan(block).any():
                refuse_missing(self.labels[int(np.argmax(np.isnan(block).any(axis=0)))])
            _fit(block, lower, upper, self.units, rows[start : start + _BLOCK])
        return rows

    def encode_columns(self, column_at: Callable[[int], Any]) -> NDArray[np.float64]:
        """Encode columns of any kind, fetched one at a time."""
        rows = np.empty((0, 0))
        for index, label in enumerate(self.labels):
            values = one_column(column_at(index), label)
            if index == 0:
                shape = (len(values), len(self.labels))
                # columns are faster to fill apart, if the rows can be held twice
                rows = np.empty(shape) if len(values) > _TRANSPOSED else np.empty(shape[::-1]).T
            elif len(values) != len(rows):
                raise DataError(f"{label} must be as long as the other columns.")
            self._fill(rows, index, values)
        return np.ascontiguousarray(rows)

    def encode_batch(self, batch: pa.RecordBatch, out: NDArray[np.float64]) -> None:
        """Encode a record batch into an array of its size.

        Columns of numbers are fitted to their bounds together: three times as fast as one after
        the other, and the same to the last bit.
        """
        plain: dict[int, NDArray[Any]] = {}
        for index, column in enumerate(self.columns):
            values = batch.column(index)
            if _is_plain(values, column):
                plain[index] = _buffer_of(values)
            else:
                self._fill(out, index, values)
        if out.shape[1] == len(plain) == 1:
            self._fill_only(plain[0], out)
        elif plain:
            self._fill_plain(plain, out)

    def _fill(self, out: NDArray[np.float64], index: int, values: Any) -> None:
        """Write one column: codes of categories, or numbers."""
        column, label = self.columns[index], self.labels[index]
        if isinstance(column, CategoricalColumn):
            _fill_codes(out[:, index], values, column, label)
        else:
            _fill_numbers(out[:, index], values, column, label, self.units)

    def _fill_plain(self, values: dict[int, NDArray[Any]], out: NDArray[np.float64]) -> None:
        """Write several columns of numbers in which only NaN can be missing."""
        indices = list(values)
        bounded = self.columns[indices[0]] is not None  # all of them are, or none
        bounds = self._bounds(indices)[..., None] if bounded else None
        chosen: Any = slice(None) if len(indices) == out.shape[1] else indices
        # columns a power of two apart would share the same few lines of the processor's cache
        buffer = np.empty((len(indices), min(_BLOCK, len(out)) + _PADDING))
        for start in range(0, len(out), _BLOCK):
            rows = out[start : start + _BLOCK]
            block = buffer[:, : len(rows)]
            for row, numbers in zip(block, values.values(), strict=True):
                row[:] = numbers[start : start + _BLOCK]
            if bounds is not None:
                _fit(block, bounds[0], bounds[1], self.units, block)
            self._check(block, indices)
            rows[:, chosen] = block.T

    def _fill_only(self, numbers: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Write the only column directly, without a buffer."""
        block, column = out.T, self.columns[0]
        if isinstance(column, NumericColumn):
            _fit(as_floats(numbers), column.lower, column.upper, self.units, block[0])
        else:
            block[0] = numbers
        self._check(block, [0])

    def _bounds(self, indices: Sequence[int]) -> NDArray[np.float64]:
        columns: Any = [self.columns[index] for index in indices]
        return np.array([(column.lower, column.upper) for column in columns]).T

    def _check(self, block: NDArray[np.float64], indices: Sequence[int]) -> None:
        """Refuse missing values, and without bounds infinite ones."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum()):  # then all are: quicker than to look at each
                return
        for numbers, index in zip(block, indices, strict=True):
            if self.columns[index] is None:
                check_finite(numbers, self.labels[index])
            elif np.isnan(numbers).any():
                refuse_missing(self.labels[index])


def _has_only_bounds(column: Column | None) -> bool:
    return isinstance(column, NumericColumn) and not column.integer and column.missing == "refuse"


def _is_plain(values: Any, column: Column | None) -> bool:
    import pyarrow.types as kinds  # noqa: PLC0415

    number = kinds.is_floating(values.type) or kinds.is_integer(values.type)
    return number and not values.null_count and (column is None or _has_only_bounds(column))


def _buffer_of(values: Any) -> NDArray[Any]:
    """Return plain numbers without a copy; Arrow's own way would import pandas, which is slow."""
    import pyarrow.types as kinds  # noqa: PLC0415

    signed = "i" if kinds.is_signed_integer(values.type) else "u"
    kind = np.dtype(f"{'f' if kinds.is_floating(values.type) else signed}{values.type.byte_width}")
    buffer = values.buffers()[1]
    if not len(values) or buffer is None:
        return np.empty(0, dtype=kind)
    return np.frombuffer(buffer, kind, len(values), values.offset * kind.itemsize)


def one_column(values: Any, label: str) -> Any:
    """Return a NumPy array of numbers, or an Arrow array of anything."""
    masked, array = isinstance(values, np.ma.MaskedArray), isinstance(values, np.ndarray)
    if array and not masked and values.ndim == 1 and values.dtype.kind in "biuf":
        return np.asarray(values)
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    try:
        if masked:  # whether anything is masked depends on people: the steps must not
            plain = np.asarray(values.data)
            plain = as_floats(plain) if plain.dtype.kind == "f" else plain
            return pa.array(plain, mask=np.ma.getmaskarray(values), from_pandas=True)
        values = values.to_arrow() if hasattr(values, "to_arrow") else values  # Polars
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise DataError(f"{label} must be one column of numbers or of text.") from None


def _fill_numbers(
    out: NDArray[np.float64], values: Any, column: NumericColumn | None, label: str, units: Units
) -> None:
    """Write a numeric column within its bounds, or as it is without them."""
    end = 0
    for numbers in _number_blocks(values, label):
        start, end = end, end + len(numbers)
        if column is None:
            check_finite(numbers, label)
            out[start:end] = numbers
            continue
        absent = np.isnan(numbers)
        if column.missing != "refuse":  # the same steps, whether one is missing or not
            numbers = np.where(absent, column.missing, numbers)  # noqa: PLW2901
        elif absent.any():
            refuse_missing(label)
        if column.integer and not np.array_equal(numbers, np.floor(numbers)):
            raise DataError(f"{label} has a value that is not an integer; its rule is integer.")
        _fit(numbers, column.lower, column.upper, units, out[start:end])


def _number_blocks(values: Any, label: str) -> Iterator[NDArray[np.float64]]:
    """Yield a column as floats, NaN where a value is missing; not to be written to."""
    if isinstance(values, np.ndarray):
        for start in range(0, len(values), _COLUMN_BLOCK):
            yield as_floats(values[start : start + _COLUMN_BLOCK])
        return
    import pyarrow as pa  # noqa: PLC0415

    kind = _value_type(values)
    if str(kind) not in {"bool", "null"} and not is_number(kind):
        raise DataError(
            f"{label} must hold numbers, such as -1234.5 (with a point); it holds text or another "
            "type."
        )
    for block in _blocks(values):
        numbers = block.dictionary_decode() if pa.types.is_dictionary(block.type) else block
        # safe would refuse integers beyond 2^53, and quote them
        yield numbers.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _fill_codes(
    out: NDArray[np.float64], values: Any, column: CategoricalColumn, label: str
) -> None:
    """Write the codes of a categorical column."""
    categories, end = Categories.declared(column.categories), 0
    for codes in category_blocks(values, categories, label):
        start, end = end, end + len(codes)
        if (codes == UNKNOWN).any():
            raise DataError(f"{label} has a value outside its declared categories.")
        if column.missing != "refuse":
            counted = categories.codes[spelling(column.missing)]
            codes = np.where(codes == MISSING, counted, codes)  # noqa: PLW2901
        elif (codes == MISSING).any():
            refuse_missing(label)
        out[start:end] = codes


def category_blocks(values: Any, categories: Categories, label: str) -> Iterator[NDArray[np.intp]]:
    """Yield the code of each value, UNKNOWN or MISSING."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(values, np.ndarray):
        values = pa.array(native_numbers(values))
    kind = _value_type(values)
    if str(kind) not in (*LABEL_TYPES, "null") and not is_number(kind):
        raise DataError(f"{label} must hold text, numbers or true and false.")
    for block in _blocks(values):
        chunk = block if pa.types.is_dictionary(block.type) else block.dictionary_encode()
        codes = [categories.code_of(value) for value in chunk.dictionary.to_pylist()]
        # missing values point behind the dictionary; its own index type may be too short
        indices = chunk.indices.cast(pa.int64()).fill_null(len(codes)).to_numpy()
        yield np.array([*codes, MISSING])[indices]


def _value_type(values: Any) -> pa.DataType:
    import pyarrow.types as kinds  # noqa: PLC0415

    return values.type.value_type if kinds.is_dictionary(values.type) else values.type


def _blocks(values: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """Cut a column; an empty one has one empty block, so that time does not reveal it."""
    import pyarrow as pa  # noqa: PLC0415

    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    for chunk in chunks or [pa.nulls(0, values.type)]:
        # a dictionary would be gone through again for each block
        whole = pa.types.is_dictionary(chunk.type)
        size = max(len(chunk), 1) if whole else _COLUMN_BLOCK
        for start in range(0, max(len(chunk), 1), size):
            yield chunk.slice(start, size)


def _fit(values: Any, lower: Any, upper: Any, units: Units, out: NDArray[np.float64]) -> None:
    """Clip to the bounds, and map them to [0, 1] unless values keep their units; NaN stays."""
    np.clip(values, lower, upper, out=out)
    if units == "own":
        return
    width = upper - lower
    if np.any(lower):  # bounds are public, and 0 and 1 would change nothing
        out -= lower
    if np.any(width != 1):
        out /= width  # rounding is monotone: it does not leave [0, 1]


def as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return floats; an extended one beyond them is infinite, without a warning."""
    with np.errstate(over="ignore"):
        return values.astype(np.float64, copy=False)


def native_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that Arrow takes: neither extended floats nor swapped bytes."""
    if values.dtype.kind == "f":
        return as_floats(values)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def finite_view(array: NDArray[Any], label: str) -> NDArray[np.float64]:
    """Return an array of numbers without bounds, read-only: it may be the caller's own."""
    rows = as_floats(array).view()
    rows.flags.writeable = False
    for start in range(0, len(rows), _BLOCK):
        check_finite(rows[start : start + _BLOCK], label)
    return rows


def check_finite(numbers: NDArray[np.float64], label: str) -> None:
    """Refuse missing and infinite values."""
    if not np.isfinite(numbers).all():
        if np.isnan(numbers).any():
            refuse_missing(label)
        raise DataError(f"{label} has an infinite value; with bounds it would be clipped.")


def refuse_missing(label: str) -> NoReturn:
    """Refuse a missing value."""
    raise DataError(f"{label} has a missing value; {MISSING_RULE}")
