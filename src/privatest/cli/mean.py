"""``privatest mean``: private means and covariance of numeric columns."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from privatest.cli import options
from privatest.cli.asking import check_types, describe, public_words
from privatest.cli.output import Page, print_json, working
from privatest.cli.pictures import check_picture, save_picture
from privatest.cli.spending import (
    DatasetOption,
    LedgerOption,
    NoLedger,
    Purse,
    spending,
)
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget

__all__ = ["mean"]

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Numeric columns, with commas between; by default all that are described.",
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
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    plot: options.Picture = None,
    as_json: options.Json = False,
) -> None:
    """Estimate means of numeric columns, with simultaneous intervals.

    Columns are described by --bounds or by a schema: bounds found from the data
    would leak it, and the noise grows with them. The covariance, which the
    intervals need, is released too and is part of the JSON document.

    \b
    Example:
      privatest mean visits.csv --bounds visits=0:80 --bounds age=18:80 \\
        --epsilon 1
    """
    budget, level = Budget(epsilon, delta), options.read_alpha(alpha)
    if plot is not None:
        check_picture(plot)

    from privatest.data.sources import check_columns, read_table  # noqa: PLC0415
    from privatest.means import private_mean  # noqa: PLC0415
    from privatest.questions.prepare import chosen_columns  # noqa: PLC0415
    from privatest.questions.rehearsal import made_up_rows, rehearse_call  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    chosen = chosen_columns(described, None if columns is None else options.read_names(columns))
    if chosen.categorical_names:
        raise ParameterError(
            f"column {chosen.categorical_names[0]!r} is categorical: name numeric --columns."
        )
    names = list(chosen.columns)
    check_columns(data, names)  # a mistyped name should not cost anything
    check_types(data, chosen)
    settings: dict[str, Any] = {"bounds": chosen, "alpha": level}
    settings |= {"epsilon": budget.epsilon, "delta": budget.delta}

    def rehearsal() -> None:
        with working("Rehearsing on made-up rows ..."):
            rows = read_table(data, names[:1], text=names[:1]).num_rows
            rehearse_call(
                lambda n: private_mean(made_up_rows(names, chosen, n), **settings), [rows]
            )

    purse = Purse(ledger, dataset, no_ledger)
    asked = public_words("mean", budget, [data], chosen, alpha=level)
    with (
        spending(purse, budget, [data], gaussian=True, rehearsal=rehearsal, asked=asked) as record,
        working("Reading the data ..."),
    ):
        estimate = private_mean(read_table(data, names), **settings)
        receipt = record(estimate.to_dict())
    with receipt.shown(as_json=as_json):
        if as_json:
            told = {"guarantee": str(estimate).splitlines()[-1], "request": asked}
            lines = {"files": [str(data)], "ledger": receipt.to_list()}
            print_json(estimate.to_dict() | {"columns": names} | told | lines)
        else:
            page = Page()
            for line in str(estimate).splitlines():
                page.line(line)
    if plot is not None:
        from privatest.plots.differences import plot_means  # noqa: PLC0415

        save_picture(plot_means(estimate), plot)
