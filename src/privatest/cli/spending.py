"""Which budget a command spends, how it is recorded before data is touched, and the receipt."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest.cli.output import Page, paid, print_error, print_note
from privatest.core.documents import default_ledger
from privatest.core.errors import (
    BudgetError,
    DataError,
    LedgerError,
    ParameterError,
)
from privatest.core.privacy import Budget
from privatest.core.spending import Charge, spent_note

if TYPE_CHECKING:
    from privatest.data.reading import Place
    from privatest.ledger import Account, Ledger
    from privatest.ledger.spending import LedgerPayer

_PANEL = "Budget"

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
    with ExitStack() as stack:
        payers: list[LedgerPayer] = []
        if purse.without:
            if purse.ledger is not None or purse.dataset is not None:
                raise ParameterError("--no-ledger does not go with --ledger or --dataset.")
        else:
            from privatest.accounting import event_of  # noqa: PLC0415
            from privatest.ledger.spending import LedgerPayer  # noqa: PLC0415

            names = purse.datasets_of(files)
            ledger = stack.enter_context(open_ledger(purse.ledger, name=names[0], cost=budget))
            _require(ledger, names, budget, purse.ledger)
            event = event_of(budget, gaussian=gaussian)
            payers = [LedgerPayer(ledger, name, event) for name in names]
        charge = stack.enter_context(Charge(payers, lambda: (budget, asked or {})))
        if rehearsal is not None and charge.affordable():  # else pay says what is missing
            rehearsal()
        _pay(charge, payers, budget)
        with _noting(budget, recorded=bool(payers)):
            yield lambda released: _commit(charge, budget, released)


def _pay(charge: Charge, payers: Sequence[LedgerPayer], budget: Budget) -> None:
    """Reserve, or say what is missing and how a custodian would give it."""
    try:
        charge.pay()
    except BudgetError as error:
        payer = next((payer for payer in payers if not payer.affords(budget)), None)
        if "delta" in error.missing and payer is not None:
            # more epsilon is not to be had by copying a line
            enough = payer.ledger.totals(payer.dataset).account.spent.delta + budget.delta
            delta = f"{enough.normalize()}".lower()
            words = ["privatest", "ledger", "set", payer.dataset, "--delta", delta]
            error.add_note(f"To give it the delta that is missing: {shlex.join(words)}")
        raise


@contextmanager
def _noting(budget: Budget, *, recorded: bool) -> Iterator[None]:
    """Add to every error of a block what it has cost, and why that stays spent."""
    try:
        yield
    except BaseException as error:
        note = spent_note(budget, recorded=recorded)
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


def _commit(charge: Charge, budget: Budget, released: Any) -> Receipt:
    """Record an answer. It is paid for: where it cannot be recorded it is printed all the same."""
    problem = ""
    lines: list[ReceiptLine] = []
    try:
        try:
            charge.commit(released)
        finally:
            for hold in charge.committed:
                entry, ledger = hold.reservation, hold.ledger
                account = ledger.totals(entry.dataset).account
                lines.append(ReceiptLine(entry.dataset, entry.id, account))
    except LedgerError as error:
        problem = f"The answer could not be recorded: {error}"
    return Receipt(budget, tuple(lines), problem)


_UNRECORDED = (
    "No ledger: this was recorded nowhere, and nothing stops the same budget from being spent "
    "again."
)


@dataclass(frozen=True, slots=True)
class ReceiptLine:
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
    lines : tuple of ReceiptLine
        The data sets that were charged; none without a ledger.
    problem : str
        Why the answer could not be recorded, or nothing.
    """

    cost: Budget
    lines: tuple[ReceiptLine, ...] = ()
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
