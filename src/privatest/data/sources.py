"""Where rows come from: CSV and Parquet files, read as Arrow tables.

What Arrow says about a file that it cannot read may quote the file, so it is never passed on. Nor
are names of columns that nobody asked for: the first line of a CSV file may be a person's row.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.core.errors import DataError
from privatest.core.validation import listed, printable, reject
from privatest.data.categories import MISSING_TEXT
from privatest.data.csv_text import count_rows, has_quotes, is_numeral, typed

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CSV_FAULT",
    "QUOTE_FAULT",
    "check_columns",
    "delimiter_of",
    "parse_options",
    "read_schema",
    "read_table",
    "refusing",
]

_DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_SUFFIXES = (*_DELIMITERS, ".parquet")
CSV_FAULT = (
    "cannot be read as CSV; has every row the same number of fields, separated by commas (by tabs "
    "in .tsv) and not by semicolons, in UTF-8?"
)
QUOTE_FAULT = (
    'cannot be read as CSV: a quote (") that opens a field must be closed at its end, and be '
    "doubled within it; no field may be longer than 131,072 characters."
)
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_ENCODING_FAULT = 'is not in UTF-8: save it in that encoding (spreadsheets call it "CSV UTF-8").'
_NO_HEADER = "Does its first line name the columns, separated by {}?"
_PARQUET_FAULT = "cannot be read as Parquet; is the file complete?"


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    text: Collection[str] = (),
    registered: bool = False,
) -> pa.Table:
    """Read a .csv, .csv.gz, .tsv, .tsv.gz or .parquet file.

    Parameters
    ----------
    path : str or path
        The file; its ending says how it is read.
    columns : sequence of str, optional
        Columns to read, in this order; all by default.
    text : collection of str
        Columns that are read from CSV as they are written, so that "01" does not become 1:
        those with categories. Ignored for Parquet, which has types of its own.
    registered : bool
        Whether these contents were read and checked before. Quotes are not checked again, and
        numbers are floats at once: how long reading takes would tell of one value.

    Returns
    -------
    pyarrow.Table
        A column of CSV holds integers, floats, true and false, or else text. Numbers are
        decimal, with a point: neither "0x1F" nor "1_000" nor "1,5" is one.

    Raises
    ------
    DataError
        With one line that names the file and, where it is one, the column. Never a value.
    """
    file, suffix = _open(path)
    names = _names(file, suffix)
    if columns is None and len(set(names)) < len(names):
        raise DataError(f"{printable(file.name)} has more than one column of the same name.")
    wanted = names if columns is None else _checked(columns)
    _require(file, suffix, names, wanted)
    if suffix == ".parquet":
        table = _read_parquet(file, wanted)
    else:
        single = len(names) == 1
        table = _read_csv(file, suffix, wanted, text, single=single, registered=registered)
    if table.num_rows == 0:
        raise DataError(f"{printable(file.name)} has no rows.")
    return table


def check_columns(path: str | os.PathLike[str], columns: Sequence[str]) -> None:
    """Refuse a file that is not there or lacks a column; rows are not looked at."""
    file, suffix = _open(path)
    _require(file, suffix, _names(file, suffix), _checked(columns))


def _require(file: Path, suffix: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if names.count(name) == 1:
            continue
        problem = "more than one column" if name in names else "no column"
        fault = f"{printable(file.name)} has {problem} {name!r}"
        if suffix == ".parquet" or _is_header(names, wanted):
            raise DataError(f"{fault}; it has: {listed(names)}.")
        word = "tabs" if _DELIMITERS[suffix] == "\t" else "commas"
        raise DataError(f"{fault}. {_NO_HEADER.format(word)}")


def _is_header(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the first line of CSV is one: it has a name that was asked for, and no number."""
    return any(name in names for name in wanted) and not any(map(is_numeral, names))


def read_schema(path: str | os.PathLike[str]) -> pa.Schema:
    """Return names and types of the columns; those of CSV are guessed from its beginning."""
    file, suffix = _open(path)
    if suffix == ".parquet":
        with refusing(printable(file.name), _PARQUET_FAULT), _parquet_file(file) as parquet:
            return parquet.schema_arrow
    with refusing(printable(file.name), CSV_FAULT), _csv_reader(file, suffix) as reader:
        schema: pa.Schema = reader.schema
        names = list(schema.names)
    if len(names) == 1 and (other := next((c for c in ";\t|" if c in names[0]), None)):
        raise DataError(
            f"{printable(file.name)} has one column only: its fields seem to be separated by "
            f"{_SEPARATORS[other]}. Files that end in .csv have commas, those in .tsv tabs."
        )
    if any(map(is_numeral, names)):
        raise DataError(
            f"{printable(file.name)} has a number in its first line, as a row of data does. Put "
            "the names of the columns there; if they are numbers, write the schema by hand."
        )
    return schema


def _open(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """Check what can be known without reading; return the file and its ending."""
    file = Path(path)
    name = printable(file.name)
    suffix = next((end for end in _SUFFIXES if file.name.lower().endswith(end)), "")
    if not suffix:
        raise DataError(f"{name} must end in one of {', '.join(_SUFFIXES)}.")
    if not file.exists():
        raise DataError(f"{name} does not exist.")
    if not file.is_file():
        raise DataError(f"{name} is not a file.")
    try:
        with file.open("rb") as stream:
            empty = not stream.read(1)
    except OSError as error:
        raise DataError(f"{name} cannot be opened: {error.strerror}.") from None
    if empty:
        raise DataError(f"{name} is empty.")
    return file, suffix


def _checked(columns: Iterable[str]) -> list[str]:
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted or len(set(wanted)) < len(wanted):
        reject("columns", "at least one, and each only once", wanted)
    return wanted


def _names(file: Path, suffix: str) -> list[str]:
    if suffix == ".parquet":
        with refusing(printable(file.name), _PARQUET_FAULT), _parquet_file(file) as parquet:
            return list(parquet.schema_arrow.names)
    with refusing(printable(file.name), CSV_FAULT), _csv_reader(file, suffix) as reader:
        return list(reader.schema.names)


@contextmanager
def refusing(name: str, fault: str) -> Iterator[None]:
    """Put a message without data in the place of Arrow's."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        yield
    except DataError:  # it is a ValueError too
        raise
    except UnicodeDecodeError:
        raise DataError(f"{name} {_ENCODING_FAULT}") from None
    except (pa.ArrowException, OSError, ValueError):
        raise DataError(f"{name} {fault}") from None


def _parquet_file(file: Path) -> Any:
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pq.ParquetFile(file, page_checksum_verification=True)


def _read_parquet(file: Path, wanted: Sequence[str]) -> pa.Table:
    with refusing(printable(file.name), _PARQUET_FAULT), _parquet_file(file) as parquet:
        # select: "a" would also bring the leaves of a nested a, and the file's own order
        return parquet.read(columns=wanted).select(wanted)


@contextmanager
def _csv_stream(file: Path, suffix: str) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415

    compression = "gzip" if suffix.endswith(".gz") else None
    with pa.input_stream(str(file), compression=compression) as stream:
        yield stream


@contextmanager
def _csv_reader(file: Path, suffix: str) -> Iterator[Any]:
    import pyarrow.csv as pc  # noqa: PLC0415

    with (
        _csv_stream(file, suffix) as stream,
        pc.open_csv(
            stream,
            parse_options=parse_options(suffix),
            convert_options=pc.ConvertOptions(null_values=list(MISSING_TEXT)),
        ) as reader,
    ):
        yield reader


def delimiter_of(suffix: str) -> str:
    """Return what separates the fields of a file with this ending."""
    return _DELIMITERS[suffix]


def parse_options(suffix: str, *, single: bool = False) -> Any:
    """Return how a file with this ending is taken apart; ``single`` if it has one column."""
    import pyarrow.csv as pc  # noqa: PLC0415

    return pc.ParseOptions(
        delimiter=_DELIMITERS[suffix],
        newlines_in_values=True,
        ignore_empty_lines=not single,  # in a file of one column they are rows
    )


def _check_quotes(file: Path, suffix: str, rows: int, *, single: bool) -> None:
    """Refuse a file of which a strict reader sees other rows, if it has quotes at all.

    Arrow closes an open quote at the end of the file: all rows behind it are then text of one
    field, and nobody is told.
    """
    with _csv_stream(file, suffix) as stream:
        if not has_quotes(stream):
            return
    with _csv_stream(file, suffix) as stream:
        if count_rows(stream, _DELIMITERS[suffix], single=single) != rows:
            raise DataError(f"{printable(file.name)} {QUOTE_FAULT}")


def _read_csv(
    file: Path,
    suffix: str,
    wanted: Sequence[str],
    text: Collection[str],
    *,
    single: bool,
    registered: bool,
) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.csv as pc  # noqa: PLC0415

    convert = pc.ConvertOptions(
        include_columns=wanted,
        column_types={name: pa.string() for name in wanted},  # Arrow would take 0x1F for a number
    )
    with refusing(printable(file.name), CSV_FAULT), _csv_stream(file, suffix) as stream:
        table = pc.read_csv(
            stream,
            # with threads a truncated archive can keep the program from ending
            read_options=pc.ReadOptions(use_threads=not suffix.endswith(".gz")),
            parse_options=parse_options(suffix, single=single),
            convert_options=convert,
        )
        if not registered:
            _check_quotes(file, suffix, table.num_rows, single=single)
    columns = [
        table.column(name) if name in text else typed(table.column(name), floats=registered)
        for name in wanted
    ]
    return pa.table(columns, names=list(wanted))
