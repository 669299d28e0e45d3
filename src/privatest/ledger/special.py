"""Entries that are no requests: spending that is carried over, accounts closed, new periods.

Each is written by the custodian, in one transaction that holds the data set's lock, and replayed
by ``verify`` like every other entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.ledger.accounts import CLOSED, Limits, Spent, Sums, read_settings
from privatest.ledger.chain import canonical, parsed, read_body
from privatest.ledger.tables import sound, tables
from privatest.ledger.transactions import (
    account_of,
    append,
    is_closed,
    limits_for,
    locked,
    set_analyst,
    set_budget,
    sums_text,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

__all__ = [
    "carry",
    "carry_all",
    "closed_to",
    "keep_strict",
    "link",
    "missing",
    "period_began",
    "renew",
    "revoke",
]

_STARTS = ("created", "renewed", "restored")  # a new period begins after these


def revoke(connection: Connection, name: str, analyst: str, fields: Mapping[str, Any]) -> bool:
    """Close an analyst's account; what was spent stays spent. False if it was closed."""
    from sqlalchemy import update  # noqa: PLC0415

    dataset, analysts = locked(connection, name), tables().analysts
    own = account_of(connection, dataset, analyst)
    if is_closed(own):
        return False
    here = (analysts.c.dataset == dataset.id) & (analysts.c.name == analyst)
    limits = canonical(CLOSED.to_dict())
    connection.execute(update(analysts).where(here).values(limits=limits))
    body = {"analyst": analyst, "epsilon": own.epsilon, "delta": own.delta, "revoked": True}
    append(connection, dataset, "analyst", {**body, "limits": CLOSED.to_dict(), **fields})
    return True


def renew(connection: Connection, name: str, since: str, fields: Mapping[str, Any]) -> bool:
    """Begin a period: sums begin at nothing again, once after ``since``. False if it was done.

    The entry keeps the sums of the period that ends.
    """
    from sqlalchemy import update  # noqa: PLC0415

    dataset, analysts = locked(connection, name), tables().analysts
    if is_closed(dataset):
        raise ParameterError(f"data set {name!r} is closed; its history says why.")
    if since <= period_began(connection, dataset):
        return False
    zero = sums_text(Sums())
    connection.execute(update(analysts).where(analysts.c.dataset == dataset.id).values(sums=zero))
    ended = parsed(dict, dataset.sums)
    append(
        connection, dataset, "renewed", {"since": since, "ended": ended, **fields}, {"sums": zero}
    )
    return True


def period_began(connection: Connection, dataset: Row[Any]) -> str:
    """Return the day on which the period of a data set began, as in 2026-01-31."""
    from sqlalchemy import select  # noqa: PLC0415

    entries = tables().entries
    query = (
        select(entries.c.body)
        .where(entries.c.dataset == dataset.id, entries.c.kind.in_(_STARTS))
        .order_by(entries.c.sequence.desc())
        .limit(1)
    )
    return str(read_body(sound(connection.execute(query).one()).body).get("time", ""))[:10]


def link(connection: Connection, old: str, new: str) -> None:
    """Close a data set, and count what was spent there for the one that it is called now."""
    if old == new:
        raise ParameterError("a data set cannot continue itself.")
    before, after = (locked(connection, name) for name in sorted((old, new)))  # no deadlock
    if before.name != old:
        before, after = after, before
    for row in (before, after):
        if is_closed(row):
            raise ParameterError(f"data set {row.name!r} is closed; its history says why.")
    settings = parsed(read_settings, after.settings)
    same = settings.get("each") == parsed(read_settings, before.settings).get("each")
    sums = parsed(Sums.from_dict, before.sums)
    if settings["composition"] == "equal" and not same and sums.worst.events:
        raise ParameterError(
            f"data set {new!r} counts equal requests, and those of {old!r} cost something else: "
            "give it the same each_epsilon and each_delta, or another composition."
        )
    end = {"sequence": before.sequence, "hash": before.hash}
    carry_all(connection, before, after, "linked", {"of": old, "head": end})
    fields = {"to": new, "epsilon": before.epsilon, "delta": before.delta}
    limits = {"limits": CLOSED.to_dict()}
    append(connection, before, "closed", fields | limits, {"limits": canonical(CLOSED.to_dict())})


def carry_all(
    connection: Connection, old: Row[Any], new: Row[Any], kind: str, fields: Mapping[str, Any]
) -> None:
    """Count what was spent from one data set, by each analyst too, for another."""
    from sqlalchemy import select  # noqa: PLC0415

    analysts = tables().analysts
    own = connection.execute(select(analysts).where(analysts.c.dataset == old.id))
    rows = [sound(row) for row in own]
    whole = parsed(Sums.from_dict, old.sums).worst
    carry(connection, new, kind, fields, whole, {row.name: (row, None) for row in rows})


def carry(
    connection: Connection,
    dataset: Row[Any],
    kind: str,
    fields: Mapping[str, Any],
    whole: Spent,
    accounts: Mapping[str, tuple[Row[Any], Spent | None]],
) -> None:
    """Add spending that no request of this chain made: to the whole, and to analysts.

    Of an analyst a row that says their budget, and what to add: by default, all that it spent. An
    account that is not there is made; a closed one stays closed.
    """
    from sqlalchemy import insert, select, update  # noqa: PLC0415

    analysts, told = tables().analysts, {}
    settings = parsed(read_settings, dataset.settings)
    for name, (row, given) in sorted(accounts.items()):
        spent = parsed(Sums.from_dict, row.sums).worst if given is None else given
        here = (analysts.c.dataset == dataset.id) & (analysts.c.name == name)
        there = sound(connection.execute(select(analysts).where(here)).one_or_none())
        sums = Sums() if there is None else parsed(Sums.from_dict, there.sums)
        after = sums_text(sums.after(None, spent))
        limits = _limits_of(row, settings)
        if there is None:
            columns = {"epsilon": row.epsilon, "delta": row.delta, "sums": after}
            columns |= {"dataset": dataset.id, "name": name, "limits": canonical(limits.to_dict())}
            connection.execute(insert(analysts), columns)
        else:
            connection.execute(update(analysts).where(here).values(sums=after))
        told[name] = {
            "epsilon": row.epsilon,
            "delta": row.delta,
            "limits": limits.to_dict(),
            "carried": spent.to_dict(),
        }
    sums = parsed(Sums.from_dict, dataset.sums).after(None, whole)
    body = {"carried": whole.to_dict(), "analysts": told, **fields}
    append(connection, dataset, kind, body, {"sums": sums_text(sums)})


def _limits_of(row: Row[Any], settings: Mapping[str, Any]) -> Limits:
    """Return the limits of an account that is carried over; closed if its budget cannot be."""
    if is_closed(row):
        return CLOSED
    try:
        return limits_for(Budget(row.epsilon, row.delta), settings)
    except ParameterError:
        return CLOSED


def closed_to(connection: Connection, dataset: Row[Any]) -> str:
    """Return under which name a closed data set goes on; nothing if it is open."""
    from sqlalchemy import select  # noqa: PLC0415

    entries = tables().entries
    here = (entries.c.dataset == dataset.id) & (entries.c.kind == "closed")
    query = select(entries.c.body).where(here).order_by(entries.c.sequence.desc()).limit(1)
    found = sound(connection.execute(query).one_or_none()) if is_closed(dataset) else None
    return "" if found is None else str(read_body(found.body).get("to", ""))


def keep_strict(
    connection: Connection,
    old: Row[Any],
    to: str,
    accounts: Mapping[str, Row[Any]],
    fields: Mapping[str, Any],
) -> None:
    """Close what was closed, and lower what was lowered, since a backup that is restored.

    Going back in time must not let in whoever was revoked, open a data set whose people have
    another budget by now, or give back what a budget was lowered by.
    """
    for who, own in sorted(accounts.items()):
        there = account_of(connection, locked(connection, old.name), who)
        if is_closed(own):
            revoke(connection, old.name, who, fields)
        elif not is_closed(there) and _is_less(own, there):
            budget = Budget(own.epsilon, own.delta)
            set_analyst(connection, old.name, who, budget, True, fields)
    row = locked(connection, old.name)
    if is_closed(row):
        return
    if is_closed(old):
        body = {"to": to, "epsilon": row.epsilon, "delta": row.delta, **fields}
        limits = CLOSED.to_dict()
        append(connection, row, "closed", {**body, "limits": limits}, {"limits": canonical(limits)})
    elif _is_less(old, row):
        set_budget(connection, old.name, Budget(old.epsilon, old.delta), True, fields)


def _is_less(one: Row[Any], other: Row[Any]) -> bool:
    return any(
        Decimal(getattr(one, name)) < Decimal(getattr(other, name)) for name in ("epsilon", "delta")
    )


def missing(now: Sums, then: Sums) -> Spent:
    """Return what has to be added to all of ``then`` so that nobody has less than ``now``."""
    parts = {part for sums in (now, then) for part, _ in sums.parts} | {""}

    def gone(name: str) -> Any:
        pairs = [
            (s.whole + dict(s.parts).get(part, Spent())) for part in parts for s in (now, then)
        ]
        lacking = (
            getattr(a, name) - getattr(b, name)
            for a, b in zip(pairs[::2], pairs[1::2], strict=True)
        )
        return max(*lacking, type(getattr(now.whole, name))(0))

    return Spent(*(gone(name) for name in Spent.__slots__))
