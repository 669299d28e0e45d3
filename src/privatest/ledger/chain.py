"""The hash chain: every entry holds a digest of itself and of all entries before it.

Whoever changes, drops or inserts an entry changes every digest after it. Whoever rewrites the
whole chain changes its head, so a custodian keeps a head elsewhere (verify compares).
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
"""What comes before the first entry."""

DAMAGED = "The ledger was changed or damaged: {what} cannot be read. Nothing was granted."
"""One wording for whatever is stored and makes no sense."""

# What reading nonsense can raise; RecursionError is JSON that is nested without end.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def canonical(value: object, name: str = "released") -> str:
    """Write a value as JSON in the one way that is hashed; ``name`` is for the error."""
    try:
        return documents.canonical(value)
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(
            f"{name} must be JSON: numbers that are finite, strings, lists and mappings."
        ) from None


def digest(previous: str, body: str) -> str:
    """Digest of an entry, given the digest of the one before it."""
    return documents.digest(f"{previous}\n{body}")


def parsed(reader: Callable[[Any], T], text: str) -> T:
    """Read a stored value; what cannot be read decides nothing."""
    try:
        return reader(json.loads(text))
    except _NONSENSE:
        raise LedgerError(DAMAGED.format(what="a budget or a sum")) from None


def read_body(body: str) -> Mapping[str, Any]:
    """Read back what was recorded."""
    try:
        value = json.loads(body)
    except (RecursionError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise LedgerError(DAMAGED.format(what="an entry"))
    return value
