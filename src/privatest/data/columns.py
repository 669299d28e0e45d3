"""One column of data at a time: read, checked against its description, converted to floats.

Messages name the column and the rule that was broken, never a value or a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.data.categories import (
    LABEL_TYPES,
    MISSING,
    UNKNOWN,
    Categories,
    is_number,
    spelling,
)
from privatest.data.schema import CategoricalColumn, NumericColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BLOCK",
    "MISSING_RULE",
    "Units",
    "as_floats",
    "category_blocks",
    "check_finite",
    "fill_codes",
    "fill_numbers",
    "one_column",
    "placed",
    "refuse_missing",
]

BLOCK = 32_768  # rows converted at a time
_COLUMN = 65_536  # of one column

Units = Literal["box", "own"]  # numbers mapped to [0, 1] by their bounds, or only clipped


def one_column(values: Any, label: str) -> Any:
    """Return a NumPy array of numbers, or an Arrow array of anything."""
    if isinstance(values, np.ma.MaskedArray):
        return _from_masked(values, label)
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


def _from_masked(values: np.ma.MaskedArray[Any, Any], label: str) -> Any:
    """Return a masked column as an Arrow array, in which what is masked is missing.

    Whether anything is masked depends on people: the way must not depend on it.
    """
    import pyarrow as pa  # noqa: PLC0415

    plain = np.asarray(values.data)
    plain = as_floats(plain) if plain.dtype.kind == "f" else plain
    try:
        return pa.array(plain, mask=np.ma.getmaskarray(values), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise DataError(f"{label} must be one column of numbers or of text.") from None


def fill_numbers(
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
        placed(numbers, column.lower, column.upper, units, out[start:end])


def _number_blocks(values: Any, label: str) -> Iterator[NDArray[np.float64]]:
    """Yield a column as floats, NaN where a value is missing; not to be written to."""
    if isinstance(values, np.ndarray):
        for start in range(0, len(values), _COLUMN):
            yield as_floats(values[start : start + _COLUMN])
        return
    import pyarrow as pa  # noqa: PLC0415

    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if str(kind) not in {"bool", "null"} and not is_number(kind):
        raise DataError(
            f"{label} must hold numbers, such as -1234.5 (with a point); it holds text or another "
            "type."
        )
    for block in _blocks(values):
        numbers = block.dictionary_decode() if pa.types.is_dictionary(block.type) else block
        # safe would refuse integers beyond 2^53, and quote them
        yield numbers.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def fill_codes(
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

    if isinstance(values, np.ndarray):  # Arrow takes neither extended floats nor swapped bytes
        native = values.dtype.newbyteorder("=")
        floats = values.dtype.kind == "f"
        values = pa.array(as_floats(values) if floats else values.astype(native, copy=False))
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if str(kind) not in (*LABEL_TYPES, "null") and not is_number(kind):
        raise DataError(f"{label} must hold text, numbers or true and false.")
    for block in _blocks(values):
        chunk = block if pa.types.is_dictionary(block.type) else block.dictionary_encode()
        codes = [categories.code_of(value) for value in chunk.dictionary.to_pylist()]
        # missing values point behind the dictionary; its own index type may be too short
        indices = chunk.indices.cast(pa.int64()).fill_null(len(codes)).to_numpy()
        yield np.array([*codes, MISSING])[indices]


def placed(values: Any, lower: Any, upper: Any, units: Units, out: NDArray[np.float64]) -> None:
    """Clip to the bounds, and map them to [0, 1] unless values keep their units; NaN stays."""
    np.clip(values, lower, upper, out=out)
    if units == "own":
        return
    width = upper - lower
    if np.any(lower):  # bounds are public, and 0 and 1 would change nothing
        out -= lower
    if np.any(width != 1):
        out /= width  # rounding is monotone: it does not leave [0, 1]


def _blocks(values: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """Cut a column; an empty one has one empty block, so that time does not tell it is empty."""
    import pyarrow as pa  # noqa: PLC0415

    chunks = values.chunks if hasattr(values, "chunks") else [values]
    for chunk in chunks or [pa.nulls(0, values.type)]:
        # a dictionary would be gone through again for each block
        size = max(len(chunk), 1) if hasattr(chunk, "dictionary") else _COLUMN
        for start in range(0, max(len(chunk), 1), size):
            yield chunk.slice(start, size)


def as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return floats; an extended one beyond them is infinite, and no warning tells of it."""
    with np.errstate(over="ignore"):
        return values.astype(np.float64, copy=False)


def check_finite(numbers: NDArray[np.float64], label: str) -> None:
    """Refuse missing and infinite values."""
    if not np.isfinite(numbers).all():
        if np.isnan(numbers).any():
            refuse_missing(label)
        raise DataError(f"{label} has an infinite value; with bounds it would be clipped.")


MISSING_RULE = (
    'the rule is missing = "refuse". A schema can name a public value that it counts as instead.'
)


def refuse_missing(label: str) -> NoReturn:
    """Refuse a missing value."""
    raise DataError(f"{label} has a missing value; {MISSING_RULE}")
