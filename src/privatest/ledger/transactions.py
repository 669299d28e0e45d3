"""Changes to a ledger.

Each change runs inside one transaction that holds the data set's lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from privatest.accounting import Event, event_from_dict, event_to_dict
from privatest.core.errors import BudgetError, LedgerError, ParameterError
from privatest.core.privacy import Budget
from privatest.ledger.accounts import (
    CLOSED,
    Limits,
    Spent,
    Sums,
    limits_of,
    read_settings,
)
from privatest.ledger.chain import GENESIS, canonical, digest, parsed
from privatest.ledger.checks import now
from privatest.ledger.history import Reservation
from privatest.ledger.tables import sound, statements, tables

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

__all__ = [
    "account_of",
    "append",
    "close",
    "create_dataset",
    "is_closed",
    "limits_for",
    "locked",
    "reserve",
    "set_analyst",
    "set_budget",
    "sums_text",
]

_REQUESTS = ("reserved", "committed", "failed")  # what a role that serves may append


# Names of the sums in a refusal.
_SUMS: Mapping[str, str] = {
    "epsilon": "epsilon",
    "delta": "delta",
    "rho": "rho of zCDP",
    "rho_delta": "delta, of which half is for requests",
    "events": "requests",
}


def locked(connection: Connection, name: str) -> Row[Any]:
    """Lock a data set and read it."""
    found = sound(
        connection.execute(
            statements(connection.dialect.name).lock, {"of_name": name}
        ).one_or_none()
    )
    if found is None:
        raise ParameterError(f"dataset must be one that the ledger holds; got {name!r}.")
    return found


def create_dataset(
    connection: Connection, name: str, budget: Budget, settings: Mapping[str, Any]
) -> None:
    """Enter a data set; its settings never change."""
    from sqlalchemy import func, insert, select, text  # noqa: PLC0415

    datasets = tables().datasets
    if connection.dialect.name == "postgresql":  # SQLite has only one writer anyway
        connection.execute(text("LOCK TABLE privatest_datasets IN SHARE ROW EXCLUSIVE MODE"))
    if connection.scalar(select(datasets.c.id).where(datasets.c.name == name)) is not None:
        raise ParameterError(f"dataset must be a new name; {name!r} is in the ledger already.")
    limits = limits_for(budget, settings)
    values = {
        "id": (connection.scalar(select(func.max(datasets.c.id))) or 0) + 1,
        "name": name,
        "settings": canonical(settings),
        "epsilon": f"{budget.epsilon:f}",
        "delta": f"{budget.delta:f}",
        "limits": canonical(limits.to_dict()),
        "sums": sums_text(Sums()),
        "sequence": 0,
        "hash": GENESIS,
        "time": "",
    }
    connection.execute(insert(datasets), values)
    append(
        connection,
        locked(connection, name),
        "created",
        {"settings": settings, **_budget_fields(budget, limits)},
    )


def set_budget(
    connection: Connection,
    name: str,
    budget: Budget,
    below_spent: bool,
    fields: Mapping[str, Any],
) -> None:
    """Change the total budget of a data set; the change is an entry of its own."""
    dataset = locked(connection, name)
    if is_closed(dataset):
        raise ParameterError(f"data set {name!r} is closed; its history says why.")
    limits = limits_for(budget, parsed(read_settings, dataset.settings))
    _refuse_below(dataset, limits, f"data set {name!r}", below_spent)
    body = {**_budget_fields(budget, limits), **fields}
    append(connection, dataset, "budget", body, _budget_columns(budget, limits))


def set_analyst(
    connection: Connection,
    name: str,
    analyst: str,
    budget: Budget,
    below_spent: bool,
    fields: Mapping[str, Any],
) -> None:
    """Enter an analyst, or change an analyst's budget; what was spent stays spent."""
    from sqlalchemy import insert, select, update  # noqa: PLC0415

    analysts = tables().analysts
    dataset = locked(connection, name)
    limits = limits_for(budget, parsed(read_settings, dataset.settings))
    here = (analysts.c.dataset == dataset.id) & (analysts.c.name == analyst)
    columns = _budget_columns(budget, limits)
    own = sound(connection.execute(select(analysts).where(here)).one_or_none())
    if own is None:
        row = {"dataset": dataset.id, "name": analyst, "sums": sums_text(Sums()), **columns}
        connection.execute(insert(analysts), row)
    else:
        _refuse_below(own, limits, f"analyst {analyst!r} on data set {name!r}", below_spent)
        connection.execute(update(analysts).where(here).values(columns))
    body = {"analyst": analyst, **_budget_fields(budget, limits), **fields}
    append(connection, dataset, "analyst", body)


def is_closed(row: Row[Any]) -> bool:
    """Return whether an account grants nothing any more."""
    return parsed(Limits.from_dict, row.limits) == CLOSED


def _refuse_below(row: Row[Any], limits: Limits, whose: str, below_spent: bool) -> None:
    sums = parsed(Sums.from_dict, row.sums)
    if below_spent or sums.within(limits):
        return
    spent = f"epsilon {_plain(sums.worst.epsilon)}, delta {_plain(sums.worst.delta)}"
    raise ParameterError(
        f"The budget of {whose} must be at least what is already spent ({spent}). "
        "To stop all further requests, set it to what is spent."
    )


def reserve(
    connection: Connection,
    name: str,
    event: Event,
    budget: Budget,
    analyst: str | None,
    request: str | None,
    asked: Mapping[str, Any] | None,
    number: str,
) -> Reservation:
    """Charge the data set and the analyst, or refuse and change nothing."""
    dataset = locked(connection, name)
    spent = charge(event, budget, parsed(read_settings, dataset.settings))
    sums = _granted(f"data set {name!r}", dataset, event, spent)
    own_sums = None
    if analyst is not None:
        own = account_of(connection, dataset, analyst)
        own_sums = _granted(f"analyst {analyst!r} on data set {name!r}", own, event, spent)
    reservation = Reservation(number, name, analyst, dataset.sequence + 1)
    fields = {
        "event": event_to_dict(event),
        "epsilon": f"{budget.epsilon:f}",
        "delta": f"{budget.delta:f}",
        "opens": reservation.id,
        **({} if analyst is None else {"analyst": analyst}),
        **({} if request is None else {"request": request}),
        **({} if asked is None else {"asked": asked}),
    }
    append(connection, dataset, "reserved", fields, {"sums": sums_text(sums)}, own_sums)
    return reservation


def account_of(connection: Connection, dataset: Row[Any], analyst: str) -> Row[Any]:
    """Return the row of an analyst."""
    whose = {"of_dataset": dataset.id, "whose": analyst}
    found = connection.execute(statements(connection.dialect.name).analyst, whose)
    own = sound(found.one_or_none())
    if own is None:
        raise ParameterError(
            f"analyst must be one that data set {dataset.name!r} has; add it first."
        )
    return own


def charge(event: Event, budget: Budget, settings: Mapping[str, Any]) -> Spent:
    """Return what an event costs a data set, after checking that it may happen there."""
    if event.part is not None and event.part not in settings.get("partition", ()):
        raise ParameterError(
            "part must be one of the data set's declared public partition; got "
            f"{event.part!r}. Events on other parts are charged to the whole data set."
        )
    each = settings.get("each")
    if each is not None and event_to_dict(event) | {"part": ""} != each | {"part": ""}:
        raise ParameterError(
            f"event must be the one that this data set allows, {event_from_dict(each)}."
        )
    return Spent.on(event, budget)


def close(connection: Connection, reservation: str, kind: str, fields: Mapping[str, Any]) -> None:
    """Record, once, how a reservation ended: committed or failed."""
    from sqlalchemy.exc import IntegrityError  # noqa: PLC0415

    dataset = sound(
        connection.execute(
            statements(connection.dialect.name).lock_open, {"reservation": reservation}
        ).one_or_none()
    )
    if dataset is None:
        raise LedgerError("The ledger holds no such reservation; nothing may be released.")
    request = {} if dataset.request is None else {"request": dataset.request}
    try:
        append(connection, dataset, kind, {"closes": reservation, **request, **fields})
    except IntegrityError:  # the column is unique
        raise LedgerError(
            "The reservation is already closed; nothing more may be released."
        ) from None


def _granted(whose: str, account: Row[Any], event: Event, spent: Spent) -> Sums:
    """Charge an account, or refuse and say what is missing: sums and limits are public."""
    sums, limits = parsed(Sums.from_dict, account.sums), parsed(Limits.from_dict, account.limits)
    after = sums.after(event.part, spent)
    if after.within(limits):
        return after
    left = sums.left(limits, event.part)
    asked = {name: getattr(spent, name) for name in left}
    refusal = BudgetError(asked=asked, left=left)
    words = "; ".join(
        f"{_SUMS[name]}: {_plain(asked[name])} asked, {_plain(left[name])} left"
        for name in refusal.missing
    )
    raise BudgetError(
        f"The request costs more than what is left of the budget of {whose} ({words}). "
        "Nothing was spent. Request less, or ask the custodian to raise the budget.",
        asked=asked,
        left=left,
    )


def _plain(value: Decimal | int) -> str:
    """Write a value for readers: short if that is exact, else with all of its digits."""
    short = f"{float(value):g}"
    return short if Decimal(short) == value else f"{value}"


def append(
    connection: Connection,
    dataset: Row[Any],
    kind: str,
    fields: Mapping[str, Any],
    changes: Mapping[str, Any] | None = None,
    own: Sums | None = None,
) -> None:
    """Append an entry to the chain and move the head, in the caller's transaction.

    ``changes`` are columns of the data set; ``own`` are new sums of the analyst of a request.
    """
    clock = now()
    time = max(clock, dataset.time)  # a clock that was set back must not reorder the chain
    body = canonical(
        {
            "dataset": dataset.name,
            "sequence": dataset.sequence + 1,
            "kind": kind,
            "time": time,
            **({} if clock == time else {"clock": clock}),
            **fields,
        }
    )
    entry = {
        "dataset": dataset.id,
        "sequence": dataset.sequence + 1,
        "kind": kind,
        "opens": fields.get("opens"),
        "closes": fields.get("closes"),
        "request": fields.get("request"),
        "body": body,
        "hash": digest(dataset.hash, body),
    }
    head = {"sequence": entry["sequence"], "hash": entry["hash"], "time": time, **(changes or {})}
    kept = {name: getattr(dataset, name) for name in ("sums", "epsilon", "delta", "limits")}
    new = {f"new_{name}": value for name, value in (kept | head).items()}
    whose: dict[str, Any] = {"whose": None, "new_own": None}
    if own is not None:
        whose = {"whose": fields["analyst"], "new_own": sums_text(own)}
    values = entry | {"of_dataset": dataset.id, **new, **whose}
    ready = statements(connection.dialect.name)
    if ready.serve is not None and kind in _REQUESTS:
        connection.execute(ready.serve, values)
        return
    for statement in (*ready.append, *(() if own is None else (ready.spend_of_analyst,))):
        connection.execute(statement, values)


def sums_text(sums: Sums) -> str:
    """Return sums as they are stored."""
    return canonical(sums.to_dict())


def limits_for(budget: Budget, settings: Mapping[str, Any]) -> Limits:
    """Return the limits of a budget under the settings of a data set."""
    each = settings.get("each")
    if settings["composition"] == "tight" and budget.delta == 0:
        raise ParameterError(
            "delta of the budget must be above 0 for the composition 'tight'; "
            "without delta, 'basic' is exact."
        )
    limits = limits_of(budget, settings["composition"], each and event_from_dict(each))
    if limits.events == 0:
        raise ParameterError("each must fit into the budget at least once.")
    return limits


def _budget_fields(budget: Budget, limits: Limits) -> dict[str, Any]:
    return {
        "epsilon": f"{budget.epsilon:f}",
        "delta": f"{budget.delta:f}",
        "limits": limits.to_dict(),
    }


def _budget_columns(budget: Budget, limits: Limits) -> dict[str, str]:
    fields = _budget_fields(budget, limits)
    return {**fields, "limits": canonical(fields["limits"])}
