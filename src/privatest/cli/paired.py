"""``privatest paired``: did something change between two measurements of the same people?"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from privatest.cli import options
from privatest.cli.asking import answer, describe
from privatest.cli.spending import DatasetOption, LedgerOption, NoLedger, Purse
from privatest.core.privacy import Budget
from privatest.requests.catalogue import such, usual

__all__ = ["paired"]

_USUAL = usual("paired")

Before = Annotated[
    str,
    typer.Option(
        "--before", metavar="COLUMN", help="The first measurement.", rich_help_panel="Data"
    ),
]
After = Annotated[
    str,
    typer.Option(
        "--after", metavar="COLUMN", help="The second measurement.", rich_help_panel="Data"
    ),
]
Method = Annotated[str, options.method_option("paired", "The test")]
Alternative = Annotated[
    Literal["two-sided", "greater", "less"] | None,
    typer.Option(
        "--alternative",
        metavar="SIDE",
        help=f"For {such('paired', lambda m: 'alternative' in m.options)}: two-sided; greater: "
        "after is larger than before; or less.",
        rich_help_panel="Test",
        show_default="two-sided",
    ),
]


def paired(
    data: options.DataFile,
    *,
    before: Before,
    after: After,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    rows_per_person: options.RowsPerPerson = None,
    alpha: options.Alpha = "0.05",
    method: Method = _USUAL,
    alternative: Alternative = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    plot: options.Picture = None,
    report: options.Report = None,
    as_json: options.Json = False,
    calibration: options.Calibration = None,
    low: options.Low = None,
    high: options.High = None,
) -> None:
    """Test whether something changed between two measurements of the same rows.

    The differences, after minus before, are tested for symmetry about 0. Only
    their signs and their order count, so that no bounds are needed; where
    they are declared values outside are clipped.

    \b
    Example:
      privatest paired visits.csv --before visits_2023 --after visits_2024 \\
        --method wilcoxon --epsilon 1
    """
    from privatest.requests.request import Request  # noqa: PLC0415

    request = Request(
        "paired",
        method,
        Budget(epsilon, delta),
        options.read_alpha(alpha),
        parts={"before": before, "after": after},
        options={
            "alternative": alternative,
            "calibration": calibration,
            "low": low,
            "high": high,
        },
    )
    described = describe(schema, bounds or [], rows_per_person)
    purse = Purse(ledger, dataset, no_ledger)
    answer(request, [data], described, purse, as_json=as_json, plot=plot, report=report)
