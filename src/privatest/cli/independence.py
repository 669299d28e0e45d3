"""``privatest independence``: do two sides of the same rows depend on each other?"""

from __future__ import annotations

from privatest.cli import options
from privatest.cli.output import print_result, working
from privatest.errors import ParameterError
from privatest.privacy import Budget

__all__ = ["independence"]


def independence(
    data: options.DataFile,
    *,
    x: options.SideX,
    y: options.SideY,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    rows_per_person: options.RowsPerPerson = None,
    release: options.Release = "pvalue",
    alpha: options.Alpha = "0.05",
    kernel: options.KernelOption = "gaussian",
    bandwidths: options.Bandwidths = None,
    permutations: options.Permutations = 999,
    estimator: options.Estimator = "v",
    as_json: options.Json = False,
) -> None:
    """Test whether two sides of the same rows are independent.

    Any kind of dependence counts, not only correlation, between numbers and
    categories alike. Columns are described by --bounds or by a schema: bounds
    found from the data would leak it.

    \b
    Example:
      privatest independence visits.csv --x age --y visits \\
        --bounds age=0:100 --bounds visits=0:80 --epsilon 1
    """
    budget, level = Budget(epsilon, delta), options.read_alpha(alpha)
    widths = options.read_bandwidths(bandwidths)
    names_x, names_y = options.read_names(x, "x"), options.read_names(y, "y")
    if set(names_x) & set(names_y):
        raise ParameterError("x and y must not share a column: it depends on itself.")

    from privatest import hsic_test  # noqa: PLC0415
    from privatest.cli.question import chosen_columns, describe  # noqa: PLC0415
    from privatest.sources import read_table  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    side_x, side_y = chosen_columns(described, names_x), chosen_columns(described, names_y)
    with working("Reading the data and testing ..."):
        text = side_x.categorical_names + side_y.categorical_names
        table = read_table(data, [*names_x, *names_y], text=text)
        result = hsic_test(
            table.select(names_x),
            table.select(names_y),
            epsilon=budget.epsilon,
            delta=budget.delta,
            alpha=level,
            release=release,
            bounds_x=side_x,
            bounds_y=side_y,
            kernel_x=kernel,
            kernel_y=kernel,
            bandwidths_x=widths,
            bandwidths_y=widths,
            estimator=estimator,
            n_permutations=permutations,
        )
    words = f"{', '.join(names_x)} and {', '.join(names_y)}"
    print_result(result, compared=words, as_json=as_json, label="sides")
