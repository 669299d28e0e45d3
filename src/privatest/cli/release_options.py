"""Options of ``privatest release``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = [
    "Bandwidth",
    "Columns",
    "Delta",
    "Force",
    "Kernel",
    "MethodOption",
    "Output",
    "Picture",
    "Points",
    "PublicPoints",
    "WeightsOption",
]

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns to release, with commas between; by default all that are described.",
        rich_help_panel="Data",
    ),
]
Points = Annotated[
    int | None,
    typer.Option(
        "--points",
        metavar="COUNT",
        min=1,
        help="Synthetic rows to release.",
        rich_help_panel="Release",
        show_default="500, or the number of rows if that is less",
    ),
]
PublicPoints = Annotated[
    Path | None,
    typer.Option(
        "--public-points",
        metavar="FILE",
        help="Rows that are public already, such as a published part of the data or made-up "
        "rows: they are in the release as they stand. Never private rows.",
        rich_help_panel="Data",
        show_default="points spread over the bounds",
    ),
]
MethodOption = Annotated[
    Literal["subspace", "features"],
    typer.Option(
        "--method",
        metavar="METHOD",
        help="subspace (public points, private weights) or features (private points and weights, "
        "found by a search).",
        rich_help_panel="Release",
    ),
]
WeightsOption = Annotated[
    Literal["signed", "bounded", "nonnegative", "equal"] | None,
    typer.Option(
        "--weights",
        metavar="KIND",
        help="signed (nearest to the data), bounded (in sum of sizes), nonnegative (as "
        "probabilities are), or equal (rows are repeated instead).",
        rich_help_panel="Release",
        show_default="signed; nonnegative for features",
    ),
]
Kernel = Annotated[
    Literal["gaussian", "laplace", "imq"],
    typer.Option(
        "--kernel",
        metavar="KERNEL",
        help="How likeness falls off with distance: gaussian, laplace or imq.",
        rich_help_panel="Release",
    ),
]
Bandwidth = Annotated[
    float | None,
    typer.Option(
        "--bandwidth",
        metavar="NUMBER",
        help="Width of the kernel, where each column's bounds are 0 and 1.",
        rich_help_panel="Release",
        show_default="as wide as the points lie apart",
    ),
]
Delta = Annotated[
    str,
    typer.Option(
        "--delta",
        metavar="NUMBER",
        help="Probability with which the guarantee may fail: above 0, and well below 1 divided "
        "by the number of rows.",
        rich_help_panel="Privacy",
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write it: a .parquet file.",
        rich_help_panel="Output",
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw each column of the release to a .png, .svg or .pdf file.",
        rich_help_panel="Output",
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Overwrite files that are there.", rich_help_panel="Output"),
]
