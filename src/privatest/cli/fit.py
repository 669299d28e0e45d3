"""``privatest fit``: does one column follow a given distribution?"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from privatest.cli import options
from privatest.cli.asking import answer, describe
from privatest.cli.grid import GridOption, read_grid
from privatest.cli.spending import DatasetOption, LedgerOption, NoLedger, Purse
from privatest.core.privacy import Budget
from privatest.requests.catalogue import find

__all__ = ["fit"]

Column = Annotated[
    str,
    typer.Option("--column", metavar="NAME", help="The column.", rich_help_panel="Data"),
]
Distribution = Annotated[
    str | None,
    typer.Option(
        "--dist",
        metavar="NAME(NUMBERS)",
        help='Distribution of scipy.stats with all its parameters, such as "norm(0, 1)".',
        rich_help_panel="Test",
    ),
]
FamilyName = Annotated[
    str | None,
    typer.Option(
        "--family",
        metavar="NAME",
        help="Family of scipy.stats with unknown location and scale, such as norm, laplace, "
        "cauchy, logistic, gumbel_r, expon or uniform; needs --bounds or a schema.",
        rich_help_panel="Test",
    ),
]
Shares = Annotated[
    str | None,
    typer.Option(
        "--shares",
        metavar="A=SHARE,...",
        help="Shares of the categories of a categorical column, such as yes=0.2,no=0.8; or "
        "equal. Needs a schema.",
        rich_help_panel="Test",
    ),
]
Statistic = Annotated[
    str | None,
    typer.Option(
        "--statistic",
        metavar="DISTANCE",
        help="Distance of distribution functions: ks (largest), kuiper (shape), "
        "cvm (mean square) or wasserstein (mean).",
        rich_help_panel="Test",
        show_default="the largest",
    ),
]

Alternative = Annotated[
    Literal["two-sided", "greater", "less"] | None,
    typer.Option(
        "--alternative",
        metavar="SIDE",
        help="For --dist and ks: two-sided; greater, as in SciPy: the distribution function of "
        "the column lies above; or less.",
        rich_help_panel="Test",
        show_default="two-sided",
    ),
]


def fit(
    data: options.DataFile,
    *,
    column: Column,
    dist: Distribution = None,
    family: FamilyName = None,
    shares: Shares = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    rows_per_person: options.RowsPerPerson = None,
    alpha: options.Alpha = "0.05",
    statistic: Statistic = None,
    alternative: Alternative = None,
    grid: GridOption = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    plot: options.Picture = None,
    report: options.Report = None,
    as_json: options.Json = False,
) -> None:
    """Test whether a column follows a given distribution, or one of a family.

    With --dist the distribution has all its parameters: those estimated from
    the data would leak it. Bounds are not needed, and a schema only says how
    missing values count and how many rows a person has. With --family location
    and scale are unknown, and bounds are needed. With --shares the column is
    categorical, and a schema has its categories.

    \b
    Example:
      privatest fit visits.csv --column age --dist "uniform(18, 62)" --epsilon 1
      privatest fit visits.csv --column age --family norm \\
        --bounds age=0:120 --epsilon 1
      privatest fit visits.csv --column plan --shares equal \\
        --schema visits.toml --epsilon 1
    """
    from privatest.requests.request import Request  # noqa: PLC0415

    targets = {"dist": dist, "family": family, "shares": shares}
    parts = {"column": column, **targets}
    chosen = next((name for name in targets if targets[name] is not None), "dist")
    method, _ = find("fit", None, [chosen])
    request = Request(
        "fit",
        method,
        Budget(epsilon, delta),
        options.read_alpha(alpha),
        parts=parts,
        options={
            "statistic": statistic,
            "alternative": alternative,
            "grid": read_grid(grid),
        },
    )
    described = describe(schema, bounds or [], rows_per_person)
    purse = Purse(ledger, dataset, no_ledger)
    answer(request, [data], described, purse, as_json=as_json, plot=plot, report=report)
