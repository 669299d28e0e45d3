"""Reading a ledger again from its first entry: is every digest, sum and limit what it was?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from privatest.accounting import event_from_dict
from privatest.errors import LedgerError, ParameterError
from privatest.ledger import reading
from privatest.ledger.chain import GENESIS, canonical, digest, read_body
from privatest.ledger.records import Head
from privatest.ledger.sums import Limits, Sums
from privatest.ledger.tables import tables
from privatest.ledger.writing import charge
from privatest.privacy import Budget

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

__all__ = ["export", "verify"]


_START = Head(0, GENESIS)


@dataclass(slots=True)
class _Replay:
    """What a data set's rows should hold, after its entries so far."""

    dataset: str
    head: Head = _START
    time: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    budgets: dict[str, tuple[str, str, Limits]] = field(default_factory=dict)  # "" is the data set
    sums: dict[str, Sums] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def wrong(self, what: str) -> NoReturn:
        raise LedgerError(
            f"The ledger was changed or damaged: data set {self.dataset!r}, entry "
            f"{self.head.sequence + 1}: {what}."
        )

    def follow(self, row: Row[Any]) -> None:
        """Take one entry, or say what is wrong with it."""
        body, sequence = read_body(row.body), self.head.sequence + 1
        if row.sequence != sequence or body.get("sequence") != sequence:
            self.wrong("it is missing, or out of order")
        if row.hash != digest(self.head.hash, row.body):
            self.wrong("its digest does not fit")
        columns = {"kind": row.kind, "opens": row.opens, "closes": row.closes}
        columns |= {"request": row.request, "dataset": self.dataset}
        if any(body.get(name) != value for name, value in columns.items()):
            self.wrong("its columns differ from what was hashed")
        if str(body.get("time")) < self.time:
            self.wrong("it is older than the entry before it")
        try:
            self._apply(body)
        except (ArithmeticError, KeyError, ParameterError, TypeError, ValueError):
            self.wrong("it cannot be read")
        self.head, self.time = Head(sequence, row.hash), str(body["time"])

    def _apply(self, body: Mapping[str, Any]) -> None:
        kind = body["kind"]
        if (kind == "created") != (self.head.sequence == 0):
            self.wrong("the data set was not created once, at first")
        if kind in ("created", "budget", "analyst"):
            self.settings = body.get("settings", self.settings)
            whose = body["analyst"] if kind == "analyst" else ""
            limits = Limits.from_dict(body["limits"])
            self.budgets[whose] = (body["epsilon"], body["delta"], limits)
            self.sums.setdefault(whose, Sums())
        elif kind == "reserved":
            self._spend(body)
        elif kind in ("committed", "failed"):
            if body["closes"] not in self.open:
                self.wrong("it closes a reservation that is not open")
            self.open.remove(body["closes"])
        else:
            self.wrong("its kind is not known")

    def _spend(self, body: Mapping[str, Any]) -> None:
        event = event_from_dict(body["event"])
        spent = charge(event, Budget(body["epsilon"], body["delta"]), self.settings)
        for whose in ("", *([body["analyst"]] if "analyst" in body else [])):
            after = self.sums[whose].after(event.part, spent)
            if not after.within(self.budgets[whose][2]):
                self.wrong("it spends more than the budget")
            self.sums[whose] = after
        self.open.add(body["opens"])

    def compare(self, dataset: Row[Any], analysts: Mapping[str, Row[Any]]) -> None:
        """Compare with the rows that grants are decided by."""
        expected: dict[str, Any] = {"settings": canonical(self.settings), "time": self.time}
        expected |= {"sequence": self.head.sequence, "hash": self.head.hash}
        rows = {"": dataset, **analysts}
        same = all(getattr(dataset, name) == value for name, value in expected.items())
        if not same or rows.keys() != self.budgets.keys():
            self.wrong("the data set's row does not end the chain")
        for whose, row in rows.items():
            epsilon, delta, limits = self.budgets[whose]
            stored = (row.epsilon, row.delta, json.loads(row.limits), json.loads(row.sums))
            if stored != (epsilon, delta, limits.to_dict(), self.sums[whose].to_dict()):
                self.wrong(f"the sums of {whose or 'the data set'} are not those of the entries")


def verify(connection: Connection, heads: Mapping[str, Head]) -> dict[str, Head]:
    """Replay every chain; the heads, or LedgerError at the first fault."""
    from sqlalchemy import text  # noqa: PLC0415

    if connection.dialect.name == "sqlite":
        answer = connection.execute(text("PRAGMA quick_check(1)")).scalars().all()
        if answer != ["ok"]:
            raise LedgerError("The ledger file is damaged: restore it from a copy.")
    found = {
        name: _verify(connection, name, heads.get(name))
        for name in reading.dataset_names(connection)
    }
    for name in heads.keys() - found.keys():
        raise LedgerError(f"The ledger was changed: data set {name!r} is gone.")
    return found


def _verify(connection: Connection, name: str, known: Head | None) -> Head:
    from sqlalchemy import select  # noqa: PLC0415

    dataset, replay = reading.dataset_row(connection, name), _Replay(name)
    entries, analysts = tables().entries, tables().analysts
    query = select(entries).where(entries.c.dataset == dataset.id).order_by(entries.c.sequence)
    for row in connection.execution_options(yield_per=1000).execute(query):
        replay.follow(row)
        if known is not None and replay.head.sequence == known.sequence and replay.head != known:
            raise LedgerError(f"The ledger was rewritten: data set {name!r} left the known chain.")
    if known is not None and replay.head.sequence < known.sequence:
        raise LedgerError(f"The ledger was cut: data set {name!r} ends before the known head.")
    own = connection.execute(select(analysts).where(analysts.c.dataset == dataset.id))
    replay.compare(dataset, {row.name: row for row in own})
    return replay.head


def export(connection: Connection, stream: TextIO) -> int:
    """Write every entry as a line: its digest and what was hashed."""
    from sqlalchemy import select  # noqa: PLC0415

    table, count = tables().entries, 0
    query = select(table.c.body, table.c.hash).order_by(table.c.dataset, table.c.sequence)
    for body, hashed in connection.execution_options(yield_per=1000).execute(query):
        stream.write(f'{{"hash":"{hashed}","entry":{body}}}\n')
        count += 1
    return count
