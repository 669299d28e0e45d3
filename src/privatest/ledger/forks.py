"""No connection to a SQLite ledger is open while the process forks.

SQLite keeps a table of the locks that its process holds. A fork copies the table but not the locks:
the child believes that it holds locks that nobody knows of, the parent's last close deletes the
write-ahead log under it, and what the child is granted from then on is written to a file without a
name. So a fork waits for transactions to end and closes idle connections first; they are opened
again when they are needed, by either process for itself.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

from privatest.core.errors import LedgerError

__all__ = ["close_at_forks", "in_use"]

_PATIENCE = 30.0  # seconds that a fork waits for transactions of other threads


class _Closing:
    """How to close the idle connections of one database."""

    __slots__ = ("__weakref__", "idle")

    def __init__(self, idle: Callable[[], None]) -> None:
        self.idle = idle


class _Gate:
    """Who is in a transaction; its lock is held while the process forks."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.active: Counter[int] = Counter()  # by thread
        self.databases: WeakSet[_Closing] = WeakSet()
        self.process = os.getpid()
        self.closed = False  # whether no connection was open when the process forked
        self.unsafe = False  # whether this process was forked while one was

    def before(self) -> None:
        self.changed.acquire()
        self.closed = False
        own = threading.get_ident()
        self.changed.wait_for(lambda: not any(t != own for t in self.active), _PATIENCE)
        for database in list(self.databases):
            database.idle()
        self.closed = not self.active

    def in_parent(self) -> None:
        self.changed.release()

    def in_child(self) -> None:
        """Begin anew: other threads, and whoever waits for the lock, are in the parent alone."""
        self.unsafe = self.unsafe or (bool(self.databases) and not self.closed)
        self.changed = threading.Condition(threading.RLock())
        self.active.clear()
        self.process, self.closed = os.getpid(), False


_gate = _Gate()
if hasattr(os, "register_at_fork"):  # elsewhere processes do not fork
    os.register_at_fork(
        before=_gate.before, after_in_parent=_gate.in_parent, after_in_child=_gate.in_child
    )


def close_at_forks(idle: Callable[[], None]) -> _Closing:
    """Have ``idle`` called before each fork, as long as what is returned is kept."""
    made = _Closing(idle)
    with _gate.changed:
        _gate.databases.add(made)
    return made


@contextmanager
def in_use() -> Iterator[None]:
    """Use a connection to a SQLite ledger: forks by other threads wait until the block ends.

    Raises
    ------
    LedgerError
        In a process that was forked inside such a block, or by a program that does not tell Python.
    """
    forked_unseen = os.getpid() != _gate.process and _gate.databases
    if _gate.unsafe or forked_unseen:
        raise LedgerError(
            "The ledger cannot be used: this process was forked while a ledger was open, and "
            "SQLite's locks do not survive that. Nothing was granted. Fork before a ledger is "
            "opened, or start processes with multiprocessing's 'spawn'."
        )
    own = threading.get_ident()
    with _gate.changed:
        _gate.active[own] += 1
    try:
        yield
    finally:
        with _gate.changed:
            _gate.active[own] -= 1
            if _gate.active[own] <= 0:
                del _gate.active[own]
            _gate.changed.notify_all()
