"""``privatest curator revoke`` and ``renew``: who may ask, and when a period begins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privatest.cli import options
from privatest.cli.ledger_copies import Reason
from privatest.cli.output import Page, print_json

__all__ = ["ConfigFile", "renew", "revoke"]

ConfigFile = Annotated[
    Path,
    typer.Option("--config", metavar="FILE", help="The curator's file."),
]
_DEFAULT = Path("curator.toml")


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Analyst.", show_default=False)],
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Let the analyst ask again.")] = False,
    reason: Reason = "",
    config: ConfigFile = _DEFAULT,
    as_json: options.Json = False,
) -> None:
    """Let an analyst ask nothing more, from now on.

    They cannot see recorded answers either. What was spent stays spent, and all
    entries stay. It is recorded, and holds until you say --undo, whatever the
    curator's file says.

    \b
    Example:
      privatest curator revoke ada --reason "left the team"
    """
    from privatest.curator import Curator  # noqa: PLC0415

    with Curator.open(config) as opened:
        changed = opened.revoke(name, undo=undo, reason=reason)
    if as_json:
        print_json({"analyst": name, "revoked": not undo, "changed": changed})
        return
    how = "may ask again" if undo else "may not ask any more"
    where = ", ".join(changed) if changed else "nothing changed"
    Page().line(f"{name} {how}: {where}.")


def renew(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Data sets.", show_default="all that declare a period"),
    ] = None,
    *,
    config: ConfigFile = _DEFAULT,
    as_json: options.Json = False,
) -> None:
    """Give data sets their budgets anew, once in each period that the file declares.

    Run it as often as you like: it does nothing until the next period. What was
    spent before stays on record. People are protected by one budget in each period,
    and after k periods by k of them together: k times epsilon and delta.

    \b
    Example:
      privatest curator renew
    """
    from privatest.curator import Curator  # noqa: PLC0415

    with Curator.open(config) as opened:
        datasets = opened.config.datasets
        wanted = names or [each for each in datasets if datasets[each].renew is not None]
        done = {each: opened.renew(each) for each in wanted}
    if as_json:
        print_json({"renewed": done})
        return
    page = Page()
    for each, renewed in done.items():
        words = "a new period, with its whole budget" if renewed else "not before the next period"
        page.line(f"{each}: {words}.")
    if not done:
        page.line('No data set declares a period: write renew = "yearly" into its table.')
