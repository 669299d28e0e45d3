"""``privatest paired``: did something change between two measurements of the same people?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privatest.cli import options
from privatest.cli.output import print_result, working
from privatest.errors import ParameterError
from privatest.privacy import Budget

if TYPE_CHECKING:
    from privatest.results import Decision

__all__ = ["paired"]

# What each method takes besides the data, the budget and the level.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "ks": (),
    "kuiper": (),
    "sign": ("alternative",),
    "wilcoxon": ("alternative",),
}


def paired(
    data: options.DataFile,
    *,
    before: options.Before,
    after: options.After,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    rows_per_person: options.RowsPerPerson = None,
    alpha: options.Alpha = "0.05",
    method: options.PairedMethod = "ks",
    alternative: options.AlternativeOption = None,
    as_json: options.Json = False,
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
    budget, level = Budget(epsilon, delta), options.read_alpha(alpha)
    chosen = options.given(method, _OPTIONS[method], alternative=alternative)
    if before == after:
        raise ParameterError("before and after must be two columns.")
    if rows_per_person is not None and schema is None and not bounds:
        raise ParameterError("--rows-per-person needs the columns described: pass --bounds too.")

    from privatest.cli.question import chosen_columns, describe  # noqa: PLC0415
    from privatest.sources import read_table  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    columns = None if described is None else chosen_columns(described, [before, after])
    with working("Reading the data and testing ..."):
        table = read_table(data, [before, after], text=columns.categorical_names if columns else ())
        result = _run(
            method,
            (table.column(before), table.column(after)),
            chosen | {"epsilon": budget.epsilon, "delta": budget.delta, "alpha": level},
            columns,
        )
    print_result(result, compared=f"{after} - {before}", as_json=as_json, label="change")


def _run(method: str, sides: tuple[Any, Any], arguments: dict[str, Any], bounds: Any) -> Decision:
    from privatest import paired as tests  # noqa: PLC0415

    if method == "sign":
        return tests.sign_test(*sides, bounds=bounds, **arguments)
    if method == "wilcoxon":
        return tests.wilcoxon(*sides, bounds=bounds, **arguments)
    statistic: Any = method
    return tests.symmetry_test(*sides, statistic=statistic, bounds=bounds, **arguments)
