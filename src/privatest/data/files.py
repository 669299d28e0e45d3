"""Files and frames as sources of rows: found and opened here, and read when a test needs them.

What Arrow says about a file that it cannot read may quote the file, so it is never passed on. Nor
are names of columns that nobody asked for: the first line of a CSV file may be a person's row.

A row is identified by its number, and a query that is run again may give its rows in another
order. The answers of lazy frames and relations are therefore held in memory; files are not.
"""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.validation import listed, printable, reject
from privatest.data.columns import native_numbers
from privatest.data.engines import Engine, EngineConfig
from privatest.data.schema import LABEL_TYPES, MISSING_TEXT, is_number, numbered_names
from privatest.data.sources import Part, Source, WrappedPart, hiding_values

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_BATCH_ROWS = 1 << 16
_PART_ROWS = 1 << 20  # of rows in memory, of .npy files, and of Arrow files at least

_DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_TABLE_ENDINGS = (*_DELIMITERS, ".parquet")
_ENDINGS = (*_TABLE_ENDINGS, ".arrow", ".ipc", ".feather", ".npy")
_PATTERN = re.compile(r"[*?\[]")
_QUERY = re.compile(r"\?[\w.-]+=.*$")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_NUMERAL = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")

_CSV_FAULT = (
    "cannot be read as CSV; has every row the same number of fields, separated by commas (by tabs "
    "in .tsv) and not by semicolons, in UTF-8?"
)
_QUOTE_FAULT = (
    'cannot be read as CSV: a quote (") that opens a field must be closed at its end, and be '
    "doubled within it; no field may be longer than 131,072 characters."
)
_ENCODING_FAULT = 'is not in UTF-8: save it in that encoding (spreadsheets call it "CSV UTF-8").'
_PARQUET_FAULT = "cannot be read as Parquet; is the file complete?"
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_EXPECTED = (
    "data must be a path, an array, a data frame, or an Arrow table or data set; for a database "
    "use scan_sql."
)

# --- scan -----------------------------------------------------------------------------------


def scan(
    data: Any,
    *,
    text: Collection[str] = (),
    filesystem: Any = None,
    engine: Engine = "local",
    threads: int | None = None,
    scheduler: str | None = None,
) -> Source:
    """Open rows that are read as a test needs them, once, and never all at a time.

    Any test takes what this returns as its data. Rows are counted now, and read column by column
    when a test needs them, block by block.

    Parameters
    ----------
    data : path, pattern, array, data frame, Arrow table or data set
        A file, a folder, a pattern such as "visits/*.parquet" or an address such as
        "s3://bucket/visits": Parquet (folders named "arm=treated" give a column), Arrow IPC,
        Feather, .npy, CSV or TSV, also .gz. Or rows in memory: NumPy, pandas, Polars, Arrow,
        DuckDB, and whatever narwhals knows.
    text : collection of str
        Columns of CSV that are read as they are written, "01" not as 1, besides those that a
        schema describes by categories.
    filesystem : pyarrow or fsspec file system, optional
        What opens the files, where an address does not say enough.
    engine : {"local", "dask"}
        Threads of this process, or workers of a Dask cluster, which must see the same files.
    threads : int, optional
        Of the local engine; by default one for each processor.
    scheduler : str, optional
        Address of the Dask scheduler, such as "tcp://host:8786".

    Returns
    -------
    Source
        Columns, number of rows, and parts that can be read apart.

    Raises
    ------
    DataError
        If there is nothing, files differ in their columns, or one has no rows. The message
        names the file, never a value.

    See Also
    --------
    scan_sql : A table or a query of a database.

    Notes
    -----
    The answer of a lazy frame or a relation is held in memory: run again, it may have its rows
    in another order. CSV is gone through once to count its rows, and each file is read by one
    thread.

    Nothing may write to the data until the test is done. A file that changed, or a part with
    another number of rows than before, is an error.

    Examples
    --------
    >>> import numpy as np
    >>> import privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> rows = pt.scan(rng.normal(size=(3000, 2)))
    >>> rows
    <3,000 rows of 2 columns in 1 parts>
    >>> shifted = rng.normal(2, size=(3000, 2))
    >>> pt.mmd_test(rows, shifted, bounds=(-4, 6), epsilon=1).reject
    True
    """
    workers = EngineConfig(engine, threads, scheduler)
    if isinstance(data, Source):
        raise ParameterError("data is a source already.")
    named = True
    if isinstance(data, (str, os.PathLike)):
        files = files_at(data, filesystem)
        names, parts = _file_parts(files)
        named = files[0].ending != ".npy"
    elif isinstance(data, np.ndarray):
        names, parts = _array_parts(data)
        named = False
    else:
        names, parts = frame_parts(data)
        if not names:
            raise DataError("data must have at least one column.")
    return Source(names, tuple(parts), workers, named).as_text(text)


# --- which files ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was when it was opened.

    Attributes
    ----------
    path, size, time
        Where it is, its bytes, and when it was last written, in nanoseconds.
    number, among : int
        Which of how many files it is.
    keys : tuple of (str, str or None)
        Columns from folders: "arm=treated/part.parquet" has arm.
    system : pyarrow.fs.FileSystem
        What opens it.
    """

    path: str
    size: int
    time: int
    number: int = 1
    among: int = 1
    keys: tuple[tuple[str, str | None], ...] = ()
    system: Any = field(default=None, compare=False)

    @property
    def label(self) -> str:
        """The file's name, without its folders: those may hold values."""
        name = _name(self.path)
        return name if self.among == 1 else f"{name} (file {self.number} of {self.among})"

    @property
    def ending(self) -> str:
        """The ending that says how the file is read."""
        return _ending(self.path)

    @property
    def local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return bool(self.system.type_name == "local")

    def open(self) -> pa.NativeFile:
        """Open it for random access; refuse it if it changed."""
        self.check()
        return self.system.open_input_file(self.path)

    def open_stream(self) -> pa.NativeFile:
        """Open it for reading from its beginning, decompressed; refuse it if it changed."""
        self.check()
        compression = "gzip" if self.ending.endswith(".gz") else None
        return self.system.open_input_stream(self.path, compression=compression)

    def check(self) -> None:
        """Refuse a file that is gone or was written to."""
        found = self.system.get_file_info(self.path)
        if not found.is_file:
            raise DataError(f"{self.label} is no longer there.")
        if (found.size, found.mtime_ns or 0) != (self.size, self.time):
            raise DataError(
                f"{self.label} changed since it was opened; nothing may write to data while it is "
                "read."
            )


def _name(path: str) -> str:
    return printable(PurePosixPath(path).name)


def _ending(path: str) -> str:
    """Return the ending that says how a file is read, or ""."""
    return max((end for end in _ENDINGS if path.lower().endswith(end)), key=len, default="")


def is_pattern(text: str) -> bool:
    """Whether a path has wildcards."""
    return _PATTERN.search(text) is not None


def files_at(place: str | os.PathLike[str], filesystem: Any = None) -> list[File]:
    """Return the files of a path, a folder or a pattern, sorted by their paths.

    Hidden files, and those that begin with an underscore, are left out of folders.

    Raises
    ------
    DataError
        If there is none, or they are of different kinds.
    """
    text = os.fspath(place)
    system, path = _file_system(text, filesystem)
    try:
        found = system.get_file_info(path)
    except OSError:
        raise DataError(f"{_name(path)} cannot be reached.") from None
    if found.is_file:
        infos, base = [found], str(PurePosixPath(path).parent)
    elif found.type.name == "Directory":
        infos, base = _files_below(system, path), path
    elif is_pattern(path):
        base, wanted = _fixed_part(path), path.split("/")
        infos = [i for i in _files_below(system, base) if _matches(i.path.split("/"), wanted)]
    else:
        raise DataError(f"{_name(path)} does not exist.")
    files = _files(sorted(infos, key=lambda info: info.path), system, base)
    if not files and is_pattern(path):
        raise DataError(f"no file fits the pattern {printable(text)}.")
    if not files:
        raise DataError(f"{_name(path)} has no file that ends in one of {', '.join(_ENDINGS)}.")
    alike = {".ipc": ".arrow", ".feather": ".arrow"}
    kinds = sorted({alike.get(file.ending, file.ending) for file in files})
    if len(kinds) > 1:
        raise DataError(
            f"{_name(path)} has files of different kinds ({', '.join(kinds)}); name one kind, "
            "such as 'folder/*.parquet'."
        )
    return files


def _file_system(text: str, filesystem: Any) -> tuple[Any, str]:
    """Return what opens the files, and the path in it."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import fs  # noqa: PLC0415

    if filesystem is not None:
        if not isinstance(filesystem, fs.FileSystem):
            filesystem = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
        return filesystem, text
    if "://" not in text:
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(text)).replace(os.sep, "/")
    try:
        scheme, _, rest = text.partition("://")
        query = ""
        if match := _QUERY.search(rest):  # such as "?region=eu-west-1", which is not a pattern
            rest, query = rest[: match.start()], match.group()
        system, base = fs.FileSystem.from_uri(f"{scheme}://{_fixed_part(rest)}{query}")
    except (pa.ArrowException, ValueError, OSError):  # its message may hold a password
        raise ParameterError(
            "data has an address that Arrow cannot open; pass filesystem= for others than s3://, "
            "gs://, hdfs:// and file://."
        ) from None
    return system, base + rest[len(_fixed_part(rest)) :]


def _fixed_part(path: str) -> str:
    """Return the folder of a pattern that has no wildcards, or the whole path."""
    if not is_pattern(path):
        return path
    parts = path.split("/")
    first = next(number for number, part in enumerate(parts) if is_pattern(part))
    return "/".join(parts[:first]) or "/"


def _matches(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a path matches a pattern: "**" stands for any folders, "*" for one."""
    if not wanted or not parts:
        return not wanted and not parts
    if wanted[0] == "**":
        return _matches(parts, wanted[1:]) or _matches(parts[1:], wanted)
    return fnmatchcase(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:])


def _files_below(system: Any, base: str) -> list[Any]:
    from pyarrow import fs  # noqa: PLC0415

    try:
        infos = system.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
    except OSError:
        raise DataError(f"{_name(base)} cannot be listed.") from None
    skip = len(base.rstrip("/")) + 1
    return [
        info
        for info in infos
        if info.is_file
        and _ending(info.path)
        and not any(part[:1] in "._" for part in info.path[skip:].split("/"))
    ]


def _files(infos: Sequence[Any], system: Any, base: str) -> list[File]:
    for info in infos:
        if not _ending(info.path):
            raise DataError(f"{_name(info.path)} must end in one of {', '.join(_ENDINGS)}.")
        if info.size == 0:
            raise DataError(f"{_name(info.path)} is empty.")
    skip = len(base.rstrip("/")) + 1
    return [
        File(
            *(info.path, info.size, info.mtime_ns or 0, number, len(infos)),
            keys=_folder_keys(info.path[skip:].split("/")[:-1]),
            system=system,
        )
        for number, info in enumerate(infos, 1)
    ]


def _folder_keys(folders: Iterable[str]) -> tuple[tuple[str, str | None], ...]:
    """Read columns from folders such as "arm=treated"."""
    pairs = (folder.partition("=") for folder in folders)
    return tuple(
        (unquote(name), None if value == _HIVE_NULL else unquote(value))
        for name, sign, value in pairs
        if sign and name
    )


def _single_file(path: str | os.PathLike[str]) -> File:
    """Return a file of this machine that is read as a whole."""
    from pyarrow import fs  # noqa: PLC0415

    file = Path(path)
    name = printable(file.name)
    if _ending(file.name) not in _TABLE_ENDINGS:
        raise DataError(f"{name} must end in one of {', '.join(_TABLE_ENDINGS)}.")
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
    system, text = fs.LocalFileSystem(), str(file)
    info = system.get_file_info(text)
    return File(text, info.size, info.mtime_ns or 0, system=system)


# --- one file in memory ---------------------------------------------------------------------


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
        numbers are floats at once: how long reading takes would depend on one value.

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
    file = _single_file(path)
    names = _schema(file).names
    if columns is None and len(set(names)) < len(names):
        raise DataError(f"{file.label} has more than one column of the same name.")
    wanted = names if columns is None else _distinct(columns)
    _require_columns(file, names, wanted)
    if file.ending == ".parquet":
        with _refusing(file, _PARQUET_FAULT), _parquet(file) as parquet:
            # select: "a" would also bring the leaves of a nested a, and the file's own order
            table = parquet.read(columns=wanted).select(wanted)
    else:
        single = len(names) == 1
        table = _read_csv(file, wanted, text, single=single, registered=registered)
    if table.num_rows == 0:
        raise DataError(f"{file.label} has no rows.")
    return table


def check_columns(path: str | os.PathLike[str], columns: Sequence[str]) -> None:
    """Refuse a file that is not there or lacks a column; rows are not looked at."""
    file = _single_file(path)
    _require_columns(file, _schema(file).names, _distinct(columns))


def read_schema(path: str | os.PathLike[str]) -> pa.Schema:
    """Return names and types of the columns; those of CSV are guessed from its beginning."""
    return _described(_single_file(path))


def _described(file: File) -> pa.Schema:
    """Return names and types of a file whose first line must be a header, if it is CSV."""
    schema = _schema(file)
    if file.ending == ".parquet":
        return schema
    names = schema.names
    if len(names) == 1 and (other := next((c for c in ";\t|" if c in names[0]), None)):
        raise DataError(
            f"{file.label} has one column only: its fields seem to be separated by "
            f"{_SEPARATORS[other]}. Files that end in .csv have commas, those in .tsv tabs."
        )
    if any(map(_is_numeral, names)):
        raise DataError(
            f"{file.label} has a number in its first line, as a row of data does. Put "
            "the names of the columns there; if they are numbers, write the schema by hand."
        )
    return schema


def _schema(file: File) -> pa.Schema:
    if file.ending == ".parquet":
        with _refusing(file, _PARQUET_FAULT), _parquet(file) as parquet:
            return parquet.schema_arrow
    with _refusing(file, _CSV_FAULT), _csv_reader(file) as reader:
        _ = reader.schema.names  # fails here if they are not in UTF-8
        return reader.schema


def _distinct(columns: Iterable[str]) -> list[str]:
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted or len(set(wanted)) < len(wanted):
        reject("columns", "at least one, and each only once", wanted)
    return wanted


def _require_columns(file: File, names: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if names.count(name) == 1:
            continue
        problem = "more than one column" if name in names else "no column"
        fault = f"{file.label} has {problem} {name!r}"
        # the first line of CSV is a header if it has a name that was asked for, and no number
        header = {*wanted} & {*names} and not any(map(_is_numeral, names))
        if file.ending == ".parquet" or header:
            raise DataError(f"{fault}; it has: {listed(names)}.")
        word = "tabs" if _DELIMITERS[file.ending] == "\t" else "commas"
        raise DataError(f"{fault}. Does its first line name the columns, separated by {word}?")


def _is_numeral(name: str) -> bool:
    """Whether the name of a column looks like a number in somebody's row."""
    return _NUMERAL.fullmatch(name.strip()) is not None


@contextmanager
def _refusing(file: File, fault: str) -> Iterator[None]:
    """Replace Arrow's messages, which may quote values."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        yield
    except DataError:  # it is a ValueError too
        raise
    except UnicodeDecodeError:
        raise DataError(f"{file.label} {_ENCODING_FAULT}") from None
    except (pa.ArrowException, OSError, ValueError):
        raise DataError(f"{file.label} {fault}") from None


# --- CSV ------------------------------------------------------------------------------------


def _read_csv(
    file: File, wanted: Sequence[str], text: Collection[str], *, single: bool, registered: bool
) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.csv as pc  # noqa: PLC0415

    with _refusing(file, _CSV_FAULT), file.open_stream() as stream:
        table = pc.read_csv(
            stream,
            # with threads a truncated archive can keep the program from ending
            read_options=pc.ReadOptions(use_threads=not file.ending.endswith(".gz")),
            **_csv_options(file, wanted, single=single),
        )
        if not registered:
            _check_quotes(file, table.num_rows, single=single)
    columns = [
        table.column(name) if name in text else _typed(table.column(name), floats=registered)
        for name in wanted
    ]
    return pa.table(columns, names=list(wanted))


@contextmanager
def _csv_reader(file: File, columns: Sequence[str] = (), *, single: bool = False) -> Iterator[Any]:
    """Open a file to read columns as text; without columns, types are guessed."""
    import pyarrow.csv as pc  # noqa: PLC0415

    with (
        file.open_stream() as stream,
        pc.open_csv(
            stream,
            # with threads a truncated archive can keep the program from ending
            read_options=pc.ReadOptions(use_threads=False),
            **_csv_options(file, columns, single=single),
        ) as reader,
    ):
        yield reader


def _csv_options(file: File, columns: Sequence[str], *, single: bool) -> dict[str, Any]:
    """Return how a file is parsed; ``single`` if it has one column."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.csv as pc  # noqa: PLC0415

    return {
        "parse_options": pc.ParseOptions(
            delimiter=_DELIMITERS[file.ending],
            newlines_in_values=True,
            ignore_empty_lines=not single,  # in a file of one column they are rows
        ),
        "convert_options": pc.ConvertOptions(
            include_columns=list(dict.fromkeys(columns)),
            column_types=dict.fromkeys(columns, pa.string()),  # Arrow takes 0x1F for a number
            null_values=list(MISSING_TEXT),
        ),
    }


def _check_quotes(file: File, rows: int, *, single: bool) -> None:
    """Refuse a file in which a strict reader finds other rows, if it has quotes at all.

    Arrow closes an open quote at the end of the file: all rows behind it are then text of one
    field, without an error.
    """
    with file.open_stream() as stream:
        if not any(b'"' in block for block in iter(lambda: stream.read(1 << 20), b"")):
            return
    with file.open_stream() as stream:
        # the text need not be UTF-8: only structure counts
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        records = csv.reader(lines, delimiter=_DELIMITERS[file.ending], strict=True)
        try:  # in a file of one column a blank line is a row
            count = sum(1 for record in records if record or single) - 1
        except csv.Error:
            count = -1
    if count != rows:
        raise DataError(f"{file.label} {_QUOTE_FAULT}")


def _typed(values: pa.ChunkedArray, *, floats: bool = False) -> pa.ChunkedArray:
    """Return a column of text as integers, floats or booleans, if all of it is that.

    With ``floats`` integers become floats as well, so that one value does not change the steps.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    present = _present(values)
    hexadecimal = pc.any(pc.match_substring(present, "x", ignore_case=True)).as_py()
    # Arrow takes 0x1F for an integer, never for a float
    whole = [] if hexadecimal or floats else [pa.int64()]
    for kind in [*whole, pa.float64(), pa.bool_()]:
        try:
            return pc.cast(present, kind)
        except pa.ArrowInvalid:  # its message quotes a value
            continue
    return values


def _as_numbers(values: pa.Array) -> pa.Array:
    """Return some of a column of text as floats, true and false as 1 and 0.

    Each value is read by itself, so that it does not matter where a column is cut; a whole column
    (:func:`_typed`) must be of one kind. If one value is no number, all stay text.
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


class FileRows(Part):
    """Rows of a file, its field ``file``."""

    __slots__ = ()

    file: File

    @property
    def label(self) -> str:
        """The label of the file."""
        return self.file.label


@dataclass(frozen=True, slots=True)
class DelimitedRows(FileRows):
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
    def typed(self) -> bool:
        """CSV has no types."""
        return False

    def as_text(self, names: Collection[str]) -> Part:
        """Return it with these columns as text, besides those that are."""
        return replace(self, text=self.text | set(names))

    def schema(self, names: Sequence[str]) -> pa.Schema:
        """Return types that are guessed from the beginning."""
        del names
        return _described(self.file)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow as pa  # noqa: PLC0415

        with (
            _refusing(self.file, _CSV_FAULT),
            _csv_reader(self.file, columns, single=self.single) as reader,
        ):
            for batch in reader:
                values = [
                    batch.column(name) if name in self.text else _as_numbers(batch.column(name))
                    for name in columns
                ]
                yield pa.record_batch(values, names=list(columns))


# --- parts of files -------------------------------------------------------------------------

Columns = list[tuple[str, str]]
"""Names of columns, and kinds of their values; "" where there are no types."""


def _file_parts(files: Sequence[File]) -> tuple[tuple[str, ...], list[Part]]:
    """Return the columns and the parts of files of one kind, which have the same columns."""
    opened: list[tuple[File, Part]] = []
    first: Columns = []
    openers = {**dict.fromkeys(_DELIMITERS, _csv_parts), ".parquet": _parquet_parts}
    openers[".npy"] = _npy_parts
    for file in files:
        with hiding_values(file.label):
            columns, parts = openers.get(file.ending, _arrow_parts)(file)
        if not parts:
            raise DataError(f"{file.label} has no rows.")
        first = first or columns
        _require_alike(first, columns, files[0], file)
        opened += [(file, part) for part in parts]
    names = tuple(name for name, _ in first)
    if files[0].ending == ".npy":
        return names, [part for _, part in opened]
    return _with_folder_keys(names, opened)


def _require_alike(first: Columns, other: Columns, one: File, file: File) -> None:
    """Refuse a file with other columns, or other kinds of values; both are public."""
    names = sorted(name for name, _ in first)
    if names != sorted(name for name, _ in other):  # not quoted: it may be somebody's row
        raise DataError(
            f"{file.label} has other columns than {one.label}: files that are read together must "
            "have the same."
        )
    if len(set(names)) < len(names):
        return  # refused if they are asked for
    kinds = dict(other)
    for name, kind in first:
        if kinds[name] != kind and "nothing" not in (kinds[name], kind):
            raise DataError(
                f"column {printable(name)!r} holds {kinds[name]} in {file.label} and {kind} in "
                f"{one.label}: files that are read together must have the same."
            )


def _kinds(schema: pa.Schema) -> Columns:
    """Return what the columns of a schema hold, in words."""
    import pyarrow.types as kinds  # noqa: PLC0415

    columns = []
    for column in schema:
        kind, word = column.type, ""
        kind = kind.value_type if kinds.is_dictionary(kind) else kind
        if kinds.is_null(kind):
            word = "nothing"
        elif kinds.is_boolean(kind):
            word = "true and false"
        elif is_number(kind):
            word = "numbers"
        else:
            word = "text" if str(kind) in LABEL_TYPES else str(kind)
        columns.append((column.name, word))
    return columns


def _csv_parts(file: File) -> tuple[Columns, list[Part]]:
    """Count the rows as they will be read, and strictly where there are quotes."""
    with _refusing(file, _CSV_FAULT):
        with _csv_reader(file) as reader:
            names = reader.schema.names
        single = len(names) == 1
        with _csv_reader(file, names[:1], single=single) as reader:
            rows = sum(len(batch) for batch in reader)
        _check_quotes(file, rows, single=single)
    return [(name, "") for name in names], [DelimitedRows(file, rows, single)] if rows else []


@dataclass(frozen=True, slots=True)
class ParquetRows(FileRows):
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
                _BATCH_ROWS, row_groups=[self.group], columns=names, use_threads=False
            ):
                # "a" also brings the leaves of a nested a, and the file's own order
                yield batch.select(names)


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


def _parquet_parts(file: File) -> tuple[Columns, list[Part]]:
    footer, _ = _footer(file)
    counts = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    parts: list[Part] = [ParquetRows(file, group, n) for group, n in enumerate(counts) if n]
    return _kinds(footer.schema.to_arrow_schema()), parts


@dataclass(frozen=True, slots=True)
class ArrowRows(FileRows):
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


def _arrow(stream: Any, columns: Sequence[str] | None = None) -> Any:
    """Open a file to read some columns, or the first, by which rows are counted."""
    from pyarrow import ipc  # noqa: PLC0415

    names = ipc.open_file(stream).schema.names
    wanted = [0] if columns is None else sorted(names.index(name) for name in columns)
    stream.seek(0)
    return ipc.open_file(stream, options=ipc.IpcReadOptions(included_fields=wanted))


def _arrow_parts(file: File) -> tuple[Columns, list[Part]]:
    from pyarrow import ipc  # noqa: PLC0415

    with file.open() as stream:
        schema = ipc.open_file(stream).schema
    parts: list[Part] = []
    with file.open() as stream:
        reader = _arrow(stream)
        first = rows = 0
        for number in range(reader.num_record_batches):
            rows += reader.get_batch(number).num_rows
            if rows >= _PART_ROWS or (rows and number == reader.num_record_batches - 1):
                parts.append(ArrowRows(file, first, number, rows))
                first, rows = number + 1, 0
    return _kinds(schema), parts


@dataclass(frozen=True, slots=True)
class SavedRows(FileRows):
    """Rows of an .npy file, mapped by each reader."""

    file: File
    names: tuple[str, ...]
    first: int
    rows: int

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        self.file.check()
        array = _mapped(self.file)[self.first : self.first + self.rows]
        yield from _array_batches(array, self.names, columns)


def _npy_parts(file: File) -> tuple[Columns, list[Part]]:
    if not file.local:
        raise DataError(f"{file.label} must be on a disk of this machine to be mapped.")
    array = _mapped(file)
    names = numbered_names(array.shape[1])
    parts: list[Part] = [
        SavedRows(file, names, start, min(_PART_ROWS, len(array) - start))
        for start in _starts(len(array))
    ]
    return [(name, "") for name in names], parts


def _mapped(file: File) -> NDArray[Any]:
    array = np.load(file.path, mmap_mode="r", allow_pickle=False)
    return _two_dimensions(array, file.label)


@dataclass(frozen=True, slots=True)
class Keyed(WrappedPart):
    """Rows of a file in a folder such as "arm=treated": that column is the same in all of them."""

    part: Part
    keys: tuple[tuple[str, Any], ...]
    written: tuple[tuple[str, str | None], ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.part.rows

    def as_text(self, names: Collection[str]) -> Part:
        """Return it with these columns as their folders are called."""
        import pyarrow as pa  # noqa: PLC0415

        texts = {name: pa.scalar(text, pa.string()) for name, text in self.written if name in names}
        keys = tuple((name, texts.get(name, value)) for name, value in self.keys)
        return replace(self, part=self.part.as_text(names), keys=keys)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow as pa  # noqa: PLC0415

        keys = dict(self.keys)
        stored = [name for name in columns if name not in keys]
        if not stored:
            for start in range(0, self.rows, _BATCH_ROWS):
                count = min(_BATCH_ROWS, self.rows - start)
                values = [pa.repeat(keys[name], count) for name in columns]
                yield pa.record_batch(values, names=list(columns))
            return
        for batch in self.part.batches(stored):
            values = [
                pa.repeat(keys[name], len(batch)) if name in keys else batch.column(name)
                for name in columns
            ]
            yield pa.record_batch(values, names=list(columns))


def _with_folder_keys(
    names: tuple[str, ...], opened: Sequence[tuple[File, Part]]
) -> tuple[tuple[str, ...], list[Part]]:
    """Add the columns of folders such as "arm=treated"."""
    import pyarrow as pa  # noqa: PLC0415

    written = [tuple((k, v) for k, v in file.keys if k not in names) for file, _ in opened]
    keys = [key for key, _ in written[0]]
    if any([key for key, _ in own] != keys for own in written):
        raise DataError("folders such as name=value must have the same names beside each other.")
    if not keys:
        return names, [part for _, part in opened]
    values = {
        key: _typed(pa.chunked_array([pa.array([dict(own)[key] for own in written], pa.string())]))
        for key in keys
    }
    parts: list[Part] = [
        Keyed(part, tuple((key, values[key][place]) for key in keys), own)
        for place, ((_, part), own) in enumerate(zip(opened, written, strict=True))
    ]
    return (*names, *keys), parts


# --- rows in memory -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class RowsInMemory(Part):
    """Rows that other processes cannot read: those of an array, a table or a frame."""

    data: Any
    names: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.data)

    @property
    def travels(self) -> bool:
        """Whether other processes can read them."""
        return False


class ArrayRows(RowsInMemory):
    """Rows of an array of two dimensions."""

    __slots__ = ()

    label = "the array"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        yield from _array_batches(self.data, self.names, columns)


class TableRows(RowsInMemory):
    """Rows of an Arrow table."""

    __slots__ = ()

    label = "the table"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        yield from self.data.select(list(columns)).to_batches(_BATCH_ROWS)


class FrameRows(RowsInMemory):
    """Rows of a pandas frame."""

    __slots__ = ()

    label = "the frame"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow as pa  # noqa: PLC0415

        places = [self.names.index(name) for name in columns]
        for start in range(0, len(self.data), _BATCH_ROWS):
            rows = self.data.iloc[start : start + _BATCH_ROWS]
            values = [pa.array(rows.iloc[:, place], from_pandas=True) for place in places]
            pieces = [v.combine_chunks() if isinstance(v, pa.ChunkedArray) else v for v in values]
            yield pa.record_batch(pieces, names=list(columns))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FragmentRows(Part):
    """A piece of an Arrow data set."""

    fragment: Any
    fields: pa.Schema
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
            schema=self.fields, columns=list(columns), use_threads=False, batch_size=_BATCH_ROWS
        )
        yield from scanner.to_batches()


def _array_parts(array: NDArray[Any]) -> tuple[tuple[str, ...], list[Part]]:
    if isinstance(array, np.ma.MaskedArray):  # whether anything is masked depends on people
        raise DataError("data must not be a masked array: pass a data frame or an Arrow table.")
    rows = _two_dimensions(np.asarray(array), "data")
    names = numbered_names(rows.shape[1])
    return names, [ArrayRows(rows[a : a + _PART_ROWS], names) for a in _starts(len(rows))]


def frame_parts(data: Any) -> tuple[tuple[str, ...], list[Part]]:
    """Return the columns and parts of a data frame, a table or a data set of any kind."""
    pandas = sys.modules.get("pandas")  # a caller with a frame has imported it
    if pandas is not None and isinstance(data, pandas.DataFrame):
        names = tuple(map(str, data.columns))
        frames = (data.iloc[start : start + _PART_ROWS] for start in _starts(len(data)))
        return names, [FrameRows(frame, names) for frame in frames]
    datasets = sys.modules.get("pyarrow.dataset")
    if datasets is not None and isinstance(data, datasets.Dataset):
        return _dataset_parts(data)
    with hiding_values("data"):
        table = _as_table(data)
    names = tuple(table.schema.names)
    slices = (table.slice(start, _PART_ROWS) for start in _starts(table.num_rows))
    return names, [TableRows(each, names) for each in slices]


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
            answer = getattr(data, name)()
            return answer if isinstance(answer, pa.Table) else pa.table(answer)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    try:
        import narwhals  # noqa: PLC0415
    except ImportError:
        raise DataError(f"{_EXPECTED} Other frames need narwhals: pip install narwhals.") from None
    frame: Any = narwhals.from_native(data, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        frame = frame.collect("pyarrow")
    if not isinstance(frame, narwhals.DataFrame):
        raise DataError(_EXPECTED)
    return frame.to_arrow()


def _dataset_parts(data: Any) -> tuple[tuple[str, ...], list[Part]]:
    """Return the fragments of an Arrow data set, those of Parquet by row groups."""
    with hiding_values("the data set"):
        try:
            fragments = list(data.get_fragments())
        except ValueError:  # it is filtered or projected
            return frame_parts(data.to_table())
        pieces: list[Any] = []
        for each in fragments:
            by_groups = hasattr(each, "split_by_row_group")  # Parquet
            pieces += each.split_by_row_group() if by_groups else [each]
        parts: list[Part] = [
            FragmentRows(piece, data.schema, number, rows)
            for number, piece in enumerate(pieces)
            if (rows := _fragment_rows(piece))
        ]
    return tuple(data.schema.names), parts


def _fragment_rows(piece: Any) -> int:
    """Return the rows of a fragment; one of several row groups would count those of its file."""
    groups = getattr(piece, "row_groups", None)
    return int(piece.count_rows()) if groups is None else sum(own.num_rows for own in groups)


def _array_batches(
    array: NDArray[Any], names: Sequence[str], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415

    places = [names.index(name) for name in columns]
    for start in range(0, len(array), _BATCH_ROWS):
        block = native_numbers(np.asarray(array[start : start + _BATCH_ROWS]))
        values = [pa.array(np.ascontiguousarray(block[:, place])) for place in places]
        yield pa.record_batch(values, names=list(columns))


def _two_dimensions(array: NDArray[Any], label: str) -> NDArray[Any]:
    if array.ndim not in (1, 2) or array.dtype.kind not in "biuf":
        raise DataError(f"{label} must hold real numbers, in one or two dimensions.")
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.shape[1] == 0:
        raise DataError(f"{label} must have at least one column.")
    return array


def _starts(rows: int) -> range:
    return range(0, rows, _PART_ROWS)
