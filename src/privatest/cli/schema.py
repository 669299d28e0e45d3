"""``privatest schema``: a template to describe data with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privatest.cli import options
from privatest.cli.output import Page, print_text
from privatest.core.errors import ParameterError

__all__ = ["schema"]


def schema(
    data: options.DataFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write it.", show_default="the screen"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a template of the schema, to be completed by hand.

    It is made from the names and types of the columns only. Bounds and
    categories are for you to fill in from what is publicly known: found from
    the data they would leak it.

    \b
    Example:
      privatest schema visits.csv -o visits.toml
    """
    if output is not None and output.exists() and not force:
        raise ParameterError(f"output must be a new file: {str(output)!r} exists; pass --force.")

    from privatest.data.template import schema_template  # noqa: PLC0415

    template = schema_template(data.schema())
    if output is None:
        print_text(template.removesuffix("\n"))
        return
    try:
        output.write_text(template, encoding="utf-8")
    except OSError as error:
        raise ParameterError(f"cannot write {str(output)!r}: {error.strerror}.") from error
    Page().line(f"Wrote {output}. Fill in bounds and categories, then pass it as --schema.")
