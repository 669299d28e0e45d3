"""The state of a data set's budgets, and how each entry of its chain changes it.

There is one such function, ``State.apply``. Writing an entry is to apply it and to store both;
verifying a ledger is a fold of the same function over all entries (verify.py).

Grants are decided by running sums alone. These are exact, and valid for requests chosen after
reading earlier answers (docs/accounting.md). A request takes the same time whether it is the
first or the millionth.

Every entry holds a digest of itself and of all entries before it. Changing, dropping or inserting
an entry changes every digest after it. Rewriting the whole chain changes its head, so a custodian
keeps a head elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, Self, TypeVar, get_args

from privatest.accounting import (
    UP,
    Event,
    covers,
    event_from_dict,
    event_to_dict,
    largest_rho,
    most_repeats,
    zcdp_price,
)
from privatest.core import documents
from privatest.core.errors import BudgetError, LedgerError, ParameterError
from privatest.core.privacy import Budget

Composition = Literal["basic", "tight", "equal"]
"""Which sums grant: epsilons and deltas; rhos and deltas (zCDP); the count of equal requests."""

COMPOSITIONS: tuple[str, ...] = get_args(Composition)
GENESIS = "0" * 64
"""The digest before the first entry."""

DAMAGED = "The ledger was changed or damaged: {what} cannot be read. Nothing was granted."
"""The message for any stored value that is invalid."""

# What reading an invalid value can raise; RecursionError comes from deeply nested JSON.
INVALID = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

T = TypeVar("T")
_ZERO = Decimal(0)
_WIDEST = 100  # largest decimal exponent of a sum; budgets have 9 and 18
# Names of the sums in a refusal.
_SUMS: Mapping[str, str] = {
    "epsilon": "epsilon",
    "delta": "delta",
    "rho": "rho of zCDP",
    "rho_delta": "delta, of which half is for requests",
    "events": "requests",
}


# --- stored text ----------------------------------------------------------------------------------


def canonical(value: object, name: str = "released") -> str:
    """Write a value as canonical JSON, for hashing; ``name`` is for the error."""
    try:
        return documents.canonical(value)
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(
            f"{name} must be JSON: finite numbers, strings, lists and mappings."
        ) from None


def digest(previous: str, body: str) -> str:
    """Return the digest of an entry, given the digest of the one before it."""
    return documents.digest(f"{previous}\n{body}")


def parsed(reader: Callable[[Any], T], text: str) -> T:
    """Read a stored value; an unreadable one is an error, so that nothing is granted by it."""
    try:
        return reader(json.loads(text))
    except INVALID:
        raise LedgerError(DAMAGED.format(what="a budget or a sum")) from None


def read_body(body: str) -> Mapping[str, Any]:
    """Read the recorded body of an entry."""
    try:
        value = json.loads(body)
    except (RecursionError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise LedgerError(DAMAGED.format(what="an entry"))
    return value


# --- sums and limits ------------------------------------------------------------------------------


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
        within = [value <= limit for limit, value in limits if limit is not None]
        return bool(within) and all(within)

    def to_dict(self) -> dict[str, Any]:
        """Write as plain strings, omitting sums without a limit."""
        limits = {name: getattr(self, name) for name in self.__slots__}
        return {
            name: value if isinstance(value, int) else f"{value:f}"
            for name, value in limits.items()
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


def limits_for(budget: Budget, settings: Mapping[str, Any]) -> Limits:
    """Return limits that keep a total budget, however adaptively requests are chosen."""
    if settings["composition"] == "basic":
        return Limits(epsilon=budget.epsilon, delta=budget.delta)
    if settings["composition"] == "tight":
        if budget.delta == 0:
            raise ParameterError(
                "delta of the budget must be above 0 for the composition 'tight'; "
                "without delta, 'basic' is exact."
            )
        # half of delta converts rho to epsilon, half is for the deltas of the requests
        return Limits(rho=largest_rho(budget), rho_delta=budget.delta / 2)
    each = replace(event_from_dict(settings["each"]), part=None)
    if not (repeats := most_repeats(each, budget)):
        raise ParameterError("each must fit into the budget at least once.")
    return Limits(events=repeats)


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

    def on(self, part: str | None) -> Spent:
        """Return what was spent on the people of a part."""
        return self.whole + dict(self.parts).get(part or "", Spent())

    def left(self, limits: Limits, part: str | None = None) -> dict[str, Decimal | int]:
        """Return what is left of each limit, for a request on a part or on the whole data set."""
        spent = self.worst if part is None else self.on(part)
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

    def exceeding(self, other: Sums) -> Spent:
        """Return what has to be added to all of ``other`` so that nobody has less than here."""
        parts = [part for part, _ in (*self.parts, *other.parts)] + [""]
        pairs = [(self.on(part), other.on(part)) for part in parts]

        def largest(name: str) -> Any:
            differences = [getattr(here, name) - getattr(there, name) for here, there in pairs]
            return max(*differences, type(differences[0])(0))

        return Spent(*map(largest, Spent.__slots__))

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


# --- accounts -------------------------------------------------------------------------------------


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
    sums: Sums = Sums()

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

    def affords(self, part: str | None, spent: Spent) -> bool:
        """Return whether the account can be charged with an event's cost."""
        return self.sums.after(part, spent).within(self.limits)

    def charged(self, part: str | None, spent: Spent, owner: str) -> Account:
        """Charge an event, or refuse and say what is missing: sums and limits are public."""
        after = self.sums.after(part, spent)
        if after.within(self.limits):
            return replace(self, sums=after)
        left = self.sums.left(self.limits, part)
        asked = {name: getattr(spent, name) for name in left}
        words = "; ".join(
            f"{_SUMS[name]}: {_plain(asked[name])} asked, {_plain(left[name])} left"
            for name in BudgetError(asked=asked, left=left).missing
        )
        raise BudgetError(
            f"The request costs more than what is left of the budget of {owner} ({words}). "
            "Nothing was spent. Request less, or ask the custodian to raise the budget.",
            asked=asked,
            left=left,
        )

    def carried(self, spent: Spent) -> Account:
        """Add spending that no request of this chain made."""
        return replace(self, sums=self.sums.after(None, spent))

    def require_spent_within(self, limits: Limits, owner: str) -> None:
        """Refuse new limits below what is already spent."""
        if not self.sums.within(limits):
            spent = f"epsilon {_plain(self.spent.epsilon)}, delta {_plain(self.spent.delta)}"
            raise ParameterError(
                f"The budget of {owner} must be at least what is already spent ({spent}). "
                "To stop all further requests, set it to what is spent."
            )

    def fields(self) -> dict[str, Any]:
        """Return budget and limits as an entry records them."""
        return {
            "epsilon": f"{self.budget.epsilon:f}",
            "delta": f"{self.budget.delta:f}",
            "limits": self.limits.to_dict(),
        }

    def columns(self) -> dict[str, str]:
        """Return what the account's row holds."""
        sums = canonical(self.sums.to_dict())
        return self.fields() | {"limits": canonical(self.limits.to_dict()), "sums": sums}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], sums: Sums = Sums()) -> Account:
        """Read budget and limits from an entry."""
        budget = Budget(fields["epsilon"], fields["delta"])
        return cls(budget, Limits.from_dict(fields["limits"]), sums)

    @classmethod
    def from_row(cls, row: Any) -> Account:
        """Read an account's row."""
        budget, limits = _budget_and_limits(row.epsilon, row.delta, row.limits)
        return cls(budget, limits, parsed(Sums.from_dict, row.sums))

    def to_dict(self) -> dict[str, Any]:
        """Write as plain values, decimals as strings."""
        return {
            **self.fields(),
            "spent": self.spent.to_dict(),
            "left": {n: v if isinstance(v, int) else f"{v:f}" for n, v in self.left.items()},
            "parts": {part: spent.to_dict() for part, spent in self.sums.parts},
            "used": float(self.used),
            "closed": self.closed,
        }


@lru_cache(maxsize=1024)
def _budget_and_limits(epsilon: str, delta: str, limits: str) -> tuple[Budget, Limits]:
    """Read what seldom changes; cached, as every request reads it."""
    try:
        budget = Budget(epsilon, delta)
    except ParameterError:
        raise LedgerError(DAMAGED.format(what="a budget")) from None
    return budget, parsed(Limits.from_dict, limits)


def _plain(value: Decimal | int) -> str:
    """Write a value for readers: short if that is exact, else with all of its digits."""
    short = f"{float(value):g}"
    return short if Decimal(short) == value else f"{value}"


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain. Keep it elsewhere, and verify() finds every change up to here."""

    sequence: int
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Write as plain values."""
        return {"sequence": self.sequence, "hash": self.hash}


# --- entries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reservation:
    """Budget that is spent, whatever happens to the request.

    Attributes
    ----------
    id : str
        The argument of commit and fail.
    dataset, analyst : str
        Whose budgets were charged; no analyst means the custodian.
    sequence : int
        Index in the data set's chain.
    """

    id: str
    dataset: str
    analyst: str | None
    sequence: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a data set's chain.

    Attributes
    ----------
    dataset, sequence, kind : str, int, str
        Kinds: created, budget, analyst, reserved, committed, failed, renewed, linked, closed,
        restored.
    time : str
        When, in UTC; never earlier than the previous entry, even if the clock was set back.
    body : mapping
        Everything that was recorded, as hashed.
    hash : str
        Digest of this entry and all before it.
    """

    dataset: str
    sequence: int
    kind: str
    time: str
    body: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that was charged, and how it ended.

    Attributes
    ----------
    id, dataset, analyst : str
        Its id, and whose budgets were charged; no analyst means the custodian.
    sequence, time : int, str
        Index in the chain and time of the reservation.
    state : {"committed", "failed", "open"}
        Whether it was answered, failed, or is still running (or was lost in a crash).
    epsilon, delta : str
        What it cost under plain addition, as exact decimals.
    asked : mapping or None
        The public description of the request; None if it was not recorded.
    released : object
        What was released, as recorded; None if nothing was.
    reason : str
        Why it failed, if that was recorded.
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


# --- the state of a data set ----------------------------------------------------------------------


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


@dataclass(slots=True)
class State:
    """The budgets of a data set after its entries so far.

    Attributes
    ----------
    dataset : str
        Its name.
    settings : mapping
        Composition, partition and schema, which never change.
    account : Account
        The budget of the data set.
    analysts : dict of str to Account
        The budgets of the analysts; while a request is written, only that of its analyst.
    head, time : Head, str
        The end of the chain, and the time of the last entry.
    open : set of str
        Reservations that may be closed.
    period : str
        The day on which the current period began.
    continuations : list of (str, mapping)
        Which data sets continue this one, and its heads before it was closed.
    links : list of (str, mapping, Spent)
        Which data sets this one continues, where they ended, and what was spent there.
    row : int
        The id of the data set's row.
    """

    dataset: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    account: Account = Account(Budget(1), CLOSED)
    analysts: dict[str, Account] = field(default_factory=dict)
    head: Head = Head(0, GENESIS)
    time: str = ""
    open: set[str] = field(default_factory=set)
    period: str = ""
    continuations: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    links: list[tuple[str, Mapping[str, Any], Spent]] = field(default_factory=list)
    row: int = 0

    @property
    def composition(self) -> Composition:
        """Which sums decide a grant."""
        composition: Composition = self.settings["composition"]
        return composition

    @property
    def each(self) -> Event | None:
        """What every request costs, if the composition is "equal"."""
        return event_from_dict(self.settings["each"]) if "each" in self.settings else None

    @property
    def partition(self) -> tuple[str, ...]:
        """The declared public parts."""
        return tuple(self.settings.get("partition", ()))

    @property
    def schema_digest(self) -> str:
        """Digest of the public schema."""
        return str(self.settings["schema"])

    @classmethod
    def from_rows(cls, row: Any, analysts: Mapping[str, Any]) -> Self:
        """Read the rows of a data set and of analysts."""
        return cls(
            row.name,
            parsed(read_settings, row.settings),
            Account.from_row(row),
            {name: Account.from_row(each) for name, each in analysts.items()},
            Head(row.sequence, row.hash),
            row.time,
            row=row.id,
        )

    def advance(self, body: Mapping[str, Any], text: str) -> None:
        """Apply an entry and move to it; ``text`` is its body as hashed."""
        self.apply(body)
        self.head = Head(self.head.sequence + 1, digest(self.head.hash, text))
        self.time = body["time"]

    def apply(self, body: Mapping[str, Any]) -> None:
        """Change budgets and sums by one entry.

        Raises
        ------
        BudgetError
            If it spends more than a budget.
        LedgerError
            If it contradicts the entries before it.
        ParameterError, or another of INVALID
            If it is no entry.
        """
        kind = body["kind"]
        if (kind == "created") != (self.head.sequence == 0):
            raise LedgerError("the data set was not created once, at first")
        if kind == "created":
            self.settings = body["settings"]
            self.account = Account.from_fields(body)
        elif kind in ("budget", "closed"):
            self.account = Account.from_fields(body, self.account.sums)
            if kind == "closed":
                self.continuations.append((body["to"], self.head.to_dict()))
        elif kind == "analyst":
            before = self.analysts.get(body["analyst"])
            sums = Sums() if before is None else before.sums
            self.analysts[body["analyst"]] = Account.from_fields(body, sums)
        elif kind == "reserved":
            self._spend(body)
        elif kind in ("committed", "failed"):
            if body["closes"] not in self.open:
                raise LedgerError("it closes a reservation that is not open")
            self.open.remove(body["closes"])
        elif kind in ("linked", "restored"):
            self._carry(body)
        elif kind == "renewed":
            self._renew(body)
        else:
            raise LedgerError("its kind is not known")
        if kind in ("created", "renewed", "restored"):
            self.period = body["time"][:10]

    def _spend(self, body: Mapping[str, Any]) -> None:
        event, who = event_from_dict(body["event"]), body.get("analyst")
        spent = self.cost(event, Budget(body["epsilon"], body["delta"]))
        name = f"data set {self.dataset!r}"
        self.account = self.account.charged(event.part, spent, name)
        if who is not None:
            own = self.analysts[who].charged(event.part, spent, f"analyst {who!r} on {name}")
            self.analysts[who] = own
        self.open.add(body["opens"])

    def _carry(self, body: Mapping[str, Any]) -> None:
        spent = Spent.from_dict(body["carried"])
        self.account = self.account.carried(spent)
        if body["kind"] == "linked":
            self.links.append((body["of"], body["head"], spent))
        for who, fields in body["analysts"].items():
            own = self.analysts.get(who) or Account.from_fields(fields)
            self.analysts[who] = own.carried(Spent.from_dict(fields["carried"]))

    def _renew(self, body: Mapping[str, Any]) -> None:
        if not self.period < body["since"] <= body["time"][:10]:
            raise LedgerError("its period began before")
        if body["ended"] != self.account.sums.to_dict():
            raise LedgerError("the sums of the period that ends are not those of its entries")
        self.account = replace(self.account, sums=Sums())
        self.analysts = {who: replace(own, sums=Sums()) for who, own in self.analysts.items()}

    def cost(self, event: Event, budget: Budget) -> Spent:
        """Return what an event costs this data set, after checking that it may happen there."""
        if event.part is not None and event.part not in self.partition:
            raise ParameterError(
                "part must be one of the data set's declared public partition; got "
                f"{event.part!r}. Events on other parts are charged to the whole data set."
            )
        each = self.settings.get("each")
        if each is not None and event_to_dict(event) | {"part": ""} != each | {"part": ""}:
            raise ParameterError(f"event must be the one that this data set allows, {self.each}.")
        return Spent.on(event, budget)

    def head_columns(self) -> dict[str, Any]:
        """Return what the data set's row holds beside its account."""
        settings = canonical(self.settings)
        return {"settings": settings, "time": self.time, **self.head.to_dict()}

    def to_dict(self) -> dict[str, Any]:
        """Write as plain values, decimals as strings."""
        return {
            "dataset": self.dataset,
            "composition": self.composition,
            **self.account.to_dict(),
            "analysts": {name: account.to_dict() for name, account in self.analysts.items()},
            "each": self.settings.get("each"),
            "partition": list(self.partition),
            "schema_digest": self.schema_digest,
            "head": self.head.to_dict(),
            "time": self.time,
        }


Totals = State
"""The name of a state for those who only read it."""
