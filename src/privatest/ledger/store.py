"""The ledger: budgets of data sets and analysts, and a record of every request.

Every change is one transaction that locks the data set's row, applies an entry to its state
(state.py) and stores both.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from privatest.accounting import Event, Gaussian, event_to_dict, price
from privatest.core.errors import LedgerError, ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import integer_at_least, number, one_of, reject
from privatest.ledger import verify
from privatest.ledger.database import Database, copy_to_file, log_is_needed, new_file
from privatest.ledger.state import (
    CLOSED,
    COMPOSITIONS,
    Account,
    Answered,
    Composition,
    Entry,
    Head,
    Reservation,
    Spent,
    State,
    canonical,
    digest,
    limits_for,
    read_body,
)
from privatest.ledger.tables import (
    LARGEST,
    is_newest,
    migrate,
    query,
    query_one,
    run,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

_LONGEST_NAME = 200
_SHORTEST_ID = 4
_REQUESTS = ("reserved", "committed", "failed")  # what a serving role may append


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

    # --- what a request does ----------------------------------------------------------------------

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
        id_ = uuid.uuid4().hex if number is None else _name("number", number, 32)
        cost = _price(event, budget)
        fields = {
            "event": event_to_dict(event),
            "epsilon": f"{cost.epsilon:f}",
            "delta": f"{cost.delta:f}",
            "opens": id_,
        }
        if analyst is not None:
            fields["analyst"] = analyst
        if request is not None:
            fields["request"] = _name("request", request, 64)
        if asked is not None:
            if not isinstance(asked, Mapping):
                reject("asked", "a mapping of names to values", asked)
            canonical(dict(asked), "asked")
            fields["asked"] = dict(asked)
        with self._database.writing() as connection:
            state = locked(connection, dataset, () if analyst is None else (analyst,))
            if analyst is not None and analyst not in state.analysts:
                raise _unknown_analyst(dataset)
            append(connection, state, "reserved", fields)
            return Reservation(id_, dataset, analyst, state.head.sequence)

    def affords(
        self,
        dataset: str,
        event: Event,
        *,
        analyst: str | None = None,
        budget: Budget | None = None,
    ) -> bool:
        """Return whether ``reserve`` would grant this now; nothing is spent."""
        cost = _price(event, budget)
        with self._database.reading() as connection:
            state = read_state(connection, dataset)
        spent, accounts = state.cost(event, cost), [state.account]
        if analyst is not None:
            if analyst not in state.analysts:
                raise _unknown_analyst(dataset)
            accounts.append(state.analysts[analyst])
        return all(account.affords(event.part, spent) for account in accounts)

    def commit(self, reservation: Reservation | str, *, released: Any = None) -> None:
        """Record that a release is about to be published; ``released`` (JSON) is kept for recall.

        Publish only after this has returned. A power cut may lose this record but never the
        reservation: what was spent stays spent, and only the answer for recall is lost.
        """
        self._close(reservation, "committed", {} if released is None else {"released": released})

    def fail(self, reservation: Reservation | str, *, reason: str = "") -> None:
        """Record that nothing was released; the budget stays spent.

        ``reason`` is for the custodian and must not hold values of data.
        """
        if len(reason) > _LONGEST_NAME:
            reject("reason", f"a string of at most {_LONGEST_NAME} characters", reason)
        self._close(reservation, "failed", {"reason": reason})

    def _close(self, reservation: Reservation | str, kind: str, fields: Mapping[str, Any]) -> None:
        """Record, once, how a reservation ended."""
        from sqlalchemy.exc import IntegrityError  # noqa: PLC0415

        id_ = _id(reservation)
        with self._database.writing(flush=False) as connection:
            row = query_one(connection, "lock_open", reservation=id_)
            if row is None:
                raise LedgerError("The ledger holds no such reservation; nothing may be released.")
            state = State.from_rows(row, {})
            state.open.add(id_)
            request = {} if row.request is None else {"request": row.request}
            try:
                append(connection, state, kind, {"closes": id_, **request, **fields})
            except IntegrityError:  # the column is unique
                raise LedgerError(
                    "The reservation is already closed; nothing more may be released."
                ) from None

    # --- what the custodian decides ---------------------------------------------------------------

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
        settings = _settings(composition, each, partition, schema_digest)
        _name("dataset", name)
        _require_budget(budget)
        if exist_ok:
            with self._database.reading() as connection:
                if query_one(connection, "dataset", name=name) is not None:
                    _require_same(read_state(connection, name), budget, settings)
                    return
        with self._database.writing() as connection:
            create(connection, name, budget, settings)

    def set_budget(
        self, dataset: str, budget: Budget, *, below_spent: bool = True, reason: str = ""
    ) -> None:
        """Change the total budget of a data set; history keeps the old one, and the reason.

        A budget below what is spent grants nothing more and refunds nothing; without
        ``below_spent`` it is refused.
        """
        _require_budget(budget)
        words = reason_fields(reason)
        with self._database.writing() as connection:
            state = _locked_open(connection, dataset)
            account = Account(budget, limits_for(budget, state.settings))
            if not below_spent:
                state.account.require_spent_within(account.limits, f"data set {dataset!r}")
            append(connection, state, "budget", account.fields() | words)

    def set_analyst(
        self,
        dataset: str,
        analyst: str,
        budget: Budget,
        *,
        below_spent: bool = True,
        reason: str = "",
    ) -> None:
        """Give an analyst a budget of their own within a data set, or change it.

        An analyst who was revoked may ask again.
        """
        _name("analyst", analyst)
        _require_budget(budget)
        words = reason_fields(reason)
        with self._database.writing() as connection:
            state = locked(connection, dataset, (analyst,))
            account = Account(budget, limits_for(budget, state.settings))
            if not below_spent and analyst in state.analysts:
                owner = f"analyst {analyst!r} on data set {dataset!r}"
                state.analysts[analyst].require_spent_within(account.limits, owner)
            append(connection, state, "analyst", {"analyst": analyst, **account.fields(), **words})

    def revoke(self, dataset: str, analyst: str, *, reason: str = "") -> bool:
        """Grant an analyst nothing more; what was spent stays. False if that was so already."""
        words = reason_fields(reason)
        with self._database.writing() as connection:
            state = locked(connection, dataset, (analyst,))
            if analyst not in state.analysts:
                raise _unknown_analyst(dataset)
            if state.analysts[analyst].closed:
                return False
            close_analyst(connection, state, analyst, words)
            return True

    def renew(self, dataset: str, since: str, *, reason: str = "") -> bool:
        """Begin a new period with the whole budget; the chain keeps what was spent before.

        Parameters
        ----------
        dataset : str
            The data set.
        since : str
            The day on which the period begins, as in "2026-01-31"; it must not be in the future.
        reason : str
            The rule that declares periods, for the history.

        Returns
        -------
        bool
            False if the data set was entered, renewed or restored on that day or later: there is
            one budget for each period.

        Notes
        -----
        **Privacy**: the guarantee then holds for each period. After k periods it is that of k
        budgets: k times epsilon and delta.
        """
        _require_past_day(since)
        words = reason_fields(reason)
        with self._database.writing() as connection:
            state = _locked_open(connection, dataset, None)
            begun = query_one(connection, "period_start", dataset=state.row)
            state.period = "" if begun is None else str(read_body(begun.body).get("time", ""))[:10]
            if since <= state.period:
                return False
            ended = {"since": since, "ended": state.account.sums.to_dict()}
            append(connection, state, "renewed", ended | words)
            return True

    def link(self, old: str, new: str) -> None:
        """Close a data set, and count what was spent there for the one that continues it."""
        if old == new:
            raise ParameterError("a data set cannot continue itself.")
        with self._database.writing() as connection:
            # in one order, so that there is no deadlock
            states = {name: _locked_open(connection, name, None) for name in sorted((old, new))}
            before, after = states[old], states[new]
            same = after.settings.get("each") == before.settings.get("each")
            if (
                after.settings["composition"] == "equal"
                and not same
                and before.account.spent.events
            ):
                raise ParameterError(
                    f"data set {new!r} counts equal requests, and those of {old!r} cost something "
                    "else: give it the same each_epsilon and each_delta, or another composition."
                )
            fields = {"of": old, "head": before.head.to_dict()}
            analysts = {name: (own, own.spent) for name, own in before.analysts.items()}
            carry(connection, after, "linked", fields, before.account.spent, analysts)
            close_dataset(connection, before, {"to": new})

    # --- what the ledger holds --------------------------------------------------------------------

    def holds(self, reservation: Reservation | str) -> bool:
        """Return whether there is such a reservation, open or closed."""
        with self._database.reading() as connection:
            return query_one(connection, "reservation", reservation=_id(reservation)) is not None

    def recall(self, dataset: str, request: str) -> Any:
        """Return what was released for an identical request, at no cost; None if nothing was."""
        with self._database.reading() as connection:
            id_ = _dataset_row(connection, dataset).id
            # always the first answer: later ones would be further releases
            rows = query(connection, "recorded", dataset=id_, request=request)
            bodies = (read_body(row.body) for row in rows)
            return next((body["released"] for body in bodies if "released" in body), None)

    def datasets(self) -> list[str]:
        """Return the names of all data sets."""
        with self._database.reading() as connection:
            return [row.name for row in query(connection, "names")]

    def totals(self, dataset: str) -> State:
        """Return budgets and what was spent; the time does not depend on the history."""
        with self._database.reading() as connection:
            return read_state(connection, dataset)

    def history(self, dataset: str, *, last: int = 50, before: int | None = None) -> list[Entry]:
        """Return entries, newest first; ``before`` is a sequence number, for paging."""
        integer_at_least("last", last, 1)
        end = LARGEST if before is None else before
        with self._database.reading() as connection:
            id_ = _dataset_row(connection, dataset).id
            rows = query(connection, "last_entries", dataset=id_, last=last, before=end)
            return [_entry(dataset, row) for row in rows]

    def unfinished(self, dataset: str) -> list[Entry]:
        """Return reservations that were neither committed nor failed: running, or crashed."""
        with self._database.reading() as connection:
            id_ = _dataset_row(connection, dataset).id
            return [_entry(dataset, row) for row in query(connection, "unfinished", dataset=id_)]

    def answer(self, reservation: Reservation | str) -> Answered:
        """Return a request and its answer, at no cost; the first digits of the id suffice."""
        digits = _id(reservation)
        if len(digits) < _SHORTEST_ID:
            raise ParameterError(f"id must have at least {_SHORTEST_ID} digits.")
        with self._database.reading() as connection:
            rows = list(query(connection, "reservations", digits=digits, length=len(digits)))
            if len(rows) != 1:
                count = "more than one" if rows else "no"
                raise ParameterError(
                    f"The ledger has {count} request whose id begins with {digits!r}."
                )
            end = query_one(connection, "end", reservation=rows[0].opens)
        body = read_body(rows[0].body)
        closing = {} if end is None else read_body(end.body)
        return Answered(
            id=rows[0].opens,
            dataset=rows[0].name,
            analyst=body.get("analyst"),
            sequence=body.get("sequence", 0),
            time=str(body.get("time", "")),
            state="open" if end is None else end.kind,
            epsilon=str(body.get("epsilon", "")),
            delta=str(body.get("delta", "")),
            asked=body.get("asked"),
            released=closing.get("released"),
            reason=str(closing.get("reason", "")),
        )

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
        known = verify.checked_heads(heads)
        with self._database.reading() as connection:
            return verify.verify_all(connection, known)

    # --- copies -----------------------------------------------------------------------------------

    def unfolded_log(self) -> bool:
        """Return whether there are entries in the log beside the file, which a copy would lack."""
        return self._database.kind == "sqlite" and log_is_needed(self._database.file)

    def export(self, file: str | os.PathLike[str] | TextIO) -> int:
        """Write all entries of all chains as lines of JSON; return their count.

        A named file must be new, and is readable by its owner only: it holds answers.
        """
        if isinstance(file, (str, os.PathLike)):
            with new_file(file, "export") as path, path.open("w", encoding="utf-8") as stream:
                return self.export(stream)
        with self._database.reading() as connection:
            return verify.export(connection, file)

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


# --- reading and writing states -------------------------------------------------------------------


def _dataset_row(connection: Connection, name: str, statement: str = "dataset") -> Row[Any]:
    row = query_one(connection, statement, name=name)
    if row is None:
        raise ParameterError(f"dataset must be one that the ledger holds; got {name!r}.")
    return row


def read_state(connection: Connection, name: str) -> State:
    """Read a data set without locking it."""
    row = _dataset_row(connection, name)
    return State.from_rows(row, _analyst_rows(connection, row.id))


def read_states(connection: Connection) -> dict[str, State]:
    """Read all data sets, in the order of their creation."""
    rows = list(query(connection, "datasets"))
    return {row.name: State.from_rows(row, _analyst_rows(connection, row.id)) for row in rows}


def _analyst_rows(connection: Connection, dataset: int) -> dict[str, Row[Any]]:
    return {row.name: row for row in query(connection, "analysts", dataset=dataset)}


def locked(connection: Connection, name: str, analysts: Collection[str] | None = ()) -> State:
    """Lock a data set and read it, with some of its analysts; None reads all of them."""
    row = _dataset_row(connection, name, "lock")
    if analysts is None:
        return State.from_rows(row, _analyst_rows(connection, row.id))
    own = {who: query_one(connection, "analyst", dataset=row.id, name=who) for who in analysts}
    return State.from_rows(row, {who: each for who, each in own.items() if each is not None})


def _locked_open(connection: Connection, name: str, analysts: Collection[str] | None = ()) -> State:
    """Lock a data set that is not closed."""
    state = locked(connection, name, analysts)
    if state.account.closed:
        raise ParameterError(f"data set {name!r} is closed; its history says why.")
    return state


def append(connection: Connection, state: State, kind: str, fields: Mapping[str, Any]) -> None:
    """Apply an entry and store it with the new state, in the caller's transaction."""
    before, clock = dict(state.analysts), now()
    time = max(clock, state.time)  # a clock that was set back must not reorder the chain
    body = {
        "dataset": state.dataset,
        "sequence": state.head.sequence + 1,
        "kind": kind,
        "time": time,
        **({} if clock == time else {"clock": clock}),
        **fields,
    }
    text = canonical(body)
    state.advance(body, text)
    entry = {name: fields.get(name) for name in ("opens", "closes", "request")}
    entry |= {"dataset": state.row, "kind": kind, "body": text, **state.head.to_dict()}
    values = entry | state.head_columns() | state.account.columns()
    changed = {who: own for who, own in state.analysts.items() if own is not before.get(who)}
    if connection.dialect.name == "postgresql" and kind in _REQUESTS:
        analyst = next(iter(changed), None)
        own = None if analyst is None else changed[analyst].columns()["sums"]
        run(connection, "serve", **values, analyst=analyst, own=own)
        return
    run(connection, "add_entries", **values)
    run(connection, "set_dataset", **values)
    for who, account in changed.items():
        statement = "set_analyst" if who in before else "add_analysts"
        run(connection, statement, dataset=state.row, name=who, **account.columns())


def create(connection: Connection, name: str, budget: Budget, settings: Mapping[str, Any]) -> State:
    """Enter a data set; its settings never change."""
    from sqlalchemy import text  # noqa: PLC0415

    if connection.dialect.name == "postgresql":  # SQLite has only one writer anyway
        connection.execute(text("LOCK TABLE privatest_datasets IN SHARE ROW EXCLUSIVE MODE"))
    if query_one(connection, "dataset", name=name) is not None:
        raise ParameterError(f"dataset must be a new name; {name!r} is in the ledger already.")
    account = Account(budget, limits_for(budget, settings))
    id_ = (run(connection, "largest_id").scalar() or 0) + 1
    state = State(name, settings, account, row=id_)
    columns = state.head_columns() | account.columns()
    run(connection, "add_datasets", id=id_, name=name, **columns)
    append(connection, state, "created", {"settings": settings, **account.fields()})
    return state


def close_analyst(
    connection: Connection, state: State, analyst: str, words: Mapping[str, Any]
) -> None:
    """Revoke an analyst."""
    closed = Account(state.analysts[analyst].budget, CLOSED).fields()
    append(connection, state, "analyst", {"analyst": analyst, **closed, "revoked": True, **words})


def close_dataset(connection: Connection, state: State, fields: Mapping[str, Any]) -> None:
    """Grant nothing more of a data set."""
    closed = Account(state.account.budget, CLOSED).fields()
    append(connection, state, "closed", {**closed, **fields})


def carry(
    connection: Connection,
    state: State,
    kind: str,
    fields: Mapping[str, Any],
    whole: Spent,
    analysts: Mapping[str, tuple[Account, Spent]],
) -> None:
    """Add spending that no request of this chain made: to the whole, and to analysts.

    Of each analyst an account, and what to add. An account that is not there is made with the
    same budget; a closed one stays closed.
    """
    carried = {}
    for name, (own, spent) in sorted(analysts.items()):
        limits = CLOSED
        if not own.closed:
            with suppress(ParameterError):  # there is no such budget for these settings
                limits = limits_for(own.budget, state.settings)
        carried[name] = Account(own.budget, limits).fields() | {"carried": spent.to_dict()}
    append(connection, state, kind, {"carried": whole.to_dict(), "analysts": carried, **fields})


def _entry(dataset: str, row: Row[Any]) -> Entry:
    body = read_body(row.body)
    return Entry(dataset, row.sequence, row.kind, str(body.get("time", "")), body, row.hash)


def _id(reservation: Reservation | str) -> str:
    return reservation.id if isinstance(reservation, Reservation) else str(reservation)


# --- checks of arguments --------------------------------------------------------------------------


def now() -> str:
    """Return the time in UTC, in a form that sorts."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _settings(
    composition: str, each: Event | None, partition: Iterable[str], schema_digest: str
) -> dict[str, Any]:
    """Return the settings of a data set, which never change."""
    one_of("composition", composition, COMPOSITIONS)
    if (composition == "equal") != (each is not None):
        raise ParameterError("each must be given for the composition 'equal', and only for it.")
    if each is not None and each.part is not None:
        raise ParameterError("each must not name a part.")
    if isinstance(partition, str):
        reject("partition", "a list of names", partition)
    parts = [_name("partition", part) for part in partition]
    if len(set(parts)) != len(parts) or len(parts) == 1:
        raise ParameterError("partition must name at least two different parts, or none.")
    settings: dict[str, Any] = {"composition": composition, "schema": schema_digest}
    settings |= {} if each is None else {"each": event_to_dict(each)}
    return settings | ({"partition": sorted(parts)} if parts else {})


def _require_same(state: State, budget: Budget, settings: Mapping[str, Any]) -> None:
    """Refuse to enter a data set again with other settings or another budget."""
    name = state.dataset
    if state.settings["schema"] != settings["schema"]:
        raise ParameterError(
            f"The schema of data set {name!r} differs from the one its history was made "
            "with. Undo the change, or add the data under a new name with a new budget."
        )
    if state.settings != settings:
        raise ParameterError(f"The composition or partition of {name!r} cannot be changed.")
    if state.account.budget != budget:
        raise ParameterError(
            f"The budget of {name!r} is {state.account.budget}. Change it with "
            "Ledger.set_budget or `privatest ledger set`."
        )


def _price(event: Event, budget: Budget | None) -> Budget:
    """Return the price of an event under plain addition."""
    if not isinstance(event, Event):
        reject("event", "a Pure, Approximate, Gaussian or Laplace event", event)
    if budget is not None:
        return _require_budget(budget)
    if isinstance(event, Gaussian):
        raise ParameterError("budget must be given for Gaussian noise: its price at some delta.")
    return price(event)


def _require_budget(budget: object) -> Budget:
    if not isinstance(budget, Budget):
        reject("budget", "a Budget", budget)
    return budget


def _require_past_day(value: object) -> None:
    """Refuse what is no day, or a day in the future."""
    try:
        day = date.fromisoformat(str(value)).isoformat()
    except ValueError:
        day = ""
    if day != value or day > now()[:10]:
        reject("since", "a day up to today, as in 2026-01-31", value)


def _name(parameter: str, value: object, longest: int = _LONGEST_NAME) -> str:
    """Check that a name can be stored and printed."""
    if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
        reject(parameter, f"a printable name of at most {longest} characters", value)
    return value


def reason_fields(reason: str, by: str = "") -> dict[str, str]:
    """Check why the custodian changes something, and who does: public words, for the history."""
    words = {"reason": reason, "by": by}
    return {name: _name(name, text) for name, text in words.items() if text}


def _unknown_analyst(dataset: str) -> ParameterError:
    return ParameterError(f"analyst must be one that data set {dataset!r} has; add it first.")
