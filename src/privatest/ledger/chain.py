"""The hash chain: every entry holds a digest of itself and of all entries before it.

Whoever changes, drops or inserts an entry changes every digest after it. Whoever rewrites the
whole chain changes its head, so a custodian keeps a head elsewhere (verify compares).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from privatest.errors import LedgerError, ParameterError

__all__ = ["GENESIS", "canonical", "digest", "parsed", "read_body"]

T = TypeVar("T")

GENESIS = "0" * 64
"""What comes before the first entry."""


def canonical(value: object) -> str:
    """Write a value as JSON in the one way that is hashed."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(
            "released must be JSON: numbers that are finite, strings, lists and mappings."
        ) from None


def digest(previous: str, body: str) -> str:
    """Digest of an entry, given the digest of the one before it."""
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def parsed(reader: Callable[[Any], T], text: str) -> T:
    """Read a stored value; what cannot be read decides nothing."""
    try:
        return reader(json.loads(text))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise LedgerError(
            "The ledger is damaged: budgets or sums cannot be read. Nothing was granted."
        ) from None


def read_body(body: str) -> Mapping[str, Any]:
    """Read a body back; an empty mapping if it was damaged."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
