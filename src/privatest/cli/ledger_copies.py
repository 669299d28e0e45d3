"""``privatest ledger backup``, ``restore`` and ``head``: copies of the record, and its hashes."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from privatest.cli import options
from privatest.cli.output import Page, print_json
from privatest.cli.spending import LedgerOption, existing_ledger
from privatest.core.documents import default_ledger
from privatest.core.errors import ParameterError

__all__ = ["KeyFile", "backup", "head", "restore", "user"]

KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="Key that signs lines of heads; head makes it if there is none.",
        dir_okay=False,
        show_default=False,
    ),
]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why, for the record.", show_default=False)
]


def user() -> str:
    """Return who types, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="New file to write.", show_default=False)
    ],
    *,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Copy the whole ledger to a new file, and verify the copy.

    It may be in use meanwhile. Copying the file with cp can forget the newest
    entries, which are in a log beside it. The copy holds answers and is readable
    by its owner only. Of a ledger in PostgreSQL it is an SQLite file too.

    \b
    Example:
      privatest ledger backup ledger-copy.db
    """
    with existing_ledger(ledger) as book:
        found = book.backup(file)
    entries = sum(end.sequence for end in found.values())
    if as_json:
        rows = {name: {"sequence": h.sequence, "hash": h.hash} for name, h in found.items()}
        print_json({"file": str(file), "entries": entries, "heads": rows})
    else:
        Page().line(f"{entries:,} entries copied to {file} and verified; readable by you only.")


def restore(
    file: Annotated[
        Path, typer.Argument(metavar="BACKUP", help="What backup wrote.", show_default=False)
    ],
    *,
    back_in_time: Annotated[
        bool,
        typer.Option(
            "--back-in-time", help="Restore a backup that lacks entries, and record that."
        ),
    ] = False,
    reason: Reason = "",
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Put a backup in the place of the ledger.

    A backup that lacks entries is refused, unless you say --back-in-time. Then
    entries and answers are lost, what they cost stays spent, and each chain says so.
    The ledger that is replaced is kept beside it.

    \b
    Example:
      privatest ledger restore ledger-copy.db --back-in-time --reason "disk failure"
    """
    from privatest.ledger import restore as restored  # noqa: PLC0415

    place = ledger or default_ledger()
    done = restored(file, place, back_in_time=back_in_time, reason=reason, by=user())
    if as_json:
        heads = {n: {"sequence": h.sequence, "hash": h.hash} for n, h in done.heads.items()}
        lost = {name: each.to_dict() for name, each in done.lost.items()}
        kept = None if done.kept is None else str(done.kept)
        print_json({"heads": heads, "lost": lost, "unknown": done.unknown, "kept": kept})
        return
    page = Page()
    page.line(f"Restored {len(done.heads):,} data sets from {file}.", style="bold")
    for name, each in {} if done.unknown else done.lost.items():
        page.line(
            f"  {name}: {each.entries:,} entries are lost. What they cost stays spent: "
            f"epsilon {each.spent.epsilon:f}, delta {each.spent.delta:f}."
        )
    if done.unknown:
        page.line("What was spent after the backup is not known: lower the budgets by that much.")
    if done.kept is not None:
        page.line(f"The ledger that was replaced is {done.kept}.")
    if done.lost:
        page.line("Heads that were kept do not fit any more: begin a new file of them.")


def head(
    *,
    append: Annotated[
        Path | None,
        typer.Option(
            "--append",
            metavar="FILE",
            help="Add a line to this file, after comparing with those in it.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    key: KeyFile = None,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Print where every chain ends, or add that to a file elsewhere.

    The ledger is verified first, and must contain all that the file says. Keep the
    file, or the key that signs its lines, where nobody who writes to the ledger can
    write. `privatest ledger verify --heads FILE` compares.

    \b
    Example:
      privatest ledger head --append heads.log --key heads.key
    """
    from privatest.ledger.verify import add_heads, key_from, read_heads  # noqa: PLC0415

    if key is not None and append is None:
        raise ParameterError("--key goes with --append FILE.")
    secret = None if key is None else key_from(key, create=append is None or not append.exists())
    with existing_ledger(ledger) as book:
        known = read_heads(append, secret) if append is not None and append.exists() else {}
        found = book.verify(known)
        if append is not None:
            add_heads(append, found, secret)
    if as_json:
        rows = {name: {"sequence": h.sequence, "hash": h.hash} for name, h in found.items()}
        print_json({"heads": rows, "file": None if append is None else str(append)})
        return
    page = Page()
    for name, end in found.items():
        page.line(f"{name}: {end.sequence:,} entries, last hash {end.hash}")
