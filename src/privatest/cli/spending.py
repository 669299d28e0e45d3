"""Which budget a command spends, and how it is recorded before data is touched."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest.cli.output import Page, print_note
from privatest.errors import ParameterError, PrivatestError
from privatest.privacy import Budget

if TYPE_CHECKING:
    from privatest.ledger import Ledger, Reservation

__all__ = [
    "DatasetOption",
    "LedgerOption",
    "NoLedger",
    "Purse",
    "default_ledger",
    "open_ledger",
    "print_spent",
    "spending",
]

_PANEL = "Budget"
_UNRECORDED = (
    "No ledger: this was recorded nowhere, and nothing stops the same budget from being spent "
    "again."
)

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

    def datasets_of(self, files: Sequence[Path]) -> list[str]:
        """Return the names under which the ledger knows these files."""
        if self.dataset is not None:
            return [self.dataset]
        names = (file.name.partition(".")[0] or file.name for file in files)
        return list(dict.fromkeys(names))


def default_ledger() -> str:
    """Return where the ledger is if nobody says: PRIVATEST_LEDGER, or the state folder."""
    given = os.environ.get("PRIVATEST_LEDGER")
    if given:
        return given
    home = Path.home()
    if sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    return str(folder / "privatest" / "ledger.db")


def open_ledger(location: str | None, *, create: bool = False) -> Ledger:
    """Open the ledger that was named, or the usual one."""
    from privatest.ledger import Ledger  # noqa: PLC0415

    place = location or default_ledger()
    if "://" not in place:
        path = Path(place)
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            raise ParameterError(
                "there is no ledger yet. Run `privatest ledger init NAME --epsilon 3` to give a "
                "data set its budget, or pass --no-ledger to keep count yourself."
            )
    return Ledger.open(place, create=create)


@contextmanager
def spending(
    purse: Purse, budget: Budget, files: Sequence[Path], *, gaussian: bool = False
) -> Iterator[Callable[[Any], str]]:
    """Reserve the budget, and give a function that records what is released.

    That function returns a sentence on what is left. What was reserved stays spent, whatever
    happens in the block.
    """
    if purse.without:
        if purse.ledger is not None or purse.dataset is not None:
            raise ParameterError("--no-ledger does not go with --ledger or --dataset.")
        yield lambda _: _UNRECORDED
        return
    from privatest.accounting import event_of  # noqa: PLC0415

    names = purse.datasets_of(files)
    with open_ledger(purse.ledger) as ledger:
        _require(ledger, names)
        event = event_of(budget, gaussian=gaussian)
        # two files: spend nothing on the first where the second cannot afford it
        names.sort(key=lambda name: ledger.affords(name, event, budget=budget))
        reservations = [ledger.reserve(name, event, budget=budget) for name in names]
        try:
            yield lambda released: _commit(ledger, reservations, released)
        except BaseException as error:
            _fail(ledger, reservations, error)
            raise


def _require(ledger: Ledger, names: Sequence[str]) -> None:
    known = ledger.datasets()
    for name in names:
        if name not in known:
            raise ParameterError(
                f"data set {name!r} is not in the ledger. Run `privatest ledger init {name} "
                "--epsilon 3` to give it a budget, pass --dataset NAME, or --no-ledger."
            )


def print_spent(sentence: str, purse: Purse, *, as_json: bool) -> None:
    """Tell people what is left; a JSON document stands alone, but for a missing ledger."""
    if purse.without:
        print_note(sentence)
    elif not as_json:
        Page().line(sentence)


def _commit(ledger: Ledger, reservations: Sequence[Reservation], released: Any) -> str:
    shares = []
    for reservation in reservations:
        ledger.commit(reservation, released=released)
        used = float(ledger.totals(reservation.dataset).account.used)
        shares.append(f"{100 * used:.3g}% of the budget of {reservation.dataset}")
    return f"Ledger: {' and '.join(shares)} spent."


def _fail(ledger: Ledger, reservations: Sequence[Reservation], error: BaseException) -> None:
    """Record the failure; the error of the command itself is the one to be seen."""
    with suppress(PrivatestError):
        for reservation in reservations:
            ledger.fail(reservation, reason=type(error).__name__)
