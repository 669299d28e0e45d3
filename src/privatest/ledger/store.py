"""The ledger: budgets of data sets and analysts, and a record of every request."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TextIO

from privatest.accounting import Event
from privatest.core.errors import LedgerError, ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import integer_at_least, number, reject
from privatest.ledger import history, transactions, verification
from privatest.ledger.accounts import Composition, Head, Totals, read_settings
from privatest.ledger.chain import canonical, digest, parsed
from privatest.ledger.database import Database, backup, log_is_needed, new_file
from privatest.ledger.history import Answered, Entry, Reservation
from privatest.ledger.tables import is_newest, migrate
from privatest.ledger.transactions import (
    LONGEST_NAME,
    charged,
    is_budget,
    name_of,
    settings_of,
    words,
)

__all__ = ["Ledger", "request_digest"]


def request_digest(request: Mapping[str, Any]) -> str:
    """Return the digest by which an identical request is recognised.

    The request must contain everything that the answer depends on: the version of the data set,
    the test, its parameters, the budget.
    """
    return digest("privatest request", canonical(dict(request)))


class Ledger:
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

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

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

    def create_dataset(
        self,
        name: str,
        budget: Budget,
        *,
        composition: Composition = "basic",
        each: Event | None = None,
        partition: Iterable[str] = (),
        schema_digest: str = "",
        exist_ok: bool = False,
    ) -> None:
        """Add a data set with its total budget.

        Parameters
        ----------
        name : str
            Its name.
        budget : Budget
            What all releases together may cost.
        composition : {"basic", "tight", "equal"}
            What decides a grant: sums of epsilon and delta; zCDP, which allows more small
            requests and needs delta; or the number of requests, which all cost ``each``.
        each : Event, optional
            What every request costs, for "equal".
        partition : iterable of str
            Names of disjoint parts of the data, if it is public who is in which part.
        schema_digest : str
            Digest of the public schema; it never changes for a data set.
        exist_ok : bool
            Accept an existing data set with the same settings and budget.
        """
        settings = settings_of(composition, each, partition, schema_digest)
        name_of("dataset", name)
        is_budget(budget)
        if exist_ok and name in self.datasets():
            self._must_agree(name, budget, settings)
            return
        with self._database.writing() as connection:
            transactions.create_dataset(connection, name, budget, settings)

    def set_budget(self, dataset: str, budget: Budget, *, below_spent: bool = True) -> None:
        """Change the total budget of a data set; history keeps the old one.

        A budget below what is spent grants nothing more and refunds nothing; without
        ``below_spent`` it is refused.
        """
        is_budget(budget)
        with self._database.writing() as connection:
            transactions.set_budget(connection, dataset, budget, below_spent)

    def set_analyst(self, dataset: str, analyst: str, budget: Budget) -> None:
        """Give an analyst a budget of their own within a data set, or change it."""
        name_of("analyst", analyst)
        is_budget(budget)
        with self._database.writing() as connection:
            transactions.set_analyst(connection, dataset, analyst, budget)

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
        """Copy the whole ledger to a new file, and verify the copy; return its heads.

        For SQLite only, even while others write. Copying the file by other means omits what is
        still in the log beside it. PostgreSQL has its own tools.
        """
        if self._database.kind != "sqlite":
            raise LedgerError(
                "A ledger in PostgreSQL is backed up with the server's own tools: "
                "pg_dump DATABASE > ledger.sql"
            )
        with new_file(file, "backup") as path:
            with self._database.reading() as connection:
                backup(connection, path)
            with type(self).open(path) as copy:
                return copy.verify()

    def _must_agree(self, name: str, budget: Budget, settings: Mapping[str, Any]) -> None:
        with self._database.reading() as connection:
            row = history.dataset_row(connection, name)
        before = parsed(read_settings, row.settings)
        if before["schema"] != settings["schema"]:
            raise ParameterError(
                f"The schema of data set {name!r} differs from the one its history was made "
                "with. Undo the change, or add the data under a new name with a new budget."
            )
        if before != settings:
            raise ParameterError(f"The composition or partition of {name!r} cannot be changed.")
        if Budget(row.epsilon, row.delta) != budget:
            raise ParameterError(
                f"The budget of {name!r} is {Budget(row.epsilon, row.delta)}. Change it with "
                "Ledger.set_budget or `privatest ledger set`."
            )


def _id(reservation: Reservation | str) -> str:
    return reservation.id if isinstance(reservation, Reservation) else str(reservation)
