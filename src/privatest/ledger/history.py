"""What a ledger holds: entries, requests with their answers, and totals. Read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from privatest.accounting import event_from_dict
from privatest.core.errors import LedgerError, ParameterError
from privatest.core.privacy import Budget
from privatest.ledger.accounts import (
    Account,
    Head,
    Limits,
    Sums,
    Totals,
    read_settings,
)
from privatest.ledger.chain import DAMAGED, parsed, read_body
from privatest.ledger.tables import sound, tables

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

__all__ = [
    "Answered",
    "Entry",
    "Reservation",
    "answer",
    "dataset_names",
    "dataset_row",
    "entries",
    "holds",
    "recall",
    "totals",
    "unfinished",
]

_SHORTEST_ID = 4


@dataclass(frozen=True, slots=True)
class Reservation:
    """Budget that is spent, whatever happens to the request.

    Attributes
    ----------
    id : str
        The argument of commit and fail.
    dataset, analyst : str
        Whose budgets were charged; no analyst means the custodian.
    sequence : int
        Index in the data set's chain.
    """

    id: str
    dataset: str
    analyst: str | None
    sequence: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a data set's chain.

    Attributes
    ----------
    dataset, sequence, kind : str, int, str
        Kinds: created, budget, analyst, reserved, committed, failed.
    time : str
        When, in UTC; never earlier than the previous entry, even if the clock was set back.
    body : mapping
        Everything that was recorded, as hashed.
    hash : str
        Digest of this entry and all before it.
    """

    dataset: str
    sequence: int
    kind: str
    time: str
    body: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that was charged, and how it ended.

    Attributes
    ----------
    id, dataset, analyst : str
        Its id, and whose budgets were charged; no analyst means the custodian.
    sequence, time : int, str
        Index in the chain and time of the reservation.
    state : {"committed", "failed", "open"}
        Whether it was answered, failed, or is still running (or was lost in a crash).
    epsilon, delta : str
        What it cost under plain addition, as exact decimals.
    asked : mapping or None
        The public description of the request; None if it was not recorded.
    released : object
        What was released, as recorded; None if nothing was.
    reason : str
        Why it failed, if that was recorded.
    """

    id: str
    dataset: str
    analyst: str | None
    sequence: int
    time: str
    state: Literal["committed", "failed", "open"]
    epsilon: str
    delta: str
    asked: Mapping[str, Any] | None
    released: Any
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Write as plain values, decimals as strings."""
        return {name: getattr(self, name) for name in self.__slots__}


def dataset_names(connection: Connection) -> list[str]:
    """Return the names of all data sets, in order of their creation."""
    from sqlalchemy import select  # noqa: PLC0415

    datasets = tables().datasets
    rows = connection.execute(select(datasets.c.name).order_by(datasets.c.id))
    return [sound(row).name for row in rows]


def dataset_row(connection: Connection, name: str) -> Row[Any]:
    """Read a data set without locking it."""
    from sqlalchemy import select  # noqa: PLC0415

    datasets = tables().datasets
    found = connection.execute(select(datasets).where(datasets.c.name == name)).one_or_none()
    if found is None:
        raise ParameterError(f"dataset must be one that the ledger holds; got {name!r}.")
    return sound(found)


def totals(connection: Connection, name: str) -> Totals:
    """Read budgets and sums, in constant time whatever the length of the history."""
    from sqlalchemy import select  # noqa: PLC0415

    analysts = tables().analysts
    dataset = dataset_row(connection, name)
    own = connection.execute(
        select(analysts).where(analysts.c.dataset == dataset.id).order_by(analysts.c.name)
    )
    settings = parsed(read_settings, dataset.settings)
    return Totals(
        dataset=name,
        composition=settings["composition"],
        account=_account(dataset),
        analysts={row.name: _account(row) for row in map(sound, own)},
        each=event_from_dict(settings["each"]) if "each" in settings else None,
        partition=tuple(settings.get("partition", ())),
        schema_digest=settings["schema"],
        head=Head(dataset.sequence, dataset.hash),
        time=dataset.time,
    )


def entries(
    connection: Connection, dataset: Row[Any], *, last: int | None = None, before: int | None = None
) -> Iterator[Entry]:
    """Read a chain from its start, or its ``last`` entries, newest first."""
    from sqlalchemy import select  # noqa: PLC0415

    table = tables().entries
    query = select(table).where(table.c.dataset == dataset.id)
    if before is not None:
        query = query.where(table.c.sequence < before)
    if last is None:
        query = query.order_by(table.c.sequence)
    else:
        query = query.order_by(table.c.sequence.desc()).limit(last)
    rows = connection.execution_options(yield_per=1000).execute(query)
    return (_entry(dataset.name, row) for row in rows)


def unfinished(connection: Connection, dataset: Row[Any]) -> list[Entry]:
    """Return reservations that were neither committed nor failed: running, or lost in a crash."""
    from sqlalchemy import select  # noqa: PLC0415

    table = tables().entries
    closing = table.alias()
    query = (
        select(table)
        .outerjoin(closing, closing.c.closes == table.c.opens)
        .where(
            table.c.dataset == dataset.id, table.c.opens.is_not(None), closing.c.closes.is_(None)
        )
        .order_by(table.c.sequence)
    )
    return [_entry(dataset.name, row) for row in connection.execute(query)]


def holds(connection: Connection, number: str) -> bool:
    """Return whether a reservation has this id."""
    from sqlalchemy import select  # noqa: PLC0415

    table = tables().entries
    found = connection.execute(select(table.c.sequence).where(table.c.opens == number))
    return found.one_or_none() is not None


def recall(connection: Connection, name: str, request: str) -> Any:
    """Return what was released for an identical request; None if nothing was recorded."""
    from sqlalchemy import select  # noqa: PLC0415

    table, dataset = tables().entries, dataset_row(connection, name)
    rows = connection.execute(
        select(table.c.body)
        .where(
            table.c.dataset == dataset.id,
            table.c.request == request,
            table.c.kind == "committed",
        )
        .order_by(table.c.sequence)
    )
    # always the first answer: later ones would be further releases
    bodies = (read_body(sound(row).body) for row in rows)
    return next((body["released"] for body in bodies if "released" in body), None)


def answer(connection: Connection, number: str) -> Answered:
    """Find a request by its id, or the first digits of it, and how it ended."""
    from sqlalchemy import select  # noqa: PLC0415

    if len(number) < _SHORTEST_ID:
        raise ParameterError(f"id must have at least {_SHORTEST_ID} digits.")
    table, datasets = tables().entries, tables().datasets
    query = (
        select(table.c.opens, table.c.body, datasets.c.name)
        .join(datasets, datasets.c.id == table.c.dataset)
        .where(table.c.opens.startswith(number, autoescape=True))
    )
    found = [sound(row) for row in connection.execute(query.limit(2))]
    if len(found) != 1:
        how = "no" if not found else "more than one"
        raise ParameterError(f"The ledger has {how} request whose id begins with {number!r}.")
    (row,) = found
    ended = select(table.c.kind, table.c.body).where(table.c.closes == row.opens)
    end = sound(connection.execute(ended).one_or_none())
    body, last = read_body(row.body), {} if end is None else read_body(end.body)
    return Answered(
        id=row.opens,
        dataset=row.name,
        analyst=body.get("analyst"),
        sequence=body.get("sequence", 0),
        time=str(body.get("time", "")),
        state="open" if end is None else end.kind,
        epsilon=str(body.get("epsilon", "")),
        delta=str(body.get("delta", "")),
        asked=body.get("asked"),
        released=last.get("released"),
        reason=str(last.get("reason", "")),
    )


def _entry(dataset: str, row: Row[Any]) -> Entry:
    body = read_body(sound(row).body)
    return Entry(dataset, row.sequence, row.kind, str(body.get("time", "")), body, row.hash)


def _account(row: Row[Any]) -> Account:
    try:
        budget = Budget(row.epsilon, row.delta)
    except ParameterError:
        raise LedgerError(DAMAGED.format(what="a budget")) from None
    return Account(budget, parsed(Limits.from_dict, row.limits), parsed(Sums.from_dict, row.sums))
