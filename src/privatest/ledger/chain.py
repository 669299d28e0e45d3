"""The hash chain: every entry holds a digest of itself and of all entries before it.

Changing, dropping or inserting an entry changes every digest after it. Rewriting the whole chain
changes its head, so a custodian keeps a head elsewhere (verify compares it).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from privatest.core import documents
from privatest.core.errors import LedgerError, ParameterError

__all__ = ["DAMAGED", "GENESIS", "canonical", "digest", "parsed", "read_body"]

T = TypeVar("T")

GENESIS = "0" * 64
"""The digest before the first entry."""

DAMAGED = "The ledger was changed or damaged: {what} cannot be read. Nothing was granted."
"""The message for any stored value that is invalid."""

# What reading an invalid value can raise; RecursionError comes from deeply nested JSON.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def canonical(value: object, name: str = "released") -> str:
    """Write a value as canonical JSON, for hashing; ``name`` is for the error."""
    try:
        return documents.canonical(value)
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(
            f"{name} must be JSON: finite numbers, strings, lists and mappings."
        ) from None


def digest(previous: str, body: str) -> str:
    """Return the digest of an entry, given the digest of the one before it."""
    return documents.digest(f"{previous}\n{body}")


def parsed(reader: Callable[[Any], T], text: str) -> T:
    """Read a stored value; an unreadable one is an error, so that nothing is granted by it."""
    try:
        return reader(json.loads(text))
    except _NONSENSE:
        raise LedgerError(DAMAGED.format(what="a budget or a sum")) from None


def read_body(body: str) -> Mapping[str, Any]:
    """Read the recorded body of an entry."""
    try:
        value = json.loads(body)
    except (RecursionError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise LedgerError(DAMAGED.format(what="an entry"))
    return value
