"""Options of ``privatest plan``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

_STUDY, _SIMULATION, _OUTPUT = "Study", "Simulation", "Output"
Planned = Literal["two-sample", "independence", "paired", "fit"]
QuestionOption = Annotated[
    Planned,
    typer.Option("--question", help="What will be asked.", rich_help_panel=_STUDY),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="METHOD",
        help="The test, as in the command of the question.",
        show_default="the usual one of the question",
        rich_help_panel=_STUDY,
    ),
]
Effect = Annotated[
    float,
    typer.Option(
        "--effect",
        metavar="NUMBER",
        help="What should be seen: a shift in standard deviations, a factor of spread, a "
        "correlation, a difference of shares; see --kind.",
        rich_help_panel=_STUDY,
    ),
]
MaybeEffect = Annotated[
    float | None,
    typer.Option(
        "--effect",
        metavar="NUMBER",
        help="How large the difference is.",
        show_default="what the best test sees with power .8",
        rich_help_panel=_STUDY,
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="What differs: shift, scale, shape, mixture, heavy_tails, atoms, proportions, "
        "tables; of two columns dependence or curve.",
        show_default="the usual one of the columns",
        rich_help_panel=_STUDY,
    ),
]
RankedKind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="What differs, as far as the tables have it: of one column shift, scale, shape, "
        "heavy_tails, or anything; of two columns dependence or curve.",
        show_default="the usual one of the columns",
        rich_help_panel=_STUDY,
    ),
]
Membership = Annotated[
    Literal["private", "public"],
    typer.Option(
        "--membership",
        help="Whether everybody may know who is in which group. A test on one file takes it as "
        "private, unless its schema says public.",
        rich_help_panel="Privacy",
    ),
]
ColumnTypes = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="COUNT|TYPES",
        help="How many numeric columns; or types with commas between, of numeric, binary and "
        "categorical.",
        rich_help_panel=_STUDY,
    ),
]
People = Annotated[
    str,
    typer.Option(
        "--n",
        metavar="N",
        help="People in each group, or in all where there are no groups; two sizes with a comma "
        "between.",
        rich_help_panel=_STUDY,
    ),
]
Target = Annotated[
    float,
    typer.Option("--power", help="How often it should be seen.", rich_help_panel=_STUDY),
]
Refine = Annotated[
    bool,
    typer.Option(
        "--refine",
        help="Simulate studies, even where the tables have an answer.",
        rich_help_panel=_SIMULATION,
    ),
]
Runs = Annotated[
    int, typer.Option("--runs", help="Simulated studies a round.", rich_help_panel=_SIMULATION)
]
Seed = Annotated[
    int, typer.Option("--seed", help="Of the simulation.", rich_help_panel=_SIMULATION)
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Processes.",
        show_default="all processors",
        rich_help_panel=_SIMULATION,
    ),
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Neither use nor keep what was simulated before.",
        rich_help_panel=_SIMULATION,
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw the curve: .png, .svg or .pdf.",
        rich_help_panel=_OUTPUT,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write a page about the plan.",
        rich_help_panel=_OUTPUT,
    ),
]
