"""Text of CSV files: how many rows there really are, and which columns hold numbers."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

from privatest.data.categories import MISSING_TEXT

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["count_rows", "has_quotes", "is_numeral", "typed"]

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

    trimmed = pc.ascii_trim(values, " \t")
    missing = pc.is_in(trimmed, value_set=pa.array(MISSING_TEXT))
    present = pc.if_else(missing, pa.scalar(None, pa.string()), trimmed)
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
