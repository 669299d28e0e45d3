"""Which files and tables a data set has, by public facts: two budgets for one of them add up.

Files are known by what the file system calls them (device and number), so that another path, a
link, a folder, or a pattern that covers a file does not hide it. A table is known by its server,
its database and its name, whoever signs in. A view, a copy, or rows that are in two tables
cannot be found this way.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from privatest.core.errors import PrivatestError
from privatest.data.files import files_at
from privatest.data.reading import Place

if TYPE_CHECKING:
    from privatest.curator.config import DatasetConfig

__all__ = ["covered", "source_name"]

_HERE = ("", "localhost", "127.0.0.1", "::1")
_USUAL = {"postgresql": "public.", "sqlite": "main."}


def covered(dataset: DatasetConfig, *, remote: bool = False) -> frozenset[object]:
    """Return what a data set has: two that share any of it are about the same people.

    With ``remote`` files at other addresses are listed too.
    """
    place = dataset.place
    if place.is_database:
        return frozenset({_table(place)})
    if "://" in place.text and not remote:
        return frozenset({place.text})
    try:
        files = files_at(place.text)
    except PrivatestError:  # what is wrong is said elsewhere
        return frozenset({_number(place.text)})
    return frozenset(_number(file.path) if file.local else file.path for file in files)


def source_name(dataset: DatasetConfig) -> str:
    """Return where the rows are, without a user or a password: the same after a renaming."""
    place = dataset.place
    if place.is_database:
        return repr(_table(place))
    return place.text if "://" in place.text else os.path.realpath(place.text)


def _number(path: str) -> object:
    try:
        found = Path(path).stat()
    except OSError:
        return path
    return found.st_dev, found.st_ino


def _table(place: Place) -> object:
    parts = urlsplit(place.text)
    kind = "sqlite" if parts.scheme == "sqlite" else "postgresql"
    name = (place.table or "").replace('"', "")
    name = name.casefold() if kind == "sqlite" else name
    name = name.removeprefix(_USUAL[kind])
    if kind == "sqlite":
        path = Path(unquote(parts.path[1:]))
        return "sqlite", _number(str(path if path.exists() else Path("/") / path)), name
    host = parts.hostname or parse_qs(parts.query).get("host", [""])[0]
    return kind, "" if host in _HERE else host, parts.port or 5432, parts.path, name
