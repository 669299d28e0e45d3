"""``privatest mean``: private means and covariance of numeric columns."""

from __future__ import annotations

from typing import Annotated

import typer

from privatest.cli import options
from privatest.cli.asking import answer, describe
from privatest.cli.spending import DatasetOption, LedgerOption, NoLedger, Purse
from privatest.core.privacy import Budget
from privatest.requests.catalogue import find

__all__ = ["mean"]

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns, with commas between; by default all that are described.",
        rich_help_panel="Data",
    ),
]
Alpha = Annotated[
    str,
    typer.Option(
        "--alpha",
        metavar="NUMBER",
        help="One minus the confidence: 0.05 gives simultaneous 95% intervals.",
        rich_help_panel="Estimate",
    ),
]
Method = Annotated[str | None, options.method_option("mean", "What is estimated", panel="Estimate")]
Quantile = Annotated[
    float | None,
    typer.Option(
        "--q",
        metavar="NUMBER",
        help="Estimate this quantile of one column: 0.5 is the median.",
        rich_help_panel="Estimate",
    ),
]


def mean(
    data: options.DataFile,
    *,
    columns: Columns = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    rows_per_person: options.RowsPerPerson = None,
    alpha: Alpha = "0.05",
    method: Method = None,
    q: Quantile = None,
    cells: options.Cells = None,
    success: options.Success = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    plot: options.Picture = None,
    report: options.Report = None,
    as_json: options.Json = False,
) -> None:
    """Estimate means of numeric columns, or a share, with intervals.

    Columns are described by --bounds or by a schema: bounds found from the data
    would leak it, and the noise grows with them. The covariance, which the
    intervals need, is released too and is part of the JSON document. With
    --method proportion: how many rows are a success, in one column. --success says
    what one is, if the column is not of integers between 0 and 1 (integer = true in
    the schema).

    With --q a quantile of one column is estimated instead, the median for 0.5,
    with an interval that holds for every distribution.

    \b
    Example:
      privatest mean visits.csv --bounds visits=0:80 --bounds age=18:80 \\
        --epsilon 1
      privatest mean visits.csv --schema visits.toml --columns plan \\
        --success basic --epsilon 1
      privatest mean visits.csv --q 0.5 --bounds age=18:80 --epsilon 1
    """
    from privatest.requests.request import Request  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    request = Request(
        "mean",
        _method(method, q=q, success=success),
        Budget(epsilon, delta),
        options.read_alpha(alpha),
        parts={"columns": None if columns is None else options.read_names(columns, described)},
        options={"q": q, "cells": cells, "success": success},
    )
    purse = Purse(ledger, dataset, no_ledger)
    answer(request, [data], described, purse, as_json=as_json, plot=plot, report=report)


def _method(method: str | None, **chosen: object) -> str:
    """Return the method that was named, or the one that the options choose."""
    return find("mean", method, [name for name, value in chosen.items() if value is not None])[0]
