"""Tables and queries of databases.

All readings of a table see it as it was when it was opened. Messages hold neither a value nor an
address, which may have a password.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from privatest.core.errors import DataError, ParameterError, PrivatestError
from privatest.core.validation import of_type
from privatest.data.scanning.postgresql import PostgreSQL
from privatest.data.scanning.sqlite import SQLite
from privatest.data.source import Engine, Source, Workers

if TYPE_CHECKING:
    pass

__all__ = ["scan_sql", "sqlite_stamp"]

_URLS = "postgresql://user@host/database or sqlite:///folder/file.db"
_LONGEST_NAME = 200


def scan_sql(
    url: str,
    *,
    table: str | None = None,
    query: str | None = None,
    text: Collection[str] = (),
    engine: Engine = "local",
    threads: int | None = None,
    scheduler: str | None = None,
) -> Source:
    """Open a table or a query of a database; see :func:`privatest.scan`.

    Parameters
    ----------
    url : str
        "postgresql://user@host/database" or "sqlite:///folder/file.db".
    table : str, optional
        Name of the table, with its schema before a point where it needs one. It is read in
        pieces, and only the columns that are needed.
    query : str, optional
        A SELECT statement instead. Its answer is held in memory: run again, it may have its rows
        in another order.
    text : collection of str
        Columns of SQLite to read as text, besides those that a schema describes by categories.
    engine, threads, scheduler
        As in :func:`privatest.scan`; workers must reach the database too.

    Returns
    -------
    Source
        Columns and number of rows, both of one state of the database.

    Raises
    ------
    DataError
        If the database cannot be reached, or has no such table. Neither the address nor the
        database's own words are repeated: they may hold a password, or values.

    Notes
    -----
    PostgreSQL keeps the state that was counted until the source is let go; what others write
    meanwhile is not seen. An SQLite file must not be written to. Nothing is written to either.
    """
    workers = Workers(engine, threads, scheduler)
    if (table is None) == (query is None):
        raise ParameterError("table or query must be given, one of them.")
    place = _place(url)
    if table is not None and not (of_type(table, str) and 0 < len(table) <= _LONGEST_NAME):
        raise ParameterError("table must be the name of a table.")
    with _telling("the database cannot be reached, or has no such table"):
        names, parts = place.held(query) if table is None else place.opened(table)
    return Source(names, tuple(parts), workers).as_text(text)


def sqlite_stamp(url: str) -> tuple[int, ...]:
    """Return sizes and times of an SQLite database's files; nothing if they are gone."""
    place = _place(url)
    assert isinstance(place, SQLite)
    return place.stamp


def _place(url: object) -> PostgreSQL | SQLite:
    if not isinstance(url, str):
        raise ParameterError(f"url must be {_URLS}.")
    parts = urlsplit(url)
    if parts.scheme in ("postgresql", "postgres"):
        return PostgreSQL(url)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        # as elsewhere: three slashes before a relative path, four before an absolute one
        path = Path(unquote(parts.path[1:]))
        return SQLite(str(path if path.exists() else Path("/") / path))
    raise ParameterError(f"url must be {_URLS}.")


@contextmanager
def _telling(what: str) -> Iterator[None]:
    try:
        yield
    except PrivatestError:
        raise
    except Exception as error:
        raise DataError(f"{what} ({type(error).__name__}).") from None
