"""Files of columns: Parquet by row groups, Arrow IPC and Feather by record batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from privatest.core.errors import DataError
from privatest.core.validation import printable
from privatest.data.categories import LABEL_TYPES, is_number
from privatest.data.csv_text import typed
from privatest.data.scanning.places import File
from privatest.data.source import Part, labelled

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["columnar_parts", "with_keys"]

BATCH_ROWS = 1 << 16
_ROWS_OF_PART = 1 << 20  # record batches of IPC files are small: several make a part


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """A row group of a Parquet file."""

    file: File
    group: int
    rows: int

    @property
    def label(self) -> str:
        """The file and the row group."""
        return f"row group {self.group} of {self.file.label}"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows; decoded by this thread, as others have row groups of their own."""
        names = list(columns)
        with _parquet(self.file, *_footer(self.file)) as file:
            for batch in file.iter_batches(
                BATCH_ROWS, row_groups=[self.group], columns=names, use_threads=False
            ):
                # "a" also brings the leaves of a nested a, and the file's own order
                yield batch.select(names)


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Record batches of an Arrow IPC or Feather file."""

    file: File
    first: int
    last: int
    rows: int

    @property
    def label(self) -> str:
        """The file and the batches."""
        return f"record batch {self.first} to {self.last} of {self.file.label}"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        with self.file.open() as stream:
            reader = _arrow(stream, columns)
            for number in range(self.first, self.last + 1):
                yield reader.get_batch(number).select(list(columns))


@dataclass(frozen=True, slots=True)
class Keyed:
    """Rows of a file in a folder such as "arm=treated": that column is the same in all of them."""

    part: Part
    keys: tuple[tuple[str, Any], ...]
    written: tuple[tuple[str, str | None], ...]

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.part.rows

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.part.label

    def as_text(self, names: Collection[str]) -> Keyed:
        """Return it with these columns as their folders are called."""
        import pyarrow as pa  # noqa: PLC0415

        texts = {name: pa.scalar(text, pa.string()) for name, text in self.written if name in names}
        keys = tuple((name, texts.get(name, value)) for name, value in self.keys)
        part = self.part.as_text(names) if hasattr(self.part, "as_text") else self.part
        return replace(self, part=part, keys=keys)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow as pa  # noqa: PLC0415

        keys = dict(self.keys)
        stored = [name for name in columns if name not in keys]
        if not stored:
            for start in range(0, self.rows, BATCH_ROWS):
                count = min(BATCH_ROWS, self.rows - start)
                yield pa.record_batch(
                    [pa.repeat(keys[name], count) for name in columns], names=list(columns)
                )
            return
        for batch in self.part.batches(stored):
            values = [
                pa.repeat(keys[name], len(batch)) if name in keys else batch.column(name)
                for name in columns
            ]
            yield pa.record_batch(values, names=list(columns))


def columnar_parts(files: Sequence[File], *, parquet: bool) -> tuple[tuple[str, ...], list[Part]]:
    """Return the columns and the parts of files that have the same columns."""
    parts: list[Part] = []
    first: pa.Schema | None = None
    for file in files:
        with labelled(file.label):
            schema, own = (_parquet_parts if parquet else _arrow_parts)(file)
        if not own:
            raise DataError(f"{file.label} has no rows.")
        first = schema if first is None else first
        _require_alike(first, schema, files[0], file)
        parts += own
    assert first is not None
    return tuple(first.names), parts


def _parquet(file: File, footer: Any = None, texts: Sequence[str] = ()) -> Any:
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pq.ParquetFile(
        file.open(),
        page_checksum_verification=True,  # where a file has them: a wrong value may decode well
        metadata=footer,
        read_dictionary=texts,  # each text once: a category is looked up once, not in each row
        pre_buffer=not file.local,  # from a distance many small reads are slow
    )


@lru_cache(maxsize=256)
def _footer(file: File) -> tuple[Any, tuple[str, ...]]:
    """Return a file's footer, read once for all of its row groups, and its columns of text."""
    with _parquet(file) as opened:
        fields = opened.schema_arrow
    texts = tuple(field.name for field in fields if str(field.type) == "string")
    return opened.metadata, texts


def _parquet_parts(file: File) -> tuple[pa.Schema, list[Part]]:
    footer, _ = _footer(file)
    counts = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    parts: list[Part] = [ParquetRows(file, group, n) for group, n in enumerate(counts) if n]
    return footer.schema.to_arrow_schema(), parts


def _arrow(stream: Any, columns: Sequence[str] | None = None) -> Any:
    """Open a file to read some columns, or the first, by which rows are counted."""
    from pyarrow import ipc  # noqa: PLC0415

    reader = ipc.open_file(stream)
    names = reader.schema.names
    wanted = [0] if columns is None else sorted(names.index(name) for name in columns)
    stream.seek(0)
    return ipc.open_file(stream, options=ipc.IpcReadOptions(included_fields=wanted))


def _arrow_parts(file: File) -> tuple[pa.Schema, list[Part]]:
    from pyarrow import ipc  # noqa: PLC0415

    with file.open() as stream:
        schema = ipc.open_file(stream).schema
    parts: list[Part] = []
    with file.open() as stream:
        reader = _arrow(stream)
        first = rows = 0
        for number in range(reader.num_record_batches):
            rows += reader.get_batch(number).num_rows
            if rows >= _ROWS_OF_PART or (rows and number == reader.num_record_batches - 1):
                parts.append(ArrowRows(file, first, number, rows))
                first, rows = number + 1, 0
    return schema, parts


def _require_alike(first: pa.Schema, other: pa.Schema, one: File, file: File) -> None:
    """Refuse a file with other columns, or other kinds of values; both are public."""
    if sorted(first.names) != sorted(other.names):
        raise DataError(
            f"{file.label} has other columns than {one.label}: files that are read together must "
            "have the same."
        )
    if len(set(first.names)) < len(first.names):
        return  # refused if they are asked for
    for column in first.names:
        kinds = [_kind(schema.field(column).type) for schema in (first, other)]
        if kinds[0] != kinds[1] and "nothing" not in kinds:
            raise DataError(
                f"column {printable(column)!r} holds {kinds[1]} in {file.label} and {kinds[0]} in "
                f"{one.label}: files that are read together must have the same."
            )


def _kind(kind: pa.DataType) -> str:
    import pyarrow.types as kinds  # noqa: PLC0415

    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    if kinds.is_null(kind):
        return "nothing"
    if kinds.is_boolean(kind):
        return "true and false"
    if is_number(kind):
        return "numbers"
    return "text" if str(kind) in LABEL_TYPES else str(kind)


def with_keys(
    names: tuple[str, ...], parts: list[Part], files: Sequence[File]
) -> tuple[tuple[str, ...], list[Part]]:
    """Add the columns that folders stand for."""
    import pyarrow as pa  # noqa: PLC0415

    keys = [key for key, _ in files[0].keys if key not in names]
    if any([key for key, _ in file.keys if key not in names] != keys for file in files):
        raise DataError("folders such as name=value must have the same names beside each other.")
    if not keys:
        return names, parts
    written = [tuple((k, v) for k, v in file.keys if k in keys) for file in files]
    values = {
        key: typed(pa.chunked_array([pa.array([dict(w)[key] for w in written], pa.string())]))
        for key in keys
    }
    found: list[Part] = []
    for part in parts:
        at = part.file.number - 1  # type: ignore[attr-defined]
        own = tuple((key, values[key][at]) for key in keys)
        found.append(Keyed(part, own, written[at]))
    return (*names, *keys), found
