"""``privatest independence``: do two sides of the same rows depend on each other?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from privatest.cli import options
from privatest.cli.output import print_result, working
from privatest.errors import ParameterError
from privatest.privacy import Budget

if TYPE_CHECKING:
    from privatest.results import Decision

__all__ = ["independence"]

# What each method takes besides the data, the budget and the level.
_OPTIONS = {
    "hsic": ("release", "permutations", "kernel", "bandwidths", "estimator"),
    "tot": ("subtest", "permutations"),
    "sarrm": ("subtest", "permutations"),
}


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
    release: options.Release = None,
    alpha: options.Alpha = "0.05",
    method: options.IndependenceMethod = "hsic",
    permutations: options.Permutations = None,
    kernel: options.KernelOption = None,
    bandwidths: options.Bandwidths = None,
    estimator: options.Estimator = None,
    subtest: options.Subtest = None,
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
    names_x, names_y = options.read_names(x, "x"), options.read_names(y, "y")
    if set(names_x) & set(names_y):
        raise ParameterError("x and y must not share a column: it depends on itself.")
    chosen = options.given(
        method,
        _OPTIONS[method],
        release=release,
        permutations=permutations,
        kernel=kernel,
        bandwidths=options.read_bandwidths(bandwidths),
        estimator=estimator,
        subtest=subtest,
    )

    from privatest.cli.question import chosen_columns, describe  # noqa: PLC0415
    from privatest.sources import read_table  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    sides = chosen_columns(described, names_x), chosen_columns(described, names_y)
    with working("Reading the data and testing ..."):
        text = sides[0].categorical_names + sides[1].categorical_names
        table = read_table(data, [*names_x, *names_y], text=text)
        result = _run(
            method,
            (table.select(names_x), table.select(names_y)),
            _arguments(chosen)
            | {"epsilon": budget.epsilon, "delta": budget.delta, "alpha": level}
            | {"bounds_x": sides[0], "bounds_y": sides[1]},
        )
    words = f"{', '.join(names_x)} and {', '.join(names_y)}"
    print_result(result, compared=words, as_json=as_json, label="sides")


def _arguments(chosen: dict[str, Any]) -> dict[str, Any]:
    """Name options as the functions do; kernels and bandwidths are those of both sides."""
    renamed = {"permutations": "n_permutations", "subtest": "pvalue"}
    arguments: dict[str, Any] = {}
    for name, value in chosen.items():
        if name in ("kernel", "bandwidths"):
            arguments |= {f"{name}_x": value, f"{name}_y": value}
        else:
            arguments[renamed.get(name, name)] = value
    return arguments


def _run(method: str, sides: tuple[Any, Any], arguments: dict[str, Any]) -> Decision:
    import privatest as pt  # noqa: PLC0415

    test: Callable[..., Decision] = pt.hsic_test
    if method != "hsic":
        test = pt.test_of_tests if method == "tot" else pt.sarrm_test
        arguments = {"pvalue": "hsic", "scheme": "independence"} | arguments
    return test(*sides, **arguments)
