"""The ledger: budgets of data sets and analysts, and a record of every request."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TextIO

from privatest.accounting import Event
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import integer_at_least, number, reject
from privatest.ledger import history, transactions, verification
from privatest.ledger.accounts import Head, Totals, read_settings
from privatest.ledger.chain import canonical, digest, parsed
from privatest.ledger.checks import LONGEST_NAME, charged, name_of, words
from privatest.ledger.copies import copy_to_file
from privatest.ledger.custody import Custody
from privatest.ledger.database import Database, log_is_needed, new_file
from privatest.ledger.history import Answered, Entry, Reservation
from privatest.ledger.tables import is_newest, migrate

__all__ = ["Ledger", "request_digest"]


def request_digest(request: Mapping[str, Any]) -> str:
    """Return the digest by which an identical request is recognised.

    The request must contain everything that the answer depends on: the version of the data set,
    the test, its parameters, the budget.
    """
    return digest("privatest request", canonical(dict(request)))


class Ledger(Custody):
    """A durable record of budgets, on SQLite or PostgreSQL.

    Use ``Ledger.open``. Budget is reserved before data is read; from then on it is spent,
    whether the request is committed, fails, or is lost in a crash. There are no refunds.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from privatest.accounting import Pure
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger.open(pathlib.Path(folder.name) / "ledger.db", create=True) as ledger:
    ...     ledger.create_dataset("visits", Budget(3))
    ...     reservation = ledger.reserve("visits", Pure("0.1"))
    ...     ledger.commit(reservation, released={"reject": True})
    ...     print(ledger.totals("visits").account.spent.epsilon)
    0.1
    >>> folder.cleanup()
    """

    __slots__ = ()

    @classmethod
    def open(
        cls, location: str | os.PathLike[str], *, create: bool = False, timeout: float = 30.0
    ) -> Self:
        """Open a ledger and migrate its tables to the newest version.

        Parameters
        ----------
        location : str or path
            A file, or ``postgresql://user@host/database``.
        create : bool
            Create a ledger if there is none.
        timeout : float
            Seconds to wait for others before giving up.
        """
        number("timeout", timeout, above=0)
        database = Database(location, create=create, timeout=timeout)
        try:
            with database.reading() as connection:
                newest = is_newest(connection)
            if not newest:  # only then: readers must not wait for writers
                with database.writing() as connection:
                    migrate(connection, create=create)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        """Use the ledger for a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it at the end of the block."""
        self.close()

    def reserve(
        self,
        dataset: str,
        event: Event,
        *,
        analyst: str | None = None,
        request: str | None = None,
        budget: Budget | None = None,
        asked: Mapping[str, Any] | None = None,
        number: str | None = None,
    ) -> Reservation:
        """Spend budget on a release, before its data is read.

        Parameters
        ----------
        dataset : str
            The data set.
        event : Event
            What will happen.
        analyst : str, optional
            Whose budget is charged too; None means the custodian.
        request : str, optional
            Digest of the request (``request_digest``), for recall.
        budget : Budget, optional
            Price of the event under plain addition, if not its own; required for Gaussian noise.
        asked : mapping, optional
            A public description of the request (JSON), for the history.
        number : str, optional
            The id, 32 new hexadecimal digits, for those who must know it even if the process that
            reserves dies; None makes one.

        Raises
        ------
        BudgetError
            If the budget of the data set or of the analyst does not suffice. Nothing is spent;
            ``error.asked`` and ``error.left`` say what it costs and what is left.
        LedgerError
            If the ledger cannot be written. Nothing may be released. The message says so if it
            is not known whether budget was spent.

        Notes
        -----
        **Privacy**: when this returns, the charge is on disk. The decision depends only on public
        sums, never on data.
        """
        if request is not None:
            name_of("request", request, 64)
        number = uuid.uuid4().hex if number is None else name_of("number", number, 32)
        cost, public = charged(event, budget), words(asked)
        with self._database.writing() as connection:
            return transactions.reserve(
                connection, dataset, event, cost, analyst, request, public, number
            )

    def affords(
        self,
        dataset: str,
        event: Event,
        *,
        analyst: str | None = None,
        budget: Budget | None = None,
    ) -> bool:
        """Return whether ``reserve`` would grant this now; nothing is spent."""
        cost = charged(event, budget)
        with self._database.reading() as connection:
            row = history.dataset_row(connection, dataset)
            settings = parsed(read_settings, row.settings)
            spent = transactions.charge(event, cost, settings)
            found = history.totals(connection, dataset)
        if analyst is not None and analyst not in found.analysts:
            raise ParameterError(f"analyst must be one that data set {dataset!r} has.")
        accounts = [found.account] + ([] if analyst is None else [found.analysts[analyst]])
        return all(a.sums.after(event.part, spent).within(a.limits) for a in accounts)

    def commit(self, reservation: Reservation | str, *, released: Any = None) -> None:
        """Record that a release is about to be published; ``released`` (JSON) is kept for recall.

        Publish only after this has returned. A power cut may lose this record but never the
        reservation: what was spent stays spent, and only the answer for recall is lost.
        """
        fields = {} if released is None else {"released": released}
        with self._database.writing(flush=False) as connection:
            transactions.close(connection, _id(reservation), "committed", fields)

    def fail(self, reservation: Reservation | str, *, reason: str = "") -> None:
        """Record that nothing was released; the budget stays spent.

        ``reason`` is for the custodian and must not hold values of data.
        """
        if len(reason) > LONGEST_NAME:
            reject("reason", f"a string of at most {LONGEST_NAME} characters", reason)
        with self._database.writing(flush=False) as connection:
            transactions.close(connection, _id(reservation), "failed", {"reason": reason})

    def holds(self, reservation: Reservation | str) -> bool:
        """Return whether there is such a reservation, open or closed."""
        with self._database.reading() as connection:
            return history.holds(connection, _id(reservation))

    def recall(self, dataset: str, request: str) -> Any:
        """Return what was released for an identical request, at no cost; None if nothing was."""
        with self._database.reading() as connection:
            return history.recall(connection, dataset, request)

    def datasets(self) -> list[str]:
        """Return the names of all data sets."""
        with self._database.reading() as connection:
            return history.dataset_names(connection)

    def totals(self, dataset: str) -> Totals:
        """Return budgets and what was spent; the time does not depend on the history."""
        with self._database.reading() as connection:
            return history.totals(connection, dataset)

    def history(self, dataset: str, *, last: int = 50, before: int | None = None) -> list[Entry]:
        """Return entries, newest first; ``before`` is a sequence number, for paging."""
        integer_at_least("last", last, 1)
        with self._database.reading() as connection:
            row = history.dataset_row(connection, dataset)
            return list(history.entries(connection, row, last=last, before=before))

    def unfinished(self, dataset: str) -> list[Entry]:
        """Return reservations that were neither committed nor failed: running, or crashed."""
        with self._database.reading() as connection:
            return history.unfinished(connection, history.dataset_row(connection, dataset))

    def answer(self, reservation: Reservation | str) -> Answered:
        """Return a request and its answer, at no cost; the first digits of the id suffice."""
        with self._database.reading() as connection:
            return history.answer(connection, _id(reservation))

    def verify(self, heads: Mapping[str, Head | str] | None = None) -> dict[str, Head]:
        """Check every entry, every sum and every limit; return the heads of the chains.

        Parameters
        ----------
        heads : mapping of str to Head or str, optional
            What an earlier verify returned, kept elsewhere, or their hashes. The chains must
            still contain them.

        Raises
        ------
        LedgerError
            At the first difference from what was written.
        """
        with self._database.reading() as connection:
            return verification.verify(connection, verification.checked_heads(heads))

    def unfolded_log(self) -> bool:
        """Return whether there are entries in the log beside the file, which a copy would lack."""
        return self._database.kind == "sqlite" and log_is_needed(self._database.file)

    def export(self, file: str | os.PathLike[str] | TextIO) -> int:
        """Write all entries of all chains as lines of JSON; return their count.

        A named file must be new, and is readable by its owner only: it holds answers.
        """
        if not isinstance(file, (str, os.PathLike)):
            with self._database.reading() as connection:
                return verification.export(connection, file)
        with (
            new_file(file, "export") as path,
            path.open("w", encoding="utf-8") as stream,
            self._database.reading() as connection,
        ):
            return verification.export(connection, stream)

    def backup(self, file: str | os.PathLike[str]) -> dict[str, Head]:
        """Copy the whole ledger to a new SQLite file, and verify the copy; return its heads.

        The copy is the ledger as it was at one moment, even while others write to it. Copying an
        SQLite file by other means omits what is still in the log beside it.
        """
        with new_file(file, "backup") as path:
            with self._database.reading() as connection:
                copy_to_file(connection, path)
            with type(self).open(path) as copy:
                return copy.verify()


def _id(reservation: Reservation | str) -> str:
    return reservation.id if isinstance(reservation, Reservation) else str(reservation)
