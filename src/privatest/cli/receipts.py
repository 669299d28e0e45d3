"""What a paid answer cost, and what is left: said to people, and to programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privatest.cli.output import Page, print_note
from privatest.cli.terminal import flush
from privatest.core.errors import LedgerError, PrivatestError
from privatest.core.privacy import Budget

if TYPE_CHECKING:
    from privatest.ledger import Account

__all__ = ["Line", "Receipt"]

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
        try:
            yield
            self._print(as_json=as_json)
            flush()
        except BrokenPipeError:
            raise  # whoever read this has seen enough
        except OSError as error:
            reason = f"The answer could not be printed: {error.strerror}."
            raise PrivatestError(f"{reason} {self.again}") from None
        except Exception as error:
            error.add_note(self.again)
            raise
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
