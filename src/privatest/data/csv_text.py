"""Text of CSV files: how many rows there really are, and which columns hold numbers."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

from privatest.data.categories import MISSING_TEXT

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["as_numbers", "count_rows", "has_quotes", "is_numeral", "typed"]

_BLOCK = 1 << 20
_NUMERAL = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")


def has_quotes(stream: Any) -> bool:
    """Whether there is a quote in the rest of a binary file."""
    return any(b'"' in block for block in iter(lambda: stream.read(_BLOCK), b""))


def count_rows(stream: Any, delimiter: str, *, single: bool) -> int | None:
    """Count the rows below the header strictly; None if the file breaks the rules of quotes.

    Parameters
    ----------
    stream : binary file
        The file, from its beginning. Its text need not be UTF-8: only structure counts.
    delimiter : str
        What separates fields.
    single : bool
        Whether there is one column, so that a blank line is a row.
    """
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        return sum(1 for row in rows if row or single) - 1
    except csv.Error:
        return None


def is_numeral(name: str) -> bool:
    """Whether the name of a column looks like a number in somebody's row."""
    return _NUMERAL.fullmatch(name.strip()) is not None


def typed(values: pa.ChunkedArray, *, floats: bool = False) -> pa.ChunkedArray:
    """Return a column of text as integers, floats or booleans, if all of it is that.

    With ``floats`` integers become floats as well, so that one value does not change the steps.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    present = _present(values)
    hexadecimal = pc.any(pc.match_substring(present, "x", ignore_case=True)).as_py()
    # Arrow takes 0x1F for an integer, never for a float
    whole = [] if hexadecimal or floats else [pa.int64()]
    kinds = [*whole, pa.float64(), pa.bool_()]
    for kind in kinds:
        try:
            return pc.cast(present, kind)
        except pa.ArrowInvalid:  # its message quotes a value
            continue
    return values


def as_numbers(values: pa.Array) -> pa.Array:
    """Return some of a column of text as floats, true and false as 1 and 0.

    Each value is read by itself, so that it does not matter where a column is cut; a whole column
    (:func:`typed`) must be of one kind. If one value is no number, all stay text.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    present = _present(values)
    try:
        return pc.cast(present, pa.float64())
    except pa.ArrowInvalid:  # its message quotes a value
        pass
    lower = pc.utf8_lower(present)
    for word, number in (("true", "1"), ("false", "0")):
        present = pc.if_else(pc.fill_null(pc.equal(lower, word), False), number, present)
    try:
        return pc.cast(present, pa.float64())
    except pa.ArrowInvalid:
        return values


def _present(values: Any) -> Any:
    """Return text without blanks around it, null where it says that a value is missing."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    trimmed = pc.ascii_trim(values, " \t")
    missing = pc.is_in(trimmed, value_set=pa.array(MISSING_TEXT))
    return pc.if_else(missing, pa.scalar(None, pa.string()), trimmed)
