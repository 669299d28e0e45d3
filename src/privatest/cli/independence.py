"""``privatest independence``: do two sides of the same rows depend on each other?"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from privatest.cli import options
from privatest.cli.asking import answer, describe
from privatest.cli.spending import DatasetOption, LedgerOption, NoLedger, Purse
from privatest.core.privacy import Budget
from privatest.questions.catalogue import such, usual

__all__ = ["independence"]

_USUAL = usual("independence")

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
Method = Annotated[str, options.method_option("independence", "The test")]
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
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    rows_per_person: options.RowsPerPerson = None,
    release: Release = None,
    alpha: options.Alpha = "0.05",
    method: Method = _USUAL,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    as_json: options.Json = False,
    permutations: options.Permutations = None,
    kernel: options.KernelOption = None,
    bandwidths: options.Bandwidths = None,
    statistics: options.Statistics = None,
    estimator: options.Estimator = None,
    subtest: Subtest = None,
    alternative: Alternative = None,
) -> None:
    """Test whether two sides of the same rows are independent.

    Any kind of dependence counts, not only correlation, between numbers and
    categories alike; --method kendall, spearman, pearson or regression look at
    two columns that rise together, and estimate how much. Columns are described
    by --bounds or by a schema: bounds found from the data would leak it.

    \b
    Example:
      privatest independence visits.csv --x age --y visits \\
        --bounds age=0:100 --bounds visits=0:80 --epsilon 1
    """
    from privatest.questions import Request  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    request = Request(
        "independence",
        method,
        Budget(epsilon, delta),
        options.read_alpha(alpha),
        parts={
            "x": options.read_names(x, described, "x"),
            "y": options.read_names(y, described, "y"),
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
        },
    )
    answer(request, [data], described, Purse(ledger, dataset, no_ledger), as_json=as_json)
