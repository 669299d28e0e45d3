"""Which contents a file has, by a fingerprint that only its custodian can check.

A plain hash in the ledger would let anybody who knows all rows but one try out the last one. So
the fingerprint has a secret key, which stays in the state file.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

__all__ = ["fingerprint", "fingerprinting"]


def fingerprint(source: Path, key: str) -> str:
    """Return the keyed fingerprint of a file's bytes, or "" if it cannot be read."""
    try:
        with source.open("rb") as stream:
            found = hashlib.file_digest(stream, lambda: hmac.new(key.encode(), digestmod="sha256"))
    except OSError:
        return ""
    return found.hexdigest()


@contextmanager
def fingerprinting(source: Path, key: str) -> Iterator[Callable[[], str]]:
    """Compute the fingerprint beside other work; hashing lets other threads run."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(fingerprint, source, key).result
