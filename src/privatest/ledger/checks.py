"""What callers of a ledger may pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from privatest.accounting import Event, Gaussian, event_to_dict, price
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import one_of, reject
from privatest.ledger.chain import canonical
from privatest.ledger.records import Head
from privatest.ledger.sums import COMPOSITIONS

__all__ = [
    "LONGEST_NAME",
    "charged",
    "checked_heads",
    "is_budget",
    "name_of",
    "settings_of",
    "words",
]

LONGEST_NAME = 200
_HASH = re.compile("[0-9a-f]{16,64}")  # at least as much as was ever printed


def settings_of(
    composition: str, each: Event | None, partition: Iterable[str], schema_digest: str
) -> dict[str, Any]:
    """Return what never changes about a data set."""
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
    """Return a name that can be stored and printed."""
    if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
        reject(parameter, f"a printable name of at most {longest} characters", value)
    return value


def is_budget(budget: object) -> Budget:
    """Return a budget that is one."""
    if not isinstance(budget, Budget):
        reject("budget", "a Budget", budget)
    return budget


def words(asked: object) -> dict[str, Any] | None:
    """Return the public words of a request, which must be a JSON object."""
    if asked is None:
        return None
    if not isinstance(asked, Mapping):
        reject("asked", "a mapping of names to values", asked)
    canonical(dict(asked), "asked")
    return dict(asked)


def checked_heads(heads: Mapping[str, Head | str] | None) -> dict[str, Head | str]:
    """Return known ends of chains, each whole or as the first digits of its hash."""
    found = dict(heads or {})
    for name, head in found.items():
        if not isinstance(head, Head) and not _HASH.fullmatch(head):
            raise ParameterError(
                f"the head of {name!r} must be the last hash that verify printed: at least 16 of "
                "its digits, 0 to 9 and a to f."
            )
    return found
