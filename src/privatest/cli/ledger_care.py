"""``privatest ledger verify`` and ``export``: looking after the record."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest.cli import options
from privatest.cli.ledger_copies import KeyFile
from privatest.cli.output import Page, print_json, print_note
from privatest.cli.spending import LedgerOption, existing_ledger
from privatest.core.documents import JSON_FORMAT, write_text
from privatest.core.errors import ParameterError

if TYPE_CHECKING:
    from privatest.ledger import Head

__all__ = ["export", "verify"]

_LOG = (
    "A log lies beside the ledger's file, and entries may be in it alone: a copy of the file made "
    "with cp can lack them. Make copies with privatest ledger backup."
)
_UNCOMPARED = (
    "Not compared with earlier hashes, so a ledger that was replaced by an older copy looks whole. "
    "Keep the hashes elsewhere with --save FILE, and pass --heads FILE next time."
)

KnownHead = Annotated[
    list[str] | None,
    typer.Option(
        "--head",
        metavar="NAME=HASH",
        help="Last hash of a data set that verify printed before; the chain must lead there. "
        "May be repeated.",
        show_default=False,
    ),
]
KnownHeads = Annotated[
    Path | None,
    typer.Option(
        "--heads",
        metavar="FILE",
        help="Hashes that --save or head --append wrote; every chain must lead there.",
        exists=True,
        dir_okay=False,
        show_default=False,
    ),
]
SaveHeads = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="Write the hashes to a file. One that exists is compared first, then replaced.",
        dir_okay=False,
        show_default=False,
    ),
]


def verify(
    *,
    head: KnownHead = None,
    heads: KnownHeads = None,
    save: SaveHeads = None,
    key: KeyFile = None,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Check that nothing in the ledger was changed afterwards.

    Every entry is chained to the one before it, and all sums are computed again.
    Keep the hashes that are printed somewhere else and pass them the next time: a
    ledger that was cut, rewritten or replaced does not lead to them. The exit code
    is 0 only if all is well.

    \b
    Example:
      privatest ledger verify --save heads.json
    """
    known = _known(head or [], [file for file in (heads, save) if file is not None], key)
    with existing_ledger(ledger) as book:
        log = book.unfolded_log()
        found = [book.verify(each) for each in known or [{}]][-1]
    rows = {name: {"sequence": h.sequence, "hash": h.hash} for name, h in found.items()}
    if save is not None:
        _write(save, {"format": JSON_FORMAT, "heads": rows})
    compared = sorted({name for each in known for name in each})
    if as_json:
        print_json({"verified": True, "heads": rows, "compared": compared, "log": log})
        return
    page = Page()
    page.line("The ledger is as it was written.", style="bold")
    for name, end in found.items():
        page.line(f"  {name}: {end.sequence:,} entries, last hash {end.hash}")
    if compared:
        page.line(f"Compared with earlier hashes: {', '.join(compared)}.")
    elif save is None:
        page.line(_UNCOMPARED)
    if log:
        print_note(_LOG)


def export(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="New file to write; - is standard output.", show_default=False
        ),
    ],
    *,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Write all entries as lines of JSON.

    They hold requests and answers, so the file is readable by its owner only.

    \b
    Example:
      privatest ledger export ledger.jsonl
    """
    if file == "-" and as_json:
        raise ParameterError("--json does not go with -: the lines themselves are JSON.")
    with existing_ledger(ledger) as book:
        count = book.export(sys.stdout if file == "-" else file)
    if as_json:
        print_json({"file": file, "entries": count})
    elif file != "-":
        Page().line(f"{count:,} entries written to {file}, readable by you only: it has answers.")


def _known(
    given: Sequence[str], files: Sequence[Path], key: Path | None
) -> list[Mapping[str, Head | str]]:
    """Return all sets of hashes that were kept: the ledger must agree with each of them."""
    sets: list[Mapping[str, Head | str]] = [_read(file, key) for file in files if file.exists()]
    typed: dict[str, Head | str] = {}
    for text in given:
        name, _, digits = text.rpartition("=")
        if not name or not digits:
            raise ParameterError("--head must be NAME=HASH, as verify prints them.")
        typed[name] = digits.strip().lower()
    return [known for i, known in enumerate([*sets, typed]) if known and known not in sets[:i]]


def _read(file: Path, key: Path | None) -> dict[str, Head | str]:
    from privatest.ledger import Head  # noqa: PLC0415
    from privatest.ledger.verify import key_from, read_heads  # noqa: PLC0415

    if key is not None or _has_lines(file):
        return {**read_heads(file, None if key is None else key_from(key))}
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
        found: dict[str, Head | str] = {
            str(name): Head(int(head["sequence"]), str(head["hash"]))
            for name, head in document["heads"].items()
        }
    except OSError as error:
        raise ParameterError(f"cannot read {file.name!r}: {error.strerror}.") from None
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise ParameterError(
            f"{file.name!r} does not hold hashes that `privatest ledger verify --save` wrote."
        ) from None
    return found


def _has_lines(file: Path) -> bool:
    """Return whether head --append wrote a file: each of its lines is a document."""
    try:
        with file.open(encoding="utf-8") as stream:
            return '"body":' in stream.readline()
    except (OSError, UnicodeDecodeError):
        return False


def _write(file: Path, document: dict[str, Any]) -> None:
    """Replace the file in one step: a crash must not lose the hashes that were kept."""
    try:
        write_text(file, json.dumps(document, indent=2) + "\n")
    except OSError as error:
        raise ParameterError(f"cannot write {file.name!r}: {error.strerror}.") from None
