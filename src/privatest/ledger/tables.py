"""The tables of a ledger, as of the newest version.

Numbers of budgets are text: exact decimals, the same in every database.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from privatest.core.errors import LedgerError
from privatest.ledger.chain import DAMAGED

if TYPE_CHECKING:
    from sqlalchemy import Row

__all__ = ["sound", "tables"]

_NUMBERS = ("id", "dataset", "sequence", "version")
_OPTIONAL = ("opens", "closes", "request")
_LARGEST = 2**62  # no ledger gets there, and one more still fits the column

R = TypeVar("R", bound="Row[Any] | None")


def sound(row: R) -> R:
    """Return a row whose values are of the types that were written.

    SQLite keeps any type in any column, so a damaged file can give bytes for a text.
    """
    for name, value in () if row is None else row._mapping.items():
        if name in _NUMBERS:
            good = type(value) is int and 0 <= value <= _LARGEST
        else:
            good = isinstance(value, str) or (value is None and name in _OPTIONAL)
        if not good:
            raise LedgerError(DAMAGED.format(what=f"a {name}"))
    return row


@cache
def tables() -> SimpleNamespace:
    """Describe the tables; on first use, because importing SQLAlchemy takes a while."""
    from sqlalchemy import (  # noqa: PLC0415
        BigInteger,
        Column,
        ForeignKey,
        Index,
        Integer,
        MetaData,
        PrimaryKeyConstraint,
        String,
        Table,
        Text,
    )

    metadata = MetaData()
    version = Table("privatest_version", metadata, Column("version", Integer, primary_key=True))
    # What never changes of a data set; its head of the chain, and sums that verify() recomputes.
    datasets = Table(
        "privatest_datasets",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("name", String(200), nullable=False, unique=True),
        Column("settings", Text, nullable=False),
        Column("epsilon", String(80), nullable=False),
        Column("delta", String(80), nullable=False),
        Column("limits", Text, nullable=False),
        Column("sums", Text, nullable=False),
        Column("sequence", BigInteger, nullable=False),
        Column("hash", String(64), nullable=False),
        Column("time", String(40), nullable=False),
    )
    analysts = Table(
        "privatest_analysts",
        metadata,
        Column("dataset", Integer, ForeignKey(datasets.c.id), nullable=False),
        Column("name", String(200), nullable=False),
        Column("epsilon", String(80), nullable=False),
        Column("delta", String(80), nullable=False),
        Column("limits", Text, nullable=False),
        Column("sums", Text, nullable=False),
        PrimaryKeyConstraint("dataset", "name"),
    )
    # The chain. The body is what was hashed; the other columns repeat parts of it for searching.
    entries = Table(
        "privatest_entries",
        metadata,
        Column("dataset", Integer, ForeignKey(datasets.c.id), nullable=False),
        Column("sequence", BigInteger, nullable=False),
        Column("kind", String(20), nullable=False),
        Column("opens", String(40), unique=True),
        Column("closes", String(40), unique=True),
        Column("request", String(64)),
        Column("body", Text, nullable=False),
        Column("hash", String(64), nullable=False),
        PrimaryKeyConstraint("dataset", "sequence"),
    )
    Index("privatest_recall", entries.c.dataset, entries.c.request, entries.c.sequence)
    return SimpleNamespace(
        metadata=metadata, version=version, datasets=datasets, analysts=analysts, entries=entries
    )
