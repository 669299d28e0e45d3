"""Columns of whatever was passed: arrays, data frames, Arrow tables, mappings and series."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.spending import pay_for_data
from privatest.core.validation import listed
from privatest.data.source import Source

__all__ = ["Table", "arranged", "label_of", "read_data"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Table:
    """Columns of any origin, fetched one at a time."""

    names: tuple[str, ...] | None
    width: int
    column: Callable[[int], Any]
    array: NDArray[Any] | None = None  # all columns, where they are one NumPy array
    title: str | None = None  # of a series: shown, but nothing is looked up by it
    rows: int | None = None  # where they are known without asking a column

    @property
    def labels(self) -> tuple[str, ...] | None:
        """What the columns are called, for readers."""
        return self.names if self.title is None else (self.title,)

    @property
    def shapeless(self) -> bool:
        """Whether this is [] or the like, which may stand for any columns without rows."""
        if self.names is not None or self.width != 1:
            return False
        return not (len(self.column(0)) if self.rows is None else self.rows)

    def with_columns(self, width: int) -> Table:
        """Give [] as many columns as are asked for: a private group may be empty."""
        if not self.shapeless:
            return self
        nothing = np.empty((0, width))
        return Table(None, width, lambda index: nothing[:, index], nothing)


def read_data(data: Any, name: str) -> Table:
    """Find the columns of whatever was passed."""
    pay_for_data()
    pandas = sys.modules.get("pandas")  # not imported: whoever passes a frame has done so
    if pandas is not None and isinstance(data, pandas.Series):
        return Table(None, 1, lambda _: data, title=_title(data))
    if pandas is not None and isinstance(data, pandas.DataFrame):
        names = tuple(str(label) for label in data.columns)
        table = Table(names, len(names), lambda index: data.iloc[:, index], rows=len(data))
    elif isinstance(data, Source):
        own = data.names if data.named else None
        table = Table(own, len(data.names), partial(_source_column, data), rows=len(data))
    elif isinstance(data, Mapping):
        rows = 0 if not data else None
        table = Table(tuple(map(str, data)), len(data), list(data.values()).__getitem__, rows=rows)
    elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        table = _read_arrow(data)
    else:
        table = _read_array(data, name)
    if table.width == 0:
        if table.rows != 0:
            raise DataError(f"{name} must have at least one column.")
        return _read_array([], name)  # {}, DataFrame() and the like say no more than []
    return table


def _source_column(source: Source, index: int) -> Any:
    """Read a column of a source into memory, for what has no other way."""
    return source.select([source.names[index]]).load().column(0)


def _read_arrow(data: Any) -> Table:
    import pyarrow as pa  # noqa: PLC0415

    title = _title(data)
    if hasattr(data, "to_arrow"):  # Polars: gives text in a form that older Arrows know too
        data = data.to_arrow()
    if not isinstance(data, (pa.Table, pa.RecordBatch, pa.ChunkedArray, pa.Array)):
        data = pa.chunked_array(data) if hasattr(data, "__arrow_c_stream__") else pa.array(data)
    if isinstance(data, (pa.ChunkedArray, pa.Array)):
        if not pa.types.is_struct(data.type):
            return Table(None, 1, lambda _: data, title=title)
        data = pa.Table.from_struct_array(data)
    names = tuple(data.schema.names)
    return Table(names, len(names), data.column, rows=data.num_rows)


def _title(data: Any) -> str | None:
    name = getattr(data, "name", None)
    return name if isinstance(name, str) and name else None


def _read_array(data: Any, name: str) -> Table:
    try:
        data = np.ma.stack(data) if _has_masks(data) else data
        array = data if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
    except ValueError:
        raise DataError(f"{name} must have rows of one length.") from None
    if array.ndim not in (1, 2) or array.dtype.kind == "V":
        raise DataError(f"{name} must be a data frame, or an array of one or two dimensions.")
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    whole = None if isinstance(array, np.ma.MaskedArray) else np.asarray(array)
    return Table(None, array.shape[1], lambda index: array[:, index], whole, rows=len(array))


def _has_masks(data: Any) -> bool:
    """Whether these are rows of which some can be masked: as one array they would forget it."""
    return isinstance(data, (list, tuple)) and any(
        isinstance(row, np.ma.MaskedArray) for row in data
    )


def arranged(source: Table, names: tuple[str, ...], name: str) -> Table:
    """Pick columns by their names."""
    own = source.names or ()
    for wanted in names:
        if own.count(wanted) != 1:
            problem = "occurs more than once" if wanted in own else "is missing"
            # names of which none was asked for may be somebody's row, read as a header
            known = f"; the columns are: {listed(own)}" if set(names) & set(own) else ""
            raise DataError(f"{label_of(wanted, name)} {problem}{known}.")
    order = [own.index(wanted) for wanted in names]
    return Table(names, len(names), lambda index: source.column(order[index]))


def label_of(column: str, name: str) -> str:
    """Return what messages call a column of the data ``name``."""
    return f"column {column!r} of {name}" if name else f"column {column!r}"
