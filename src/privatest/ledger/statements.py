"""The statements that every request runs, built once: building them costs more than running."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

from privatest.ledger.tables import tables

__all__ = ["statements"]


@cache
def statements(dialect: str) -> SimpleNamespace:
    """Build them on first use; PostgreSQL gets fewer, since each is a round trip."""
    from sqlalchemy import bindparam, func, insert, select, update  # noqa: PLC0415

    datasets, analysts, entries = tables().datasets, tables().analysts, tables().entries
    own = (analysts.c.dataset == bindparam("of_dataset")) & (analysts.c.name == bindparam("whose"))
    names = [column.name for column in entries.c]
    head = ("sequence", "hash", "time", "sums", "epsilon", "delta", "limits")
    append = insert(entries).values({name: bindparam(name) for name in names})
    move_head = (
        update(datasets)
        .where(datasets.c.id == bindparam("of_dataset"))
        .values({name: bindparam(f"new_{name}") for name in head})
    )
    postgresql = dialect == "postgresql"
    # how a request ended need not wait for the disk (Ledger.commit)
    quick = [func.set_config("synchronous_commit", "off", True)] if postgresql else []
    return SimpleNamespace(
        lock=select(datasets).where(datasets.c.name == bindparam("of_name")).with_for_update(),
        # the reservation's data set, locked, with what the reservation says
        lock_open=select(datasets, entries.c.request, *quick)
        .join(entries, entries.c.dataset == datasets.c.id)
        .where(entries.c.opens == bindparam("reservation"))
        .with_for_update(of=datasets),
        analyst=select(analysts).where(own),
        spend_of_analyst=update(analysts).where(own).values(sums=bindparam("new_sums")),
        append=(move_head.add_cte(append.cte("appended")),) if postgresql else (append, move_head),
    )
