"""Which data a data set has: a quick stamp, a keyed fingerprint, and what it shares with others.

Which contents a file has is told by a fingerprint that only its custodian can check. A plain hash
in the ledger would let anybody who knows all rows but one try out the last one, so the fingerprint
has a secret key, which stays in the state file.

Two budgets for the same data add up, so data sets that share a file or a table are found by public
facts. Files are known by their device and number, so that another path, a link, a folder, or a
pattern that covers a file does not hide it. A table is known by its server, its database and its
name, whoever signs in. A view, a copy, or rows that are in two tables are not found.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from privatest.core.errors import ParameterError, PrivatestError
from privatest.data.files import files_at
from privatest.data.reading import Place

if TYPE_CHECKING:
    from privatest.curator.config import DatasetConfig
    from privatest.data.files import File

_PIECE = 1 << 20
_LOCAL_HOSTS = ("", "localhost", "127.0.0.1", "::1")
_DEFAULT_SCHEMAS = {"postgresql": "public.", "sqlite": "main."}


def refuse_unreadable(dataset: DatasetConfig) -> None:
    """Say that this user may not read the data, and not that it changed."""
    place = dataset.source
    if isinstance(place, Path) and place.exists() and not os.access(place, os.R_OK):
        raise ParameterError(
            f"this user may not read the data of {dataset.name!r}. A curator runs with the rights "
            "of the custodian: analysts ask a service that does."
        )


def identity(dataset: DatasetConfig) -> object:
    """Return what two data sets with the same rows have in common, whatever they are called."""
    if isinstance(dataset.source, Path) and dataset.source.exists():
        found = dataset.source.stat()
        return found.st_dev, found.st_ino
    return str(dataset.source), dataset.table


def stamp(dataset: DatasetConfig) -> tuple[int, int]:
    """Return size and time of the files, without reading them; zeros if they are gone.

    A server has nothing of the kind: its rows are known by their fingerprint alone, which is
    found anew before each answer.
    """
    place = dataset.place
    if place.text.startswith("sqlite://"):
        from privatest.data.databases import sqlite_stamp  # noqa: PLC0415

        return _hashed(sqlite_stamp(place.text))
    if place.is_database:
        return 0, 0
    if isinstance(dataset.source, Path) and dataset.source.is_file():
        found = dataset.source.stat()
        return found.st_size, found.st_mtime_ns
    try:
        files = _files(place)
    except PrivatestError:
        return 0, 0
    return _hashed([(file.path, file.size, file.time) for file in files])


def _hashed(facts: Any) -> tuple[int, int]:
    digest = hashlib.sha256(repr(facts).encode()).digest()
    return int.from_bytes(digest[:6], "big"), int.from_bytes(digest[6:12], "big")


def _files(place: Place) -> list[File]:
    from privatest.data.files import files_at  # noqa: PLC0415

    return files_at(place.text)


def fingerprint(dataset: DatasetConfig, place: Place, key: str) -> str:
    """Return the keyed fingerprint of the bytes of all files, or "" if they cannot be read.

    Of a table it is that of its encoded rows, in the order in which they are stored.
    """
    made = hmac.new(key.encode(), digestmod="sha256")
    try:
        if place.is_database:
            from privatest.data.encoding import encode_sample  # noqa: PLC0415
            from privatest.data.sources import as_blocks  # noqa: PLC0415

            plain = dataset.schema.select(dataset.schema.columns)  # ids are not counted here
            sample = encode_sample(place.source, plain, "", units="own")
            for _, rows in as_blocks(sample.held).blocks(0, len(sample)):
                made.update(rows.tobytes())
        elif isinstance(dataset.source, Path) and dataset.source.is_file():
            with dataset.source.open("rb") as stream:
                _add(made, stream)
        else:
            for file in _files(place):
                made.update(repr((file.number, file.keys, file.size)).encode())
                with file.open() as stream:
                    _add(made, stream)
    except (PrivatestError, OSError):
        return ""
    return made.hexdigest()


def _add(made: Any, stream: Any) -> None:
    for piece in iter(lambda: stream.read(_PIECE), b""):
        made.update(piece)


@contextmanager
def fingerprinting(dataset: DatasetConfig, place: Place, key: str) -> Iterator[Callable[[], str]]:
    """Compute the fingerprint beside other work; hashing releases the GIL.

    A database is opened first: what is fingerprinted is the state that will be read.
    """
    if place.is_database:
        _ = place.source
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(fingerprint, dataset, place, key).result


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
    name = name.removeprefix(_DEFAULT_SCHEMAS[kind])
    if kind == "sqlite":
        path = Path(unquote(parts.path[1:]))
        return "sqlite", _number(str(path if path.exists() else Path("/") / path)), name
    host = parts.hostname or parse_qs(parts.query).get("host", [""])[0]
    return kind, "" if host in _LOCAL_HOSTS else host, parts.port or 5432, parts.path, name
