"""``--grid``: public cut points of tests on a line."""

from __future__ import annotations

from typing import Annotated

import typer

from privatest.core.validation import reject

__all__ = ["GridOption", "read_grid"]

GridOption = Annotated[
    str | None,
    typer.Option(
        "--grid",
        metavar="COUNT|NUMBERS",
        help="For distances of distribution functions: a number of equal cells between the "
        "bounds, at most 8192; public cut points with commas between; or exact.",
        rich_help_panel="Options of some methods",
        show_default="exact, unless many rows are permuted",
    ),
]


def read_grid(text: str | None) -> int | list[float] | str | None:
    """Return a grid from text such as ``512``, ``0,1.5,7`` or ``exact``."""
    if text is None or text == "exact":
        return text
    try:
        return int(text) if text.strip().isdigit() else [float(part) for part in text.split(",")]
    except ValueError:
        reject("grid", "a number of cells, cut points with commas between, or exact", text)
