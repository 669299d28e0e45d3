"""What a ledger tells: frozen facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from privatest.accounting import Event, event_to_dict
from privatest.core.privacy import Budget
from privatest.ledger.sums import Composition, Limits, Spent, Sums

__all__ = ["Account", "Answered", "Entry", "Head", "Reservation", "Totals"]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Budget that is spent from now on, whatever happens to the request.

    Attributes
    ----------
    id : str
        What commit and fail take.
    dataset, analyst : str
        Whose budgets were charged; no analyst is the custodian.
    sequence : int
        Place in the data set's chain.
    """

    id: str
    dataset: str
    analyst: str | None
    sequence: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One link of a data set's chain.

    Attributes
    ----------
    dataset, sequence, kind : str, int, str
        Kinds: created, budget, analyst, reserved, committed, failed.
    time : str
        When, in UTC; never before the entry before it, even if the clock was set back.
    body : mapping
        Everything that was recorded, as hashed.
    hash : str
        Digest of this entry and of all before it.
    """

    dataset: str
    sequence: int
    kind: str
    time: str
    body: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that was charged, and what became of it.

    Attributes
    ----------
    id, dataset, analyst : str
        Its number and whose budgets were charged; no analyst is the custodian.
    sequence, time : int, str
        Place in the chain and time of the reservation.
    state : {"committed", "failed", "open"}
        Whether it was answered, failed, or is still running or was lost in a crash.
    epsilon, delta : str
        What it cost under plain addition, as exact decimals.
    asked : mapping or None
        The request in public words; None where it was not recorded.
    released : object
        What was released, as recorded; None if nothing was.
    reason : str
        Why it failed, where that was recorded.
    """

    id: str
    dataset: str
    analyst: str | None
    sequence: int
    time: str
    state: Literal["committed", "failed", "open"]
    epsilon: str
    delta: str
    asked: Mapping[str, Any] | None
    released: Any
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Write as plain values, decimals as strings."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain; keep it elsewhere, and verify() will miss nothing up to here."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Account:
    """A budget and what was spent of it.

    Attributes
    ----------
    budget : Budget
        The whole budget.
    limits : Limits
        What decides a grant: limits on sums.
    sums : Sums
        What was spent, on the whole data and on parts.
    """

    budget: Budget
    limits: Limits
    sums: Sums

    @property
    def spent(self) -> Spent:
        """What was spent on the person of whom most is known."""
        return self.sums.worst

    @property
    def used(self) -> Decimal:
        """Share of the budget that is gone, in [0, 1]: the largest share of a limit."""
        spent = self.spent
        shares = [
            Decimal(getattr(spent, name)) / limit
            for name in Limits.__slots__
            if (limit := getattr(self.limits, name))
        ]
        return min(Decimal(1), max(shares, default=Decimal(1)))

    @property
    def left(self) -> dict[str, Decimal | int]:
        """What is left of each limit, for a request on all of the data."""
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
        }


@dataclass(frozen=True, slots=True)
class Totals:
    """All budgets of one data set.

    Attributes
    ----------
    dataset : str
        Its name.
    composition : {"basic", "tight", "equal"}
        Which sums decide.
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
