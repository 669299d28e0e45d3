"""Sources of rows: files, folders, frames and tables, opened but not read."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.data.scanning.databases import scan_sql
from privatest.data.source import Engine, Part, Source, Workers

__all__ = ["scan", "scan_sql"]


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

    Any test takes what this returns in the place of its data. Rows are counted now, and read
    column by column when a test needs them, block by block.

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
    workers = Workers(engine, threads, scheduler)
    if isinstance(data, Source):
        raise ParameterError("data is a source already.")
    names, parts, named = _opened(data, filesystem)
    return Source(names, tuple(parts), workers, named).as_text(text)


def _opened(data: Any, filesystem: Any) -> tuple[tuple[str, ...], list[Part], bool]:
    """Return columns, parts, and whether the columns have names of their own."""
    from privatest.data.scanning import frames  # noqa: PLC0415

    if isinstance(data, (str, os.PathLike)):
        return _opened_files(data, filesystem)
    if isinstance(data, np.ndarray):
        return *frames.array_parts(data), False
    names, parts = frames.frame_parts(data)
    if not names:
        raise DataError("data must have at least one column.")
    return names, parts, True


def _opened_files(
    place: str | os.PathLike[str], filesystem: Any
) -> tuple[tuple[str, ...], list[Part], bool]:
    from privatest.data.scanning.columnar import columnar_parts, with_keys  # noqa: PLC0415
    from privatest.data.scanning.delimited import delimited_parts  # noqa: PLC0415
    from privatest.data.scanning.frames import saved_array_parts  # noqa: PLC0415
    from privatest.data.scanning.places import TEXT_ENDINGS, ending_of, files_at  # noqa: PLC0415

    files = files_at(place, filesystem)
    ending = ending_of(files[0].path)
    if ending == ".npy":
        return *saved_array_parts(files), False
    if ending in TEXT_ENDINGS:
        names, parts = delimited_parts(files)
    else:
        names, parts = columnar_parts(files, parquet=ending == ".parquet")
    return *with_keys(names, parts, files), True
