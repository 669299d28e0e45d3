"""API tokens: shown once, kept as digests, for a time."""

from __future__ import annotations

import base64
import hashlib
import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from privatest.core.errors import ParameterError
from privatest.core.validation import integer_at_least, one_of
from privatest.service.store import Store, Token, now

__all__ = ["SCOPES", "find_token", "new_token"]

SCOPES = ("ask", "custodian", "auditor")
_HEAD = "pt_"  # so that scanners for lost secrets know it
_MOST_DAYS = 3650


def new_token(store: Store, name: str, *, scopes: Sequence[str] = ("ask",), days: int = 90) -> str:
    """Make a token and return it; nobody can read it again.

    Parameters
    ----------
    store : Store
        Where its digest is kept.
    name : str
        Whose it is: an analyst's name in curator.toml, or a custodian's or auditor's own.
    scopes : sequence of {"ask", "custodian", "auditor"}
        What it opens.
    days : int
        When it ends.
    """
    if not scopes:
        raise ParameterError("scopes must be given.")
    for scope in scopes:
        one_of("scope", scope, SCOPES)
    if integer_at_least("days", days, 1) > _MOST_DAYS:
        raise ParameterError(f"days must be at most {_MOST_DAYS}.")
    # 256 bits of the system's randomness: a plain digest cannot be turned back
    text = _HEAD + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    end = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")
    token = Token(uuid.uuid4().hex[:12], name, tuple(dict.fromkeys(scopes)), now(), end)
    store.add_token(token, _digest(text))
    return text


def find_token(store: Store, text: str) -> Token | None:
    """Return the token if it opens anything now."""
    found = store.token(_digest(text))
    return found if found is not None and found.is_valid else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
