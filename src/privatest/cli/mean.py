"""``privatest mean``: private means and covariance of numeric columns."""

from __future__ import annotations

from typing import Annotated

import typer

from privatest.cli import options
from privatest.cli.asking import answer, describe
from privatest.cli.spending import DatasetOption, LedgerOption, NoLedger, Purse
from privatest.core.privacy import Budget
from privatest.questions.catalogue import usual

__all__ = ["mean"]

_USUAL = usual("mean")

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns, with commas between; by default all that are described.",
        rich_help_panel="Data",
    ),
]
Method = Annotated[str, options.method_option("mean", "What is estimated", panel="Estimate")]
Alpha = Annotated[
    str,
    typer.Option(
        "--alpha",
        metavar="NUMBER",
        help="One minus the confidence: 0.05 gives simultaneous 95% intervals.",
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
    method: Method = _USUAL,
    success: options.Success = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    plot: options.Picture = None,
    as_json: options.Json = False,
) -> None:
    """Estimate means of numeric columns, or a share, with intervals.

    Columns are described by --bounds or by a schema: bounds found from the data
    would leak it, and the noise grows with them. The covariance, which the
    intervals need, is released too and is part of the JSON document. With
    --method proportion: how many rows are a success, in one column of 0 and 1 or of
    categories.

    \b
    Example:
      privatest mean visits.csv --bounds visits=0:80 --bounds age=18:80 \\
        --epsilon 1
      privatest mean visits.csv --schema visits.toml --columns plan \\
        --method proportion --success basic --epsilon 1
    """
    from privatest.questions import Request  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    request = Request(
        "mean",
        method,
        Budget(epsilon, delta),
        options.read_alpha(alpha),
        parts={"columns": None if columns is None else options.read_names(columns, described)},
        options={"success": success},
    )
    purse = Purse(ledger, dataset, no_ledger)
    answer(request, [data], described, purse, as_json=as_json, plot=plot)
