"""Rows in memory: arrays, data frames, Arrow tables and data sets, and the answers of queries.

A query that is run again may give its rows in another order, and a row is known by its number.
The answers of lazy frames and relations are therefore held in memory; files are not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest.core.errors import DataError
from privatest.data.bounds import numbered_names
from privatest.data.columns import as_floats
from privatest.data.source import Part, labelled

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from privatest.data.scanning.places import File

__all__ = ["array_parts", "frame_parts", "saved_array_parts"]

_PART_ROWS = 1 << 20
_BATCH_ROWS = 1 << 16
_WHAT = (
    "data must be a path, an array, a data frame, or an Arrow table or data set; for a database "
    "use scan_sql."
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class ArrayRows:
    """Rows of an array of two dimensions, in memory or mapped from a file."""

    travels: ClassVar[bool] = False  # other processes do not get memory of this one

    array: NDArray[Any]
    names: tuple[str, ...]
    label: str = "the array"

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.array)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        places = [self.names.index(name) for name in columns]
        yield from _array_batches(self.array, places, columns)


@dataclass(frozen=True, slots=True)
class SavedRows:
    """Rows of an .npy file, which is mapped by whoever reads it."""

    file: File
    names: tuple[str, ...]
    first: int
    rows: int

    @property
    def label(self) -> str:
        """The file."""
        return self.file.label

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        self.file.check()
        places = [self.names.index(name) for name in columns]
        array = _mapped(self.file)[self.first : self.first + self.rows]
        yield from _array_batches(array, places, columns)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableRows:
    """Rows of an Arrow table."""

    travels: ClassVar[bool] = False  # other processes do not get memory of this one

    table: pa.Table
    label: str = "the table"

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.table.num_rows)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        yield from self.table.select(list(columns)).to_batches(_BATCH_ROWS)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrameRows:
    """Rows of a pandas frame."""

    travels: ClassVar[bool] = False  # other processes do not get memory of this one

    frame: Any
    names: tuple[str, ...]
    label: str = "the frame"

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.frame)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow as pa  # noqa: PLC0415

        places = [self.names.index(name) for name in columns]
        for start in range(0, len(self.frame), _BATCH_ROWS):
            rows = self.frame.iloc[start : start + _BATCH_ROWS]
            values = [pa.array(rows.iloc[:, place], from_pandas=True) for place in places]
            yield pa.record_batch(list(map(_in_one_piece, values)), names=list(columns))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FragmentRows:
    """A piece of an Arrow data set."""

    fragment: Any
    schema: pa.Schema
    number: int
    rows: int

    @property
    def travels(self) -> bool:
        """Whether other processes can read it: files, but not memory of this one."""
        return hasattr(self.fragment, "path")

    @property
    def label(self) -> str:
        """Which piece."""
        return f"piece {self.number} of the data set"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        scanner = self.fragment.scanner(
            schema=self.schema, columns=list(columns), use_threads=False, batch_size=_BATCH_ROWS
        )
        yield from scanner.to_batches()


def array_parts(array: NDArray[Any]) -> tuple[tuple[str, ...], list[Part]]:
    """Return the columns and parts of an array."""
    if isinstance(array, np.ma.MaskedArray):  # whether anything is masked depends on people
        raise DataError("data must not be a masked array: pass a data frame or an Arrow table.")
    rows = _two_dimensions(np.asarray(array), "data")
    names = numbered_names(rows.shape[1])
    return names, [ArrayRows(rows[a : a + _PART_ROWS], names) for a in _starts(len(rows))]


def saved_array_parts(files: Sequence[File]) -> tuple[tuple[str, ...], list[Part]]:
    """Return the columns and parts of .npy files."""
    parts: list[Part] = []
    names: tuple[str, ...] | None = None
    for file in files:
        if not file.local:
            raise DataError(f"{file.label} must be on a disk of this machine to be mapped.")
        with labelled(file.label):
            array = _mapped(file)
        own = numbered_names(array.shape[1])
        names = own if names is None else names
        if own != names:
            raise DataError(f"{file.label} has another number of columns than {files[0].label}.")
        if not len(array):
            raise DataError(f"{file.label} has no rows.")
        for start in _starts(len(array)):
            parts.append(SavedRows(file, own, start, min(_PART_ROWS, len(array) - start)))
    assert names is not None
    return names, parts


def frame_parts(data: Any) -> tuple[tuple[str, ...], list[Part]]:
    """Return the columns and parts of a data frame, a table or a data set of any kind."""
    pandas = sys.modules.get("pandas")  # whoever passes a frame has imported it
    if pandas is not None and isinstance(data, pandas.DataFrame):
        names = tuple(map(str, data.columns))
        frames = (data.iloc[start : start + _PART_ROWS] for start in _starts(len(data)))
        return names, [FrameRows(frame, names) for frame in frames]
    datasets = sys.modules.get("pyarrow.dataset")
    if datasets is not None and isinstance(data, datasets.Dataset):
        return _dataset_parts(data)
    with labelled("data"):
        table = _as_table(data)
    names = tuple(table.schema.names)
    slices = (table.slice(start, _PART_ROWS) for start in _starts(table.num_rows))
    return names, [TableRows(each) for each in slices]


def _as_table(data: Any) -> pa.Table:
    """Return an Arrow table; the answer of a query is held in memory from here on."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(data, pa.RecordBatchReader):
        raise DataError(
            "data is a stream, which can be read once and does not know its number of rows: pass "
            "its read_all(), or what it was made from."
        )
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], pa.RecordBatch):
        return pa.Table.from_batches(data)
    if isinstance(data, Mapping):
        return pa.table(dict(data))
    for name in ("to_arrow_table", "to_arrow"):  # DuckDB; Polars, narwhals and others
        if hasattr(data, name):
            return _as_known(getattr(data, name)())
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    return _through_narwhals(data)


def _as_known(data: Any) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    return data if isinstance(data, pa.Table) else pa.table(data)


def _through_narwhals(data: Any) -> pa.Table:
    """Return the rows of any frame that narwhals knows, lazy ones too."""
    try:
        import narwhals  # noqa: PLC0415
    except ImportError:
        raise DataError(f"{_WHAT} Other frames need narwhals: pip install narwhals.") from None
    frame: Any = narwhals.from_native(data, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        frame = frame.collect("pyarrow")
    if not isinstance(frame, narwhals.DataFrame):
        raise DataError(_WHAT)
    return frame.to_arrow()


def _dataset_parts(data: Any) -> tuple[tuple[str, ...], list[Part]]:
    """Return the fragments of an Arrow data set, those of Parquet by row groups."""
    with labelled("the data set"):
        try:
            fragments = list(data.get_fragments())
        except ValueError:  # it is filtered or projected
            table = data.to_table()
            return frame_parts(table)
        pieces = [
            piece
            for each in fragments
            for piece in (
                each.split_by_row_group() if hasattr(each, "split_by_row_group") else [each]
            )
        ]
        counts = [_fragment_rows(piece) for piece in pieces]
    parts: list[Part] = [
        FragmentRows(piece, data.schema, number, rows)
        for number, (piece, rows) in enumerate(zip(pieces, counts, strict=True))
        if rows
    ]
    return tuple(data.schema.names), parts


def _fragment_rows(piece: Any) -> int:
    """Return the rows of a fragment; one of several row groups would count those of its file."""
    groups = getattr(piece, "row_groups", None)
    return int(piece.count_rows()) if groups is None else sum(own.num_rows for own in groups)


def _array_batches(
    array: NDArray[Any], places: Sequence[int], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415

    floats = array.dtype.kind == "f"
    native = array.dtype.newbyteorder("=")
    for start in range(0, len(array), _BATCH_ROWS):
        block = np.asarray(array[start : start + _BATCH_ROWS])
        # Arrow takes neither extended floats nor swapped bytes
        block = as_floats(block) if floats else block.astype(native, copy=False)
        values = [pa.array(np.ascontiguousarray(block[:, place])) for place in places]
        yield pa.record_batch(values, names=list(columns))


def _mapped(file: File) -> NDArray[Any]:
    array = np.load(file.path, mmap_mode="r", allow_pickle=False)
    return _two_dimensions(array, file.label)


def _two_dimensions(array: NDArray[Any], label: str) -> NDArray[Any]:
    if array.ndim not in (1, 2) or array.dtype.kind not in "biuf":
        raise DataError(f"{label} must hold real numbers, in one or two dimensions.")
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.shape[1] == 0:
        raise DataError(f"{label} must have at least one column.")
    return array


def _starts(rows: int) -> range:
    return range(0, rows, _PART_ROWS)


def _in_one_piece(values: Any) -> Any:
    return values.combine_chunks() if hasattr(values, "combine_chunks") else values
