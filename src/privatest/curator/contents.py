"""Which contents the data of a data set has: a quick stamp, and a fingerprint with a secret key.

Which contents a file has is told by a fingerprint that only its custodian can check. A plain hash
in the ledger would let anybody who knows all rows but one try out the last one; so the fingerprint
has a secret key, which stays in the state file.
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

from privatest.core.errors import ParameterError, PrivatestError
from privatest.data.reading import Place

if TYPE_CHECKING:
    from privatest.curator.config import DatasetConfig
    from privatest.data.files import File

__all__ = ["fingerprint", "fingerprinting", "identity", "refuse_unreadable", "stamp"]

_PIECE = 1 << 20


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

        return _told(sqlite_stamp(place.text))
    if place.is_database:
        return 0, 0
    if isinstance(dataset.source, Path) and dataset.source.is_file():
        found = dataset.source.stat()
        return found.st_size, found.st_mtime_ns
    try:
        files = _files(place)
    except PrivatestError:
        return 0, 0
    return _told([(file.path, file.size, file.time) for file in files])


def _told(facts: Any) -> tuple[int, int]:
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
