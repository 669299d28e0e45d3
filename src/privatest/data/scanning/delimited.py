"""CSV and TSV files, read block by block with the rules of :mod:`privatest.data.sources`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privatest.core.errors import DataError
from privatest.data.csv_text import as_numbers, count_rows, has_quotes
from privatest.data.scanning.places import File, ending_of
from privatest.data.source import Part
from privatest.data.sources import CSV_FAULT, QUOTE_FAULT, delimiter_of, parse_options, refusing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["delimited_parts"]


@dataclass(frozen=True, slots=True)
class DelimitedRows:
    """The rows of a CSV or TSV file.

    Attributes
    ----------
    file, rows
        Which file, and how many rows it has.
    single : bool
        Whether it has one column: a blank line is then a row.
    text : frozenset of str
        Columns that are read as they are written; others hold decimal numbers, true and false.
    """

    file: File
    rows: int
    single: bool
    text: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The file."""
        return self.file.label

    def as_text(self, names: Collection[str]) -> DelimitedRows:
        """Return it with these columns as text, besides those that are."""
        return replace(self, text=self.text | set(names))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow as pa  # noqa: PLC0415

        with (
            refusing(self.label, CSV_FAULT),
            _reader(self.file, columns, single=self.single) as reader,
        ):
            for batch in reader:
                values = [
                    batch.column(name) if name in self.text else as_numbers(batch.column(name))
                    for name in columns
                ]
                yield pa.record_batch(values, names=list(columns))


def delimited_parts(files: Sequence[File]) -> tuple[tuple[str, ...], list[Part]]:
    """Count the rows of each file, in one pass, and check that they have the same columns."""
    names: list[str] | None = None
    parts: list[Part] = []
    for file in files:
        with refusing(file.label, CSV_FAULT):
            with _reader(file, None, single=False) as reader:
                own = list(reader.schema.names)
            names = own if names is None else names
            if sorted(own) != sorted(names):  # they are not quoted: they may be somebody's row
                raise DataError(
                    f"{file.label} has other columns than {files[0].label}: files that are read "
                    "together must have the same first line."
                )
            rows = _count(file, own)
        if rows == 0:
            raise DataError(f"{file.label} has no rows.")
        parts.append(DelimitedRows(file, rows, len(own) == 1))
    assert names is not None
    return tuple(names), parts


def _count(file: File, names: Sequence[str]) -> int:
    """Count rows as they will be read, and strictly where there are quotes."""
    single = len(names) == 1
    with _reader(file, names[:1], single=single) as reader:
        rows = sum(len(batch) for batch in reader)
    with file.open_stream() as stream:
        if not has_quotes(stream):
            return rows
    with file.open_stream() as stream:
        if count_rows(stream, delimiter_of(ending_of(file.path)), single=single) != rows:
            raise DataError(f"{file.label} {QUOTE_FAULT}")
    return rows


@contextmanager
def _reader(file: File, columns: Sequence[str] | None, *, single: bool) -> Iterator[Any]:
    """Open a file to read columns as text, or only its first line."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.csv as pc  # noqa: PLC0415

    wanted = list(dict.fromkeys(columns or ()))
    convert = pc.ConvertOptions(
        include_columns=wanted, column_types={name: pa.string() for name in wanted}
    )
    with (
        file.open_stream() as stream,
        pc.open_csv(
            stream,
            # with threads a truncated archive can keep the program from ending
            read_options=pc.ReadOptions(use_threads=False),
            parse_options=parse_options(ending_of(file.path), single=single),
            convert_options=convert,
        ) as reader,
    ):
        yield reader
