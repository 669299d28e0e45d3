"""When a budget is renewed, where the custodian declares that: once in each period, never before.

Periods depend on the calendar alone. The guarantee then holds for each period; after k periods it
is that of k budgets (docs/proofs/curator.md).
"""

from __future__ import annotations

from datetime import date, timedelta

from privatest.core.validation import integer_at_least, reject

__all__ = ["PERIODS", "Renewal", "checked_renewal", "period_start"]

PERIODS = ("weekly", "monthly", "quarterly", "yearly")
Renewal = str | int
_FIRST = date(2000, 1, 3)  # a Monday, from which days are counted


def checked_renewal(value: object) -> Renewal:
    """Return a rule: the name of a period, or a number of days."""
    if isinstance(value, str):
        if value not in PERIODS:
            reject("renew", f"one of {', '.join(PERIODS)}, or a number of days", value)
        return value
    return integer_at_least("renew", value, 1)


def period_start(rule: Renewal, today: date) -> date:
    """Return the first day of the period that a day is in."""
    if rule == "yearly":
        return today.replace(month=1, day=1)
    if rule == "quarterly":
        return today.replace(month=today.month - (today.month - 1) % 3, day=1)
    if rule == "monthly":
        return today.replace(day=1)
    days = 7 if isinstance(rule, str) else rule
    return today - timedelta((today - _FIRST).days % days)
