"""Budgets, what was spent of them, and what a ledger reports.

Grants are decided by running sums alone. These are exact, and valid for requests chosen after
reading earlier answers (docs/accounting.md). A request takes the same time whether it is the
first or the millionth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, get_args

from privatest.accounting import (
    Event,
    covers,
    event_from_dict,
    event_to_dict,
    largest_rho,
    most_repeats,
    zcdp_price,
)
from privatest.accounting.events import UP
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget

__all__ = [
    "CLOSED",
    "COMPOSITIONS",
    "Account",
    "Composition",
    "Head",
    "Limits",
    "Spent",
    "Sums",
    "Totals",
    "limits_of",
    "read_settings",
]

Composition = Literal["basic", "tight", "equal"]
"""Which sums grant: epsilons and deltas; rhos and deltas (zCDP); the count of equal requests."""

COMPOSITIONS: tuple[str, ...] = get_args(Composition)
_ZERO = Decimal(0)
_WIDEST = 100  # largest decimal exponent of a sum; budgets have 9 and 18


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums over events."""

    epsilon: Decimal = _ZERO
    delta: Decimal = _ZERO
    rho: Decimal = _ZERO
    rho_delta: Decimal = _ZERO
    events: int = 0

    def __add__(self, other: Spent) -> Spent:
        """Add exactly."""
        return Spent(
            UP.add(self.epsilon, other.epsilon),
            UP.add(self.delta, other.delta),
            UP.add(self.rho, other.rho),
            UP.add(self.rho_delta, other.rho_delta),
            self.events + other.events,
        )

    @classmethod
    def on(cls, event: Event, budget: Budget) -> Spent:
        """Return the cost of one event; ``budget`` is its price under plain addition."""
        if not covers(budget, event):
            raise ParameterError("budget must cover the event; ask for its price.")
        rho, rho_delta = zcdp_price(event)
        return cls(budget.epsilon, budget.delta, rho, rho_delta, 1)

    def to_dict(self) -> dict[str, Any]:
        """Write as plain strings."""
        numbers = {name: f"{getattr(self, name):f}" for name in self.__slots__[:-1]}
        return {**numbers, "events": self.events}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Spent:
        """Read what ``to_dict`` wrote."""
        return cls(**{name: _read(name, values[name]) for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits of the sums; None is no limit."""

    epsilon: Decimal | None = None
    delta: Decimal | None = None
    rho: Decimal | None = None
    rho_delta: Decimal | None = None
    events: int | None = None

    def allow(self, spent: Spent) -> bool:
        """Return whether sums are within the limits; without any limit nothing is allowed."""
        limits = [(getattr(self, name), getattr(spent, name)) for name in self.__slots__]
        found = [value <= limit for limit, value in limits if limit is not None]
        return bool(found) and all(found)

    def to_dict(self) -> dict[str, Any]:
        """Write as plain strings, omitting sums without a limit."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {
            name: value if isinstance(value, int) else f"{value:f}"
            for name, value in found.items()
            if value is not None
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Limits:
        """Read what ``to_dict`` wrote; ValueError if there is no limit at all."""
        if not values:
            raise ValueError("no limit")
        return cls(**{name: _read(name, value) for name, value in values.items()})


CLOSED = Limits(events=0)
"""The limits of a closed account: every request is an event, so none is granted."""


def _read(name: str, value: object) -> Any:
    """Read a stored count or decimal; it is never negative."""
    if name == "events":
        if type(value) is not int or value < 0:
            raise ValueError(name)
        return value
    if not isinstance(value, str):
        raise TypeError(name)
    number = Decimal(value)
    # limit the exponent: writing out 1e999999999 would exhaust memory
    if not number.is_finite() or number.is_signed() or abs(number.adjusted()) > _WIDEST:
        raise ValueError(name)
    return number


def read_settings(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a data set's settings; KeyError, TypeError or ValueError if they are invalid."""
    if values["composition"] not in COMPOSITIONS or not isinstance(values["schema"], str):
        raise ValueError("settings")
    if (values["composition"] == "equal") != ("each" in values):
        raise ValueError("settings")
    if "each" in values:
        event_from_dict(values["each"])
    parts = values.get("partition", [])
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise TypeError("partition")
    return values


def limits_of(total: Budget, composition: Composition, each: Event | None) -> Limits:
    """Return limits that keep a total budget, however adaptively requests are chosen."""
    if composition == "basic":
        return Limits(epsilon=total.epsilon, delta=total.delta)
    if composition == "tight":
        # half of delta converts rho to epsilon, half is for the deltas of the requests
        return Limits(rho=largest_rho(total), rho_delta=total.delta / 2)
    assert each is not None
    return Limits(events=most_repeats(replace(each, part=None), total))


@dataclass(frozen=True, slots=True)
class Sums:
    """What was spent on the whole data set, and on each part of a public partition."""

    whole: Spent = Spent()
    parts: tuple[tuple[str, Spent], ...] = ()

    def after(self, part: str | None, spent: Spent) -> Sums:
        """Add one event's cost."""
        if part is None:
            return replace(self, whole=self.whole + spent)
        parts = dict(self.parts)
        parts[part] = parts.get(part, Spent()) + spent
        return replace(self, parts=tuple(sorted(parts.items())))

    def within(self, limits: Limits) -> bool:
        """Return whether the limits hold for every person, whichever part they are in."""
        return all(limits.allow(self.whole + spent) for _, spent in self.parts or (("", Spent()),))

    def left(self, limits: Limits, part: str | None = None) -> dict[str, Decimal | int]:
        """Return what is left of each limit, for a request on a part or on the whole data set."""
        spent = self.worst if part is None else self.whole + dict(self.parts).get(part, Spent())
        pairs = {name: (getattr(limits, name), getattr(spent, name)) for name in Limits.__slots__}
        left: dict[str, Decimal | int] = {
            name: limit - gone if name == "events" else UP.subtract(limit, gone)
            for name, (limit, gone) in pairs.items()
            if limit is not None
        }
        return {name: max(value, 0 if name == "events" else _ZERO) for name, value in left.items()}

    @property
    def worst(self) -> Spent:
        """The largest value of each sum over the parts, including the whole."""
        parts = [spent for _, spent in self.parts] or [Spent()]
        largest = (max(getattr(spent, name) for spent in parts) for name in Spent.__slots__)
        return self.whole + Spent(*largest)

    def to_dict(self) -> dict[str, Any]:
        """Write as plain values."""
        parts = {part: spent.to_dict() for part, spent in self.parts}
        return {"whole": self.whole.to_dict()} | ({"parts": parts} if parts else {})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Sums:
        """Read what ``to_dict`` wrote."""
        parts = values.get("parts", {})
        return cls(
            Spent.from_dict(values["whole"]),
            tuple(sorted((part, Spent.from_dict(v)) for part, v in parts.items())),
        )


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain. Keep it elsewhere, and verify() finds every change up to here."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Account:
    """A budget, and what was spent from it.

    Attributes
    ----------
    budget : Budget
        The whole budget.
    limits : Limits
        The limits on sums that decide a grant.
    sums : Sums
        What was spent, on the whole data set and on parts.
    """

    budget: Budget
    limits: Limits
    sums: Sums

    @property
    def spent(self) -> Spent:
        """What was spent on the person about whom most was released."""
        return self.sums.worst

    @property
    def used(self) -> Decimal:
        """The fraction of the budget that is spent, in [0, 1]: the largest over the limits."""
        spent = self.spent
        shares = [
            Decimal(getattr(spent, name)) / limit
            for name in Limits.__slots__
            if (limit := getattr(self.limits, name))
        ]
        return min(Decimal(1), max(shares, default=Decimal(1)))

    @property
    def closed(self) -> bool:
        """Whether nothing is granted any more: an analyst was revoked, a data set renamed."""
        return self.limits == CLOSED

    @property
    def left(self) -> dict[str, Decimal | int]:
        """What is left of each limit, for a request on the whole data set."""
        return self.sums.left(self.limits)

    def to_dict(self) -> dict[str, Any]:
        """Write as plain values, decimals as strings."""
        return {
            "epsilon": f"{self.budget.epsilon:f}",
            "delta": f"{self.budget.delta:f}",
            "limits": self.limits.to_dict(),
            "spent": self.spent.to_dict(),
            "left": {n: v if isinstance(v, int) else f"{v:f}" for n, v in self.left.items()},
            "parts": {part: spent.to_dict() for part, spent in self.sums.parts},
            "used": float(self.used),
            "closed": self.closed,
        }


@dataclass(frozen=True, slots=True)
class Totals:
    """All budgets of one data set.

    Attributes
    ----------
    dataset : str
        Its name.
    composition : {"basic", "tight", "equal"}
        Which sums decide a grant.
    account : Account
        The budget of the data set.
    analysts : mapping of str to Account
        The budgets of the analysts.
    each : Event or None
        What every request costs, if the composition is "equal".
    partition : tuple of str
        The declared public parts.
    schema_digest : str
        Digest of the public schema.
    head : Head
        The end of the chain.
    time : str
        Time of the last entry.
    """

    dataset: str
    composition: Composition
    account: Account
    analysts: Mapping[str, Account] = field(default_factory=dict)
    each: Event | None = None
    partition: tuple[str, ...] = ()
    schema_digest: str = ""
    head: Head = Head(0, "")
    time: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Write as plain values, decimals as strings."""
        return {
            "dataset": self.dataset,
            "composition": self.composition,
            **self.account.to_dict(),
            "analysts": {name: account.to_dict() for name, account in self.analysts.items()},
            "each": None if self.each is None else event_to_dict(self.each),
            "partition": list(self.partition),
            "schema_digest": self.schema_digest,
            "head": {"sequence": self.head.sequence, "hash": self.head.hash},
            "time": self.time,
        }
