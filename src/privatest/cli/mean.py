"""``privatest mean``: private means and covariance of numeric columns."""

from __future__ import annotations

from privatest.cli import options
from privatest.cli.asking import describe
from privatest.cli.output import Page, working
from privatest.cli.pictures import check_picture
from privatest.cli.spending import (
    DatasetOption,
    LedgerOption,
    NoLedger,
    Purse,
    print_spent,
    spending,
)
from privatest.errors import ParameterError
from privatest.privacy import Budget

__all__ = ["mean"]


def mean(
    data: options.DataFile,
    *,
    columns: options.Columns = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    rows_per_person: options.RowsPerPerson = None,
    alpha: options.Alpha = "0.05",
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    plot: options.Picture = None,
    as_json: options.Json = False,
) -> None:
    """Estimate means of numeric columns, with intervals that hold together.

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

    from privatest.means import private_mean  # noqa: PLC0415
    from privatest.requests.prepare import chosen_columns  # noqa: PLC0415
    from privatest.sources import check_columns, read_table  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    chosen = chosen_columns(described, None if columns is None else options.read_names(columns))
    if chosen.categorical_names:
        raise ParameterError(
            f"column {chosen.categorical_names[0]!r} is categorical: name numeric --columns."
        )
    names = list(chosen.columns)
    check_columns(data, names)  # a mistyped name should not cost anything
    purse = Purse(ledger, dataset, no_ledger)
    with (
        spending(purse, budget, [data], gaussian=True) as record,
        working("Reading the data ..."),
    ):
        estimate = private_mean(
            read_table(data, names),
            bounds=chosen,
            epsilon=budget.epsilon,
            delta=budget.delta,
            alpha=level,
        )
        left = record(estimate.to_dict())
    if as_json:
        print(estimate.to_json(indent=2))
    else:
        page = Page()
        for line in str(estimate).splitlines():
            page.line(line)
    print_spent(left, purse, as_json=as_json)
    if plot is not None:
        from privatest.plots.differences import plot_means  # noqa: PLC0415

        plot_means(estimate).savefig(plot)
