"""JSON in one way, its digest, and files that are replaced whole or not at all.

Digests of shares, plans and ledgers are kept by others for years: the bytes that
:func:`canonical` and :func:`digest` give must never change.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

# Of what commands print and a service answers: grows when a key changes its meaning or goes, not
# when one is added.
JSON_FORMAT = 1
_DRAFTS = count()


def canonical(value: Any) -> str:
    """Write a value as JSON in the one way that is hashed.

    Floats are written by ``repr``, the shortest text that reads back as the same float. Raises
    ValueError for a number that is not finite.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """Return the sha256 of a text in UTF-8, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(value: Any) -> str:
    """Return the digest of a value's canonical form."""
    return digest(canonical(value))


@contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """Give an empty draft to write, which replaces ``path`` if the block succeeds.

    A crash, or a full disk, leaves the old file. With ``private`` only its owner may read it.
    """
    draft = _draft(Path(path), private)
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str, *, private: bool = False) -> None:
    """Write a whole file in UTF-8, or leave what was there."""
    with replacing(path, private=private) as draft:
        draft.write_bytes(text.encode())


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that :func:`replacing` would."""
    _draft(Path(path), private=True).unlink()


def _draft(file: Path, private: bool) -> Path:
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    draft = file.with_name(f"{file.name}.{os.getpid()}-{next(_DRAFTS)}.part")
    draft.unlink(missing_ok=True)  # of a process that had this number before
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))
    return draft


# Default file locations.


def default_ledger() -> str:
    """Return the default path of the ledger: PRIVATEST_LEDGER, or the state folder."""
    return os.environ.get("PRIVATEST_LEDGER") or str(
        _folder("XDG_STATE_HOME", ".local/state", "Application Support") / "ledger.db"
    )


def cache_folder() -> Path:
    """Return the folder of caches on this platform."""
    return _folder("XDG_CACHE_HOME", ".cache", "Caches")


def _folder(variable: str, usual: str, library: str) -> Path:
    """Return a folder of privatest on this platform."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = home / "Library" / library
    else:
        base = Path(os.environ.get(variable) or home / usual)
    return base / "privatest"
