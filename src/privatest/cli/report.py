"""``privatest report``: write the page about an answer again, from its JSON document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from privatest.cli.files import check_new, check_report, write_report
from privatest.cli.output import Page
from privatest.core.errors import ParameterError

__all__ = ["report"]

Document = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.json", help="What a command printed with --json.", show_default=False
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE.html", help="Where to write the page.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]


def report(document: Document, *, output: Output, force: Force = False) -> None:
    """Write a page about an answer that you have: from its JSON document alone.

    No data is read, and nothing is spent. The page of a release needs its file.

    \b
    Example:
      privatest plan size --effect 0.3 --epsilon 1 --json > answer.json
      privatest report answer.json -o answer.html
    """
    check_new(output, "--output", force)
    check_report(output, option="--output")
    write_report(_read(document), output)
    Page().line(f"Wrote {output}.")


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise ParameterError(f"{file} is not a JSON document.") from None
    if not isinstance(found, dict):
        raise ParameterError(f"{file} is not what a command printed with --json.")
    return found
