"""Checks of what callers pass to a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from privatest.accounting import Event, Gaussian, event_to_dict, price
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import one_of, reject
from privatest.ledger.accounts import COMPOSITIONS
from privatest.ledger.chain import canonical

__all__ = [
    "LONGEST_NAME",
    "charged",
    "day",
    "is_budget",
    "name_of",
    "now",
    "settings_of",
    "told",
    "words",
]

LONGEST_NAME = 200


def now() -> str:
    """Return the time in UTC, in a form that sorts."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def settings_of(
    composition: str, each: Event | None, partition: Iterable[str], schema_digest: str
) -> dict[str, Any]:
    """Return the settings of a data set, which never change."""
    one_of("composition", composition, COMPOSITIONS)
    if (composition == "equal") != (each is not None):
        raise ParameterError("each must be given for the composition 'equal', and only for it.")
    if each is not None and each.part is not None:
        raise ParameterError("each must not name a part.")
    if isinstance(partition, str):
        reject("partition", "a list of names", partition)
    parts = [name_of("partition", part) for part in partition]
    if len(set(parts)) != len(parts) or len(parts) == 1:
        raise ParameterError("partition must name at least two different parts, or none.")
    settings: dict[str, Any] = {"composition": composition, "schema": schema_digest}
    settings |= {} if each is None else {"each": event_to_dict(each)}
    return settings | ({"partition": sorted(parts)} if parts else {})


def charged(event: Event, budget: Budget | None) -> Budget:
    """Return the price of an event under plain addition."""
    if not isinstance(event, Event):
        reject("event", "a Pure, Approximate, Gaussian or Laplace event", event)
    if budget is not None:
        return is_budget(budget)
    if isinstance(event, Gaussian):
        raise ParameterError("budget must be given for Gaussian noise: its price at some delta.")
    return price(event)


def name_of(parameter: str, value: object, longest: int = LONGEST_NAME) -> str:
    """Check that a name can be stored and printed."""
    if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
        reject(parameter, f"a printable name of at most {longest} characters", value)
    return value


def day(value: object) -> str:
    """Check a day that is not in the future, as in "2026-01-31"."""
    try:
        found = date.fromisoformat(str(value)).isoformat()
    except ValueError:
        found = ""
    if found != value or found > now()[:10]:
        reject("since", "a day up to today, as in 2026-01-31", value)
    return found


def is_budget(budget: object) -> Budget:
    """Check that a value is a Budget."""
    if not isinstance(budget, Budget):
        reject("budget", "a Budget", budget)
    return budget


def words(asked: object) -> dict[str, Any] | None:
    """Check the public description of a request, which must be a JSON object."""
    if asked is None:
        return None
    if not isinstance(asked, Mapping):
        reject("asked", "a mapping of names to values", asked)
    canonical(dict(asked), "asked")
    return dict(asked)


def told(reason: str) -> dict[str, str]:
    """Check why the custodian changes something: public words, for the history."""
    return {"reason": name_of("reason", reason)} if reason else {}
