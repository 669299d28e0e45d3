"""A durable ledger: budgets that cannot be overspent, and a record that cannot quietly change."""

from privatest.ledger.records import Account, Answered, Entry, Head, Reservation, Totals
from privatest.ledger.store import Ledger, request_digest
from privatest.ledger.sums import Composition, Limits, Spent, Sums

__all__ = [
    "Account",
    "Answered",
    "Composition",
    "Entry",
    "Head",
    "Ledger",
    "Limits",
    "Reservation",
    "Spent",
    "Sums",
    "Totals",
    "request_digest",
]
