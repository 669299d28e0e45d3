"""``privatest ledger``: budgets of data sets, and the record of what was spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest.cli import options
from privatest.cli.output import Page
from privatest.cli.spending import LedgerOption, open_ledger
from privatest.privacy import Budget

if TYPE_CHECKING:
    from privatest.ledger import Account

__all__ = ["app", "bar"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

_BAR = 24  # characters

Name = Annotated[str, typer.Argument(metavar="NAME", help="Data set.", show_default=False)]
OptionalName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Data set; all by default.", show_default=False)
]
CompositionOption = Annotated[
    Literal["basic", "tight"],
    typer.Option(
        "--composition",
        metavar="HOW",
        help="basic (epsilons and deltas add up), or tight (zCDP: more small requests; needs "
        "--delta).",
    ),
]


@app.callback()
def ledger() -> None:
    """Keep budgets, and the record of what was spent.

    \b
    Example:
      privatest ledger init visits --epsilon 3
    """


@app.command()
def init(
    name: Name,
    *,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    composition: CompositionOption = "basic",
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Give a data set its budget; make the ledger if there is none.

    From then on every command that touches the data spends from this budget, and is
    refused once it is used up. Asking again with the same budget changes nothing.

    \b
    Example:
      privatest ledger init visits --epsilon 3
    """
    budget = Budget(epsilon, delta)
    with open_ledger(ledger, create=True) as book:
        book.create_dataset(name, budget, composition=composition, exist_ok=True)
        totals = book.totals(name)
    if as_json:
        print(json.dumps(totals.to_dict(), indent=2))
    else:
        Page().line(f"{name} may be asked for {budget} in all.")


@app.command()
def show(
    name: OptionalName = None, *, ledger: LedgerOption = None, as_json: options.Json = False
) -> None:
    """Show what is spent of each budget.

    \b
    Example:
      privatest ledger show
    """
    with open_ledger(ledger) as book:
        names = book.datasets() if name is None else [name]
        found = [book.totals(each) for each in names]
    if as_json:
        print(json.dumps([totals.to_dict() for totals in found], indent=2))
        return
    page = Page()
    if not found:
        page.line("The ledger has no data set yet: privatest ledger init NAME --epsilon 3")
    for totals in found:
        page.line(bar(totals.dataset, totals.account), style="bold")
        for analyst, account in sorted(totals.analysts.items()):
            page.line(bar(f"  {analyst}", account))


@app.command()
def history(
    name: Name,
    *,
    last: Annotated[int, typer.Option("--last", metavar="COUNT", min=1, help="Entries.")] = 50,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """List what happened to a data set, the newest first.

    \b
    Example:
      privatest ledger history visits
    """
    with open_ledger(ledger) as book:
        entries = book.history(name, last=last)
    if as_json:
        rows = [
            {"sequence": e.sequence, "time": e.time, "kind": e.kind, "hash": e.hash}
            | {"body": e.body}
            for e in entries
        ]
        print(json.dumps(rows, indent=2, default=str))
        return
    page = Page()
    page.line(f"{'no.':>5}  {'time (UTC)':<20} {'what':<10} details", style="bold")
    for entry in entries:
        when = entry.time.replace("T", " ")[:19]
        page.line(f"{entry.sequence:>5}  {when:<20} {entry.kind:<10} {_details(entry.body)}")


@app.command()
def verify(*, ledger: LedgerOption = None, as_json: options.Json = False) -> None:
    """Check that nothing in the ledger was changed afterwards.

    Every entry is chained to the one before it. Keep what is printed elsewhere: a
    ledger that was replaced as a whole has other last hashes.

    \b
    Example:
      privatest ledger verify
    """
    with open_ledger(ledger) as book:
        heads = book.verify()
    if as_json:
        rows = {name: {"sequence": h.sequence, "hash": h.hash} for name, h in heads.items()}
        print(json.dumps({"verified": True, "heads": rows}, indent=2))
        return
    page = Page()
    page.line("The ledger is as it was written.", style="bold")
    for name, head in heads.items():
        page.line(f"  {name}: {head.sequence:,} entries, last hash {head.hash[:16]}")


@app.command()
def export(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to write.", show_default=False)
    ],
    *,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Write all entries as lines of JSON.

    \b
    Example:
      privatest ledger export ledger.jsonl
    """
    with open_ledger(ledger) as book:
        count = book.export(file)
    if as_json:
        print(json.dumps({"file": str(file), "entries": count}))
    else:
        Page().line(f"{count:,} entries written to {file}.")


def bar(label: str, account: Account) -> str:
    """Draw how much of a budget is spent."""
    used = float(account.used)
    filled = round(used * _BAR)
    spent = account.spent
    cost = f"epsilon {float(spent.epsilon):g} of {float(account.budget.epsilon):g}"
    if account.budget.delta:
        cost += f", delta {float(spent.delta):g} of {float(account.budget.delta):g}"
    return f"{label:<20} {'█' * filled}{'░' * (_BAR - filled)} {100 * used:5.1f}%  {cost}"


def _details(body: Any) -> str:
    """Return the part of an entry that a reader looks for."""
    shown = {key: body[key] for key in ("analyst", "epsilon", "delta", "reason") if body.get(key)}
    return ", ".join(f"{key} {value}" for key, value in shown.items())
