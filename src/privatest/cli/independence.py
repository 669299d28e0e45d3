"""``privatest independence``: do two sides of the same rows depend on each other?"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from privatest.cli import options
from privatest.cli.asking import answer, describe
from privatest.cli.spending import DatasetOption, LedgerOption, NoLedger, Purse
from privatest.core.privacy import Budget
from privatest.requests.catalogue import find, such, usual

__all__ = ["independence"]

SideX = Annotated[
    str,
    typer.Option(
        "--x",
        metavar="NAMES",
        help="Columns of one side, with commas between.",
        rich_help_panel="Data",
    ),
]
SideY = Annotated[
    str,
    typer.Option(
        "--y",
        metavar="NAMES",
        help="Columns of the other side, with commas between.",
        rich_help_panel="Data",
    ),
]
Given = Annotated[
    str | None,
    typer.Option(
        "--given",
        metavar="NAMES",
        help="Are they independent given these columns? With commas between; x and y are then one "
        "numeric column each.",
        rich_help_panel="Data",
    ),
]
Cells = Annotated[
    int | None,
    typer.Option(
        "--cells",
        metavar="NUMBER",
        min=2,
        help="Equal parts of each given numeric column, in each of which x and y have a mean.",
        rich_help_panel="Options of some methods",
        show_default="as many as noise allows",
    ),
]
Release = Annotated[
    Literal["pvalue", "decision"] | None,
    typer.Option(
        "--release",
        metavar="WHAT",
        help="What is published: a pvalue, or only the decision, which needs less noise.",
        rich_help_panel="Privacy",
        show_default="pvalue",
    ),
]
Method = Annotated[str | None, options.method_option("independence", "The test")]
Subtest = Annotated[
    str | None,
    typer.Option(
        "--subtest",
        metavar="NAME",
        help="Test to run on parts of the data: one of scipy.stats, such as pearsonr, for --method "
        f"{such('independence', lambda m: 'subtest' in m.options)}.",
        rich_help_panel="Options of some methods",
        show_default=usual("independence"),
    ),
]


Alternative = Annotated[
    Literal["two-sided", "greater", "less"] | None,
    typer.Option(
        "--alternative",
        metavar="SIDE",
        help=f"For {such('independence', lambda m: 'alternative' in m.options)}: two-sided; "
        "greater: y rises with x; or less.",
        rich_help_panel="Options of some methods",
        show_default="two-sided",
    ),
]


def independence(
    data: options.DataFile,
    *,
    x: SideX,
    y: SideY,
    given: Given = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    rows_per_person: options.RowsPerPerson = None,
    release: Release = None,
    alpha: options.Alpha = "0.05",
    method: Method = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    plot: options.Picture = None,
    report: options.Report = None,
    as_json: options.Json = False,
    permutations: options.Permutations = None,
    kernel: options.KernelOption = None,
    bandwidths: options.Bandwidths = None,
    statistics: options.Statistics = None,
    estimator: options.Estimator = None,
    subtest: Subtest = None,
    alternative: Alternative = None,
    cells: Cells = None,
) -> None:
    """Test whether two sides of the same rows are independent.

    Any kind of dependence counts, not only correlation, between numbers and
    categories alike; --method kendall, spearman, pearson or slope look at
    two columns that rise together, and estimate how much. Columns are described
    by --bounds or by a schema: bounds found from the data would leak it.

    With --given the question is whether one column tells more about another
    than the given columns do.

    \b
    Example:
      privatest independence visits.csv --x age --y visits \\
        --bounds age=0:100 --bounds visits=0:80 --epsilon 1
      privatest independence visits.csv --x age --y visits --given income \\
        --bounds age=0:100 --bounds visits=0:80 --bounds income=0:200 \\
        --epsilon 1 --delta 1e-6
    """
    from privatest.requests.request import Request  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    request = Request(
        "independence",
        method or _usual(given),
        Budget(epsilon, delta),
        options.read_alpha(alpha),
        parts={
            "x": options.read_names(x, described, "x"),
            "y": options.read_names(y, described, "y"),
            "given": None if given is None else options.read_names(given, described, "given"),
        },
        options={
            "release": release,
            "permutations": permutations,
            "kernel": kernel,
            "bandwidths": options.read_bandwidths(bandwidths),
            "statistics": options.read_statistics(statistics),
            "estimator": estimator,
            "subtest": subtest,
            "alternative": alternative,
            "cells": cells,
        },
    )
    purse = Purse(ledger, dataset, no_ledger)
    answer(request, [data], described, purse, as_json=as_json, plot=plot, report=report)


def _usual(given: str | None) -> str:
    """Return the method that is taken where none is named."""
    return usual("independence") if given is None else find("independence", None, ("given",))[0]
