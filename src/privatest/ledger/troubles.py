"""What went wrong with a database, in our words, and what is known about the budget then.

A driver's own words may quote a path, a password or a statement, so they are not repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from sqlalchemy import URL

__all__ = ["Phase", "explained"]

Phase = Literal["connect", "work", "commit"]
"""How far a transaction got: only what fails in the last may have happened all the same."""

_SYMPTOMS = (
    ("readonly", "it is read-only"),
    ("read-only", "it is read-only"),
    ("permission denied", "permission is denied"),
    ("locked", "another process holds it"),
    ("lock timeout", "another process holds it"),
    ("full", "the disk is full"),
    ("no space", "the disk is full"),
    ("malformed", "the file is damaged"),
    ("corrupt", "the file is damaged"),
    ("could not decode", "the file is damaged"),
    ("no such table", "the file is damaged"),
    ("no such column", "the file is damaged"),
    ("not a database", "the file is not a ledger, or it is damaged"),
    ("unable to open", "the file cannot be opened"),
    ("disk i/o", "the disk cannot be read or written"),
    ("never changed", "entries are never changed"),
)
# Before anything else: here "does not exist" is about a database or a user, never about a table.
_CONNECTING = (
    ("password", "the server does not accept the user's password"),
    ("pg_hba", "the server does not let this user in from here"),
    ("authentication", "the server does not accept this user"),
    ("role", "the server has no such user"),
    ("database", "the server has no database {database}"),
    ("translate host name", "there is no host {host}"),
    ("resolve", "there is no host {host}"),
    ("name or service", "there is no host {host}"),
    ("too many", "the server has too many connections"),
    ("connection slots", "the server has too many connections"),
    ("starting up", "the server is starting or stopping"),
    ("shutting down", "the server is starting or stopping"),
    ("refused", "no server listens at {place}"),
    ("no such file", "no server listens at {place}"),
    ("timeout", "no server answers at {place}"),
    ("timed out", "no server answers at {place}"),
)
_NOTHING = "Nothing was granted."
_UNKNOWN = (
    "The ledger cannot be used: {reason} while an entry was being written. It is not known whether "
    "it was written, and so whether budget was spent. Release nothing. When the ledger is back, "
    "`privatest ledger history NAME` shows the entry if it was: then its cost is spent."
)


def explained(error: Any, phase: Phase, url: URL) -> str:
    """Return what failed, and what is known about the budget; ``error`` is SQLAlchemy's."""
    message = str(error.orig).lower()
    if phase == "connect" and url.get_backend_name() == "postgresql":
        return f"The ledger cannot be used: {_not_connected(message, url)}. {_NOTHING}"
    reason = next((ours for theirs, ours in _SYMPTOMS if theirs in message), None)
    if reason is None:
        lost = error.connection_invalidated or "connect" in message
        reason = "the connection was lost" if lost else type(error.orig).__name__
    if phase == "commit" and _may_have_happened(error):
        return _UNKNOWN.format(reason=reason)
    return f"The ledger cannot be used: {reason}. {_NOTHING}"


def _not_connected(message: str, url: URL) -> str:
    # the driver names what it asked for; that must not be taken for what is wrong
    for own in filter(None, (url.database, url.username, url.host)):
        message = message.replace(f'"{own.lower()}"', "")
    socket = url.query.get("host")
    host = url.host or (socket if isinstance(socket, str) else "") or "the usual place"
    place = f"{host}, port {url.port}" if url.port else host
    found = next((ours for theirs, ours in _CONNECTING if theirs in message), None)
    words = found or "there is no connection to {place}"
    return words.format(database=repr(url.database), host=host, place=place)


def _may_have_happened(error: Any) -> bool:
    """Return whether a transaction whose COMMIT failed may be in the database all the same.

    SQLite takes a failed COMMIT back, unless the disk failed in its last act: to say that what
    was written is there. A server may have done what it could no longer confirm, unless it says
    itself that it rolled back (class 40).
    """
    name = getattr(error.orig, "sqlite_errorname", None)
    if name is not None:
        return "FSYNC" in name
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or state is None or not state.startswith(("23", "40"))
