"""A durable ledger: budgets that cannot be overspent, and a record that cannot quietly change."""

from privatest.ledger.restoring import Lost, Restored, restore
from privatest.ledger.state import (
    Account,
    Answered,
    Composition,
    Entry,
    Head,
    Limits,
    Reservation,
    Spent,
    State,
    Sums,
    Totals,
)
from privatest.ledger.store import Ledger, request_digest

__all__ = [
    "Account",
    "Answered",
    "Composition",
    "Entry",
    "Head",
    "Ledger",
    "Limits",
    "Lost",
    "Reservation",
    "Restored",
    "Spent",
    "State",
    "Sums",
    "Totals",
    "request_digest",
    "restore",
]
