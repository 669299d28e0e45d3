"""Which budget a command spends, how it is recorded before data is touched, and the receipt."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest.cli.output import Page, paid, print_error, print_note
from privatest.core.errors import (
    BudgetError,
    DataError,
    LedgerError,
    ParameterError,
    PrivatestError,
)
from privatest.core.folders import default_ledger
from privatest.core.privacy import Budget

if TYPE_CHECKING:
    from privatest.accounting import Event
    from privatest.data.place import Place
    from privatest.ledger import Account, Ledger, Reservation

__all__ = [
    "DatasetOption",
    "LedgerOption",
    "Line",
    "NoLedger",
    "Purse",
    "Receipt",
    "default_ledger",
    "existing_ledger",
    "open_ledger",
    "spending",
]

_PANEL = "Budget"
_WHY = "whether this fails may depend on people's values, so the failure tells of them"

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="Ledger that keeps the budget: a file, or postgresql://user@host/database.",
        rich_help_panel=_PANEL,
        show_default="PRIVATEST_LEDGER, else one in the user's state folder",
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="Name of the data in the ledger.",
        rich_help_panel=_PANEL,
        show_default="the file's name without its ending",
    ),
]
NoLedger = Annotated[
    bool,
    typer.Option(
        "--no-ledger",
        help="Record nothing: you keep count of what was spent.",
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True, slots=True)
class Purse:
    """Where a command's budget comes from, as it was given on the command line."""

    ledger: str | None
    dataset: str | None
    without: bool

    def datasets_of(self, files: Sequence[Place]) -> list[str]:
        """Return the names under which the ledger knows these files."""
        if self.dataset is not None:
            return [self.dataset]
        names = list(dict.fromkeys(file.name.partition(".")[0] or file.name for file in files))
        if not all(names):
            raise ParameterError("--dataset must be given: the name of the data in the ledger.")
        return names


def open_ledger(
    location: str | None,
    *,
    create: bool = False,
    name: str = "NAME",
    cost: Budget | None = None,
) -> Ledger:
    """Open the ledger at a location, or the usual one; data set ``name`` is to spend ``cost``."""
    from privatest.ledger import Ledger  # noqa: PLC0415

    place = location or default_ledger()
    if "://" not in place:
        path = Path(place)
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            raise ParameterError(
                f"there is no ledger at {place!r}. If there was one, restore it: a new one forgets "
                f"what was spent. Otherwise run `{_init(name, cost, location)}` to give the data "
                "set its budget, or pass --no-ledger to keep count yourself."
            )
    return Ledger.open(place, create=create)


def existing_ledger(location: str | None) -> Ledger:
    """Open a ledger to look at it; a missing one is named, and nothing else is suggested."""
    place = location or default_ledger()
    if "://" not in place and not Path(place).exists():
        raise ParameterError(
            f"there is no ledger at {place!r}. `privatest ledger init NAME --epsilon 3` makes one "
            "there; --ledger FILE names another."
        )
    return open_ledger(location)


@contextmanager
def spending(
    purse: Purse,
    budget: Budget,
    files: Sequence[Place],
    *,
    gaussian: bool = False,
    rehearsal: Callable[[], object] | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Iterator[Callable[[Any], Receipt]]:
    """Reserve the budget, and give a function that records what is released.

    That function returns what the ledger says then. What was reserved stays spent, whatever
    happens in the block; an error that leaves it says so. ``rehearsal`` is called before, once
    the budget is known to be large enough: what it raises costs nothing. ``asked`` is the
    request in public words, for the history.
    """
    rehearse = rehearsal or (lambda: None)
    if purse.without:
        if purse.ledger is not None or purse.dataset is not None:
            raise ParameterError("--no-ledger does not go with --ledger or --dataset.")
        rehearse()
        with _telling(budget, recorded=False):
            yield lambda _: Receipt(budget)
        return
    from privatest.accounting import event_of  # noqa: PLC0415

    names = purse.datasets_of(files)
    with open_ledger(purse.ledger, name=names[0], cost=budget) as ledger:
        _require(ledger, names, budget, purse.ledger)
        event = event_of(budget, gaussian=gaussian)
        # two files: spend nothing on the first where the second cannot afford it
        names.sort(key=lambda name: ledger.affords(name, event, budget=budget))
        if ledger.affords(names[0], event, budget=budget):  # else reserve says what is missing
            rehearse()
        reservations = [_reserved(ledger, name, event, budget, asked) for name in names]
        try:
            with _telling(budget):
                yield lambda released: _commit(ledger, reservations, budget, released)
        except BaseException as error:
            _fail(ledger, reservations, error)
            raise


def _reserved(
    ledger: Ledger, name: str, event: Event, budget: Budget, asked: Mapping[str, Any] | None
) -> Reservation:
    """Reserve, or say what is missing and how a custodian would give it."""
    try:
        return ledger.reserve(name, event, budget=budget, asked=asked)
    except BudgetError as error:
        if "delta" in error.missing:  # more epsilon is not to be had by copying a line
            enough = ledger.totals(name).account.spent.delta + budget.delta
            words = ["privatest", "ledger", "set", name, "--delta", f"{enough.normalize()}".lower()]
            error.add_note(f"To give it the delta that is missing: {shlex.join(words)}")
        raise


@contextmanager
def _telling(budget: Budget, *, recorded: bool = True) -> Iterator[None]:
    """Add to every error of a block that it has cost something, and why that stays so."""
    try:
        yield
    except BaseException as error:
        words = f"epsilon {budget.epsilon.normalize():f}"
        if budget.delta:
            words += f", delta {float(budget.delta):g}"
        said = f"{words.capitalize()} was spent, and" if recorded else f"Count {words} as spent; it"
        note = f"{said} cannot be refunded: {_WHY}."
        if isinstance(error, DataError):
            note += " To find such values beforehand, at no cost: privatest check --help"
        if isinstance(error, KeyboardInterrupt):  # Typer makes it an exit code
            print_error("interrupted.", note)
        error.add_note(note)
        raise


def _require(ledger: Ledger, names: Sequence[str], budget: Budget, location: str | None) -> None:
    known = ledger.datasets()
    for name in names:
        if name not in known:
            raise ParameterError(
                f"data set {name!r} is not in the ledger. Run `{_init(name, budget, location)}` to "
                "give it a budget, pass --dataset NAME, or --no-ledger."
            )


def _init(name: str, cost: Budget | None, ledger: str | None) -> str:
    """Return the command that enters a data set, with a budget that the request fits in."""
    epsilon = Decimal(3) if cost is None else max(Decimal(3), cost.epsilon)
    words = ["privatest", "ledger", "init", name, "--epsilon", f"{epsilon.normalize():f}"]
    if cost is not None and cost.delta:
        words += ["--delta", f"{float(min(10 * cost.delta, Decimal('0.1'))):g}"]
    if ledger is not None and "://" not in ledger:  # an address may hold a password
        words += ["--ledger", ledger]
    return shlex.join(words)


def _commit(
    ledger: Ledger, reservations: Sequence[Reservation], budget: Budget, released: Any
) -> Receipt:
    """Record an answer. It is paid for: where it cannot be recorded it is printed all the same."""
    lines = []
    try:
        for reservation in reservations:
            ledger.commit(reservation, released=released)
            account = ledger.totals(reservation.dataset).account
            lines.append(Line(reservation.dataset, reservation.id, account))
    except LedgerError as error:
        return Receipt(budget, tuple(lines), f"The answer could not be recorded: {error}")
    return Receipt(budget, tuple(lines))


def _fail(ledger: Ledger, reservations: Sequence[Reservation], error: BaseException) -> None:
    """Record the failure; the error of the command itself is the one to be seen."""
    with suppress(PrivatestError):
        for reservation in reservations:
            ledger.fail(reservation, reason=type(error).__name__)


_UNRECORDED = (
    "No ledger: this was recorded nowhere, and nothing stops the same budget from being spent "
    "again."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One data set that was charged.

    Attributes
    ----------
    dataset : str
        Its name in the ledger.
    entry : str
        The id of the entry, by which the answer is found again.
    account : Account
        Its budget and what is spent of it, with this answer.
    """

    dataset: str
    entry: str
    account: Account

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, decimals as strings."""
        account = self.account
        left = {
            name: limit - min(limit, getattr(account.spent, name))
            for name in type(account.limits).__slots__
            if (limit := getattr(account.limits, name)) is not None
        }
        return {
            "dataset": self.dataset,
            "entry": self.entry,
            "budget": {name: _text(getattr(account.budget, name)) for name in ("epsilon", "delta")},
            "spent": account.spent.to_dict(),
            "left": {name: _text(value) for name, value in left.items()},
            "used": float(account.used),
        }


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an answer cost.

    Attributes
    ----------
    cost : Budget
        What was paid.
    lines : tuple of Line
        The data sets that were charged; none without a ledger.
    problem : str
        Why the answer could not be recorded, or nothing.
    """

    cost: Budget
    lines: tuple[Line, ...] = ()
    problem: str = ""

    def to_list(self) -> list[dict[str, Any]]:
        """Return the lines as plain values, for JSON documents."""
        return [line.to_dict() for line in self.lines]

    @contextmanager
    def shown(self, *, as_json: bool) -> Iterator[None]:
        """Print an answer in the block, then what it cost.

        A failure says how the answer is seen again: it has been paid for.
        """
        with paid(self.again):
            yield
            self._print(as_json=as_json)
        if self.problem:
            raise LedgerError(f"{self.problem} {str(self.cost).capitalize()} was spent.")

    @property
    def again(self) -> str:
        """How the answer is seen again."""
        if not self.lines:
            return f"It was recorded nowhere; count {self.cost} as spent."
        entry = self.lines[0].entry
        return f"It is recorded, and costs nothing more: privatest ledger answer {entry}"

    def _print(self, *, as_json: bool) -> None:
        if self.lines and not as_json:
            shares = [
                f"{100 * float(line.account.used):.3g}% of the budget of {line.dataset}"
                for line in self.lines
            ]
            Page().line(f"Ledger: {' and '.join(shares)} spent.")
        elif not self.lines and not self.problem:
            print_note(_UNRECORDED)


def _text(value: Any) -> Any:
    return value if isinstance(value, int) else f"{value:f}"
