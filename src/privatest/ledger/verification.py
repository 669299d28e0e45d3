"""Verify a ledger by replaying it from its first entry: digests, sums and limits must agree."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from privatest.accounting import event_from_dict
from privatest.core.errors import LedgerError, ParameterError
from privatest.core.privacy import Budget
from privatest.ledger.accounts import Head, Limits, Spent, Sums
from privatest.ledger.chain import DAMAGED, GENESIS, canonical, digest, parsed, read_body
from privatest.ledger.tables import sound, tables
from privatest.ledger.transactions import charge

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

__all__ = ["checked_heads", "export", "verify"]

_HASH = re.compile("[0-9a-f]{16,64}")  # at least as much as was ever printed
_START = Head(0, GENESIS)
# ParameterError is a ValueError
_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(slots=True)
class _Replay:
    """The expected state of a data set after its entries so far."""

    dataset: str
    head: Head = _START
    time: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    budgets: dict[str, tuple[str, str, Limits]] = field(default_factory=dict)  # "" is the data set
    sums: dict[str, Sums] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    began: str = ""  # the day of the period
    closed: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)  # to whom, where
    links: list[tuple[str, Mapping[str, Any], Spent]] = field(default_factory=list)

    def wrong(self, what: str) -> NoReturn:
        raise LedgerError(
            f"The ledger was changed or damaged: data set {self.dataset!r}, entry "
            f"{self.head.sequence + 1}: {what}."
        )

    def follow(self, row: Row[Any]) -> None:
        """Apply one entry, or raise an error that says what is wrong with it."""
        try:
            body, sequence = read_body(sound(row).body), self.head.sequence + 1
        except LedgerError:
            self.wrong("it cannot be read")
        if row.sequence != sequence or body.get("sequence") != sequence:
            self.wrong("it is missing, or out of order")
        if row.hash != digest(self.head.hash, row.body):
            self.wrong("its digest does not fit")
        columns = {"kind": row.kind, "opens": row.opens, "closes": row.closes}
        columns |= {"request": row.request, "dataset": self.dataset}
        if any(body.get(name) != value for name, value in columns.items()):
            self.wrong("its columns differ from what was hashed")
        time = body.get("time")
        if not isinstance(time, str) or time < self.time:
            self.wrong("it is older than the entry before it")
        try:
            self._apply(body)
        except _NONSENSE:
            self.wrong("it cannot be read")
        self.head, self.time = Head(sequence, row.hash), time

    def _apply(self, body: Mapping[str, Any]) -> None:
        kind = body["kind"]
        if (kind == "created") != (self.head.sequence == 0):
            self.wrong("the data set was not created once, at first")
        if kind in ("created", "budget", "analyst", "closed"):
            self.settings = body.get("settings", self.settings)
            whose = body["analyst"] if kind == "analyst" else ""
            limits = Limits.from_dict(body["limits"])
            self.budgets[whose] = (body["epsilon"], body["delta"], limits)
            self.sums.setdefault(whose, Sums())
            if kind == "closed":
                end = {"sequence": self.head.sequence, "hash": self.head.hash}
                self.closed.append((body["to"], end))
        elif kind in ("linked", "restored"):
            self._carry(body)
        elif kind == "renewed":
            self._renew(body)
        elif kind == "reserved":
            self._spend(body)
        elif kind in ("committed", "failed"):
            if body["closes"] not in self.open:
                self.wrong("it closes a reservation that is not open")
            self.open.remove(body["closes"])
        else:
            self.wrong("its kind is not known")
        if kind in ("created", "renewed", "restored"):
            self.began = body["time"][:10]

    def _carry(self, body: Mapping[str, Any]) -> None:
        """Add spending that no request of this chain made."""
        spent = Spent.from_dict(body["carried"])
        self.sums[""] = self.sums[""].after(None, spent)
        if body["kind"] == "linked":
            self.links.append((body["of"], body["head"], spent))
        for whose, own in body["analysts"].items():
            budget = (own["epsilon"], own["delta"], Limits.from_dict(own["limits"]))
            self.budgets.setdefault(whose, budget)
            before = self.sums.setdefault(whose, Sums())
            self.sums[whose] = before.after(None, Spent.from_dict(own["carried"]))

    def _renew(self, body: Mapping[str, Any]) -> None:
        if not self.began < body["since"] <= body["time"][:10]:
            self.wrong("its period began before")
        if body["ended"] != self.sums[""].to_dict():
            self.wrong("the sums of the period that ends are not those of its entries")
        self.sums = dict.fromkeys(self.sums, Sums())

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
            stored = (row.epsilon, row.delta, parsed(dict, row.limits), parsed(dict, row.sums))
            if stored != (epsilon, delta, limits.to_dict(), self.sums[whose].to_dict()):
                self.wrong(f"the sums of {whose or 'the data set'} are not those of the entries")


def checked_heads(heads: Mapping[str, Head | str] | None) -> dict[str, Head | str]:
    """Check known heads of chains, each a Head or the first digits of its hash."""
    found = dict(heads or {})
    for name, head in found.items():
        if not isinstance(head, Head) and not _HASH.fullmatch(head):
            raise ParameterError(
                f"the head of {name!r} must be the last hash that verify printed: at least 16 of "
                "its digits, 0 to 9 and a to f."
            )
    return found


def verify(connection: Connection, heads: Mapping[str, Head | str]) -> dict[str, Head]:
    """Replay every chain and return the heads; LedgerError at the first fault."""
    from sqlalchemy import select, text  # noqa: PLC0415

    if connection.dialect.name == "sqlite":
        # not quick_check: a damaged index would hide an entry from lookups
        answer = connection.execute(text("PRAGMA integrity_check(1)")).scalars().all()
        if answer != ["ok"]:
            raise LedgerError(
                "The ledger was changed or damaged: the file is corrupt. Restore it from a copy."
            )
    _refuse_orphans(connection)
    datasets = tables().datasets
    rows = [sound(row) for row in connection.execute(select(datasets).order_by(datasets.c.id))]
    found = {row.name: _verify(connection, row, heads.get(row.name)) for row in rows}
    for name in heads.keys() - found.keys():
        raise LedgerError(f"The ledger was changed: data set {name!r} is gone.")
    for replay in found.values():
        for old, head, spent in replay.links:
            _compare_link(replay, found.get(old), head, spent)
    return {name: replay.head for name, replay in found.items()}


def _compare_link(
    replay: _Replay, old: _Replay | None, head: Mapping[str, Any], spent: Spent
) -> None:
    """Compare what was carried with the data set that it was carried from."""
    if old is None or (replay.dataset, head) not in old.closed:
        replay.wrong("it continues a data set that does not end there")
    if old.sums[""].worst != spent:
        replay.wrong("it does not count what was spent before")


def _refuse_orphans(connection: Connection) -> None:
    """Refuse entries and analysts whose data set is missing."""
    from sqlalchemy import func, select  # noqa: PLC0415

    known = select(tables().datasets.c.id)
    for table in (tables().entries, tables().analysts):
        lost = select(func.count()).select_from(table).where(table.c.dataset.not_in(known))
        if connection.scalar(lost):
            raise LedgerError("The ledger was changed or damaged: a data set is gone.")


def _verify(connection: Connection, dataset: Row[Any], known: Head | str | None) -> _Replay:
    from sqlalchemy import select  # noqa: PLC0415

    name, passed = dataset.name, known is None
    replay, entries, analysts = _Replay(name), tables().entries, tables().analysts
    query = select(entries).where(entries.c.dataset == dataset.id).order_by(entries.c.sequence)
    for row in connection.execution_options(yield_per=1000).execute(query):
        replay.follow(row)
        passed = passed or _agrees(replay.head, known, name)
    if not passed:
        raise LedgerError(
            f"The ledger was cut or rewritten: the chain of data set {name!r} does not lead to "
            "the known head."
        )
    own = connection.execute(select(analysts).where(analysts.c.dataset == dataset.id))
    replay.compare(dataset, {row.name: row for row in map(sound, own)})
    return replay


def _agrees(head: Head, known: Head | str | None, name: str) -> bool:
    """Return whether a chain passes a known head here; a hash alone may be anywhere in it."""
    if isinstance(known, str):
        return head.hash.startswith(known)
    if known is None or head.sequence != known.sequence:
        return False
    if head != known:
        raise LedgerError(f"The ledger was rewritten: data set {name!r} left the known chain.")
    return True


def export(connection: Connection, stream: TextIO) -> int:
    """Write every entry as a line of JSON: its digest, and the body that was hashed."""
    from sqlalchemy import select  # noqa: PLC0415

    table, count = tables().entries, 0
    query = select(table.c.body, table.c.hash).order_by(table.c.dataset, table.c.sequence)
    for row in connection.execution_options(yield_per=1000).execute(query):
        read_body(sound(row).body)  # invalid JSON would break the lines
        if "\n" in row.body:
            raise LedgerError(DAMAGED.format(what="an entry"))
        stream.write(f'{{"hash":{json.dumps(row.hash)},"entry":{row.body}}}\n')
        count += 1
    return count
