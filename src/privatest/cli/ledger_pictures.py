"""Pictures of a ledger: a budget over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privatest.cli.files import check_picture, save_picture

if TYPE_CHECKING:
    from privatest.ledger import Ledger

__all__ = ["BudgetPicture", "draw_budget"]

BudgetPicture = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw what was spent over time, of all entries: .png, .svg or .pdf.",
    ),
]
_ALL = 1_000_000  # entries; more than anybody asks of one data set


def draw_budget(book: Ledger, name: str, plot: Path | None) -> None:
    """Draw a data set's budget over time, if a file was named."""
    if plot is None:
        return
    check_picture(plot)
    from privatest.display.plots import plot_budget  # noqa: PLC0415

    limit = float(book.totals(name).account.budget.epsilon)
    drawn = plot_budget(book.history(name, last=_ALL), limit)
    save_picture(drawn.figure, plot, dpi=150)  # type: ignore[arg-type]
