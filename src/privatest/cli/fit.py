"""``privatest fit``: does one column follow a given distribution?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest.cli import options
from privatest.cli.output import print_result, working
from privatest.errors import ParameterError
from privatest.privacy import Budget

if TYPE_CHECKING:
    from privatest.results import Decision
    from privatest.schema import Schema

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
Statistic = Annotated[
    Literal["ks", "kuiper", "cvm", "wasserstein"],
    typer.Option(
        "--statistic",
        metavar="DISTANCE",
        help="Distance of distribution functions: ks (largest), kuiper (shape), "
        "cvm (mean square) or wasserstein (mean).",
        rich_help_panel="Test",
    ),
]


def fit(
    data: options.DataFile,
    *,
    column: Column,
    dist: Distribution = None,
    family: FamilyName = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    rows_per_person: options.RowsPerPerson = None,
    alpha: options.Alpha = "0.05",
    statistic: Statistic = "ks",
    as_json: options.Json = False,
) -> None:
    """Test whether a column follows a given distribution, or one of a family.

    With --dist the distribution has all its parameters: those estimated from
    the data would leak it. Bounds are not needed, and a schema only says how
    missing values count and how many rows a person has. With --family location
    and scale are unknown, and bounds are needed.

    \b
    Example:
      privatest fit visits.csv --column age --dist "uniform(18, 62)" --epsilon 1
      privatest fit visits.csv --column age --family norm \\
        --bounds age=0:120 --epsilon 1
    """
    budget, level = Budget(epsilon, delta), options.read_alpha(alpha)
    if (dist is None) == (family is None):
        raise ParameterError(
            'pass --dist, the distribution to test: "norm(0, 1)" for example; or --family, for '
            "unknown location and scale: norm for example. Not both."
        )
    described = _described(schema, bounds or [], rows_per_person, column)
    arguments = {"epsilon": budget.epsilon, "delta": budget.delta, "alpha": level}
    with working("Reading the data and testing ..."):
        if dist is not None:
            result = _known_distribution(data, column, described, dist, statistic, arguments)
        else:
            result = _family(data, column, described, family, statistic, arguments)
    print_result(result, compared=column, as_json=as_json, label="column")


def _described(
    path: Path | None, bounds: list[str], rows: int | None, column: str
) -> Schema | None:
    """Return the column's description, or None: it need not have one."""
    from privatest.cli.question import chosen_columns, describe  # noqa: PLC0415

    described = describe(path, bounds, rows)
    if described is None and rows is not None and rows > 1:
        raise ParameterError(
            f"--rows-per-person needs a description of the column: --bounds {column}=LOW:HIGH "
            "or a schema."
        )
    return None if described is None else chosen_columns(described, [column])


def _known_distribution(
    data: Path,
    column: str,
    described: Schema | None,
    dist: str,
    statistic: str,
    arguments: dict[str, Any],
) -> Decision:
    from privatest.goodness_of_fit import ks_1samp  # noqa: PLC0415
    from privatest.reference_cdf import read_cdf  # noqa: PLC0415
    from privatest.sources import read_table  # noqa: PLC0415

    read_cdf(dist)  # a mistake in it is reported before the file is read
    text = [] if described is None else described.categorical_names
    table = read_table(data, [column], text=text)
    return ks_1samp(table, dist, statistic=statistic, bounds=described, **arguments)  # type: ignore[arg-type]


def _family(
    data: Path,
    column: str,
    described: Schema | None,
    family: str | None,
    statistic: str,
    arguments: dict[str, Any],
) -> Decision:
    from privatest.family import STATISTICS, ks_family  # noqa: PLC0415
    from privatest.sources import read_table  # noqa: PLC0415
    from privatest.statistics.families import family_named  # noqa: PLC0415

    chosen = family_named(family).name  # a mistake in it is reported before the file is read
    if statistic not in STATISTICS:
        raise ParameterError(f"--family has --statistic {' or '.join(STATISTICS)}.")
    if described is None:
        raise ParameterError(
            f"--family needs a description of the column: --bounds {column}=LOW:HIGH or a schema."
        )
    table = read_table(data, [column], text=described.categorical_names)
    return ks_family(table, chosen, statistic=statistic, bounds=described, **arguments)  # type: ignore[arg-type]
