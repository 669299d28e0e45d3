"""Public functions that the catalogue does not have, as cases of an audit."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.audit.cases import Case
from privatest.audit.schemas import with_three_groups
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.data.schema import NumericColumn, Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["python_case"]

_DELTA = 1e-3
Floats = NDArray[np.float64]


def python_case(name: str, epsilon: float, schema: Schema) -> Case:
    """Return the case of a function that exists in Python only."""
    delta = _DELTA if name == "share" else 0.0
    columns = {
        "binom_test": ("count",),
        "conditional_randomisation_test": ("x", "y", "colour"),
        "hotelling_1samp": ("x", "y"),
        "mmd_test, three private groups": ("x", "y", "group"),
        "mmd_test, three public groups": ("x", "y", "arm"),
        "permutation_test": ("x", "arm"),
        "permutation_test, naive": ("x", "arm"),
        "private_covariance": ("x", "y"),
        "private_median": ("x",),
        "private_median, window": ("x",),
        "share": ("x", "y"),
        "ttest_1samp": ("x",),
    }[name]
    schema = with_three_groups(schema) if "three" in name else schema
    call = partial(_CALLS[name], schema=schema, budget=(epsilon, delta))
    caution = (
        "the time to draw the axes of a covariance depends on values"
        if name in ("hotelling_1samp", "private_covariance")
        else ""
    )

    def run(table: pa.Table, noise: NoiseSource, rng: int | None) -> Any:
        return call(table, noise=noise, rng=rng)

    return Case(
        f"python/{name}",
        name.partition(",")[0],
        Budget(epsilon, delta),
        schema,
        columns,
        run,
        caution=caution,
    )


def _bounds(schema: Schema) -> tuple[float, float]:
    column = schema.columns["x"]
    if not isinstance(column, NumericColumn):
        raise AssertionError("x is a number")
    return column.lower, column.upper


def _read(table: pa.Table, schema: Schema, *names: str) -> dict[str, Any]:
    """Return columns, and the schema by which a function reads them."""
    return {"x": table.select(list(names)), "bounds": schema.select(list(names))}


def _spent(budget: tuple[float, float]) -> dict[str, Any]:
    return {"epsilon": budget[0], "delta": budget[1]}


def _binom(table: pa.Table, *, schema: Schema, budget: Any, noise: Any, rng: Any) -> Any:
    from privatest.methods.proportions import binom_test  # noqa: PLC0415

    del rng
    read = _read(table, schema, "count")
    return binom_test(**read, success=4, **_spent(budget), noise=noise)


def _given_colour(u: Floats, z: Floats, *, bounds: tuple[float, float]) -> Floats:
    """Return x given the colour: uniform, and wider for some colours."""
    low, high = bounds
    return low + (high - low) * u * (1.0 + np.ravel(z)) / 3.0


def _crt(table: pa.Table, *, schema: Schema, budget: Any, noise: Any, rng: Any) -> Any:
    from privatest.methods.conditional import conditional_randomisation_test  # noqa: PLC0415

    colours = schema.columns["colour"].categories  # type: ignore[union-attr]
    z = np.array([colours.index(c or "red") for c in table.column("colour").to_pylist()], float)
    return conditional_randomisation_test(
        table.select(["x"]),
        table.select(["y"]),
        z,
        partial(_given_colour, bounds=_bounds(schema)),
        bounds_x=schema.select(["x"]),
        bounds_y=schema.select(["y"]),
        **_spent(budget),
        n_resamples=9,
        rng=rng,
        noise=noise,
    )


def _hotelling(table: pa.Table, *, schema: Schema, budget: Any, noise: Any, rng: Any) -> Any:
    from privatest.methods.means import hotelling_1samp  # noqa: PLC0415

    low, high = _bounds(schema)
    read = _read(table, schema, "x", "y")
    middle = [(low + high) / 2] * 2
    return hotelling_1samp(**read, mean=middle, **_spent(budget), rng=rng, noise=noise)


def _three_samples(
    table: pa.Table, *, schema: Schema, budget: Any, noise: Any, rng: Any, group: str
) -> Any:
    """Compare three samples; private ones come in other orders of columns, and [] for none.

    Without a schema nothing but the names of the columns says which is which.
    """
    import pyarrow.compute as pc  # noqa: PLC0415

    from privatest.methods.mmd import mmd_test  # noqa: PLC0415

    known = schema.columns[group].categories  # type: ignore[union-attr]
    private, samples = group == "group", []
    for place, label in enumerate(known):
        rows = table.filter(pc.equal(table.column(group), label))
        names = ["y", "x"] if private and place % 2 else ["x", "y"]
        samples.append(rows.select(names) if len(rows) or not private else [])
    described = schema.rows_per_person > 1 or schema.columns["x"].missing != "refuse"
    return mmd_test(
        *samples,
        bounds=schema.select(["x", "y"]) if described or not private else _bounds(schema),
        adjacency="row" if private else "one",
        **_spent(budget),
        n_permutations=9,
        rng=rng,
        noise=noise,
    )


def _mean_difference(x: Floats, y: Floats) -> float:
    return float(abs(np.mean(x) - np.mean(y)))


def _custom(
    table: pa.Table,
    *,
    schema: Schema,
    budget: Any,
    noise: Any,
    rng: Any,
    how: str = "smoothed",
) -> Any:
    from privatest.methods.custom import permutation_test  # noqa: PLC0415

    first = np.array(table.column("arm").to_pylist()) == "a"
    x = schema.select(["x"]).encode(table.select(["x"]))[:, 0]  # on [0, 1]
    options: dict[str, Any] = {"privatization": how, **_spent(budget)}
    return permutation_test(
        (x[first], x[~first]),
        _mean_difference,
        sensitivity=1.0 / min(first.sum(), (~first).sum()),
        bounds=(0.0, 1.0),
        n_permutations=19 if how == "naive" else 9,  # ranks below alpha need as many
        rng=rng,
        noise=noise,
        check_sensitivity=False,
        **options,
    )


def _covariance(table: pa.Table, *, schema: Schema, budget: Any, noise: Any, rng: Any) -> Any:
    from privatest.methods.means import private_covariance  # noqa: PLC0415

    read = _read(table, schema, "x", "y")
    return private_covariance(**read, **_spent(budget), rng=rng, noise=noise)


def _median(table: pa.Table, *, schema: Schema, budget: Any, noise: Any, rng: Any) -> Any:
    from privatest.methods.quantiles import private_median  # noqa: PLC0415

    del rng
    read = _read(table, schema, "x")
    return private_median(**read, **_spent(budget), cells=16, noise=noise)


def _median_window(table: pa.Table, *, schema: Schema, budget: Any, noise: Any, rng: Any) -> Any:
    """Return a median of enough rows for a window: those of the table, and public ones."""
    from privatest.methods.quantiles import private_median  # noqa: PLC0415

    del rng
    low, high = _bounds(schema)
    x = schema.select(["x"]).encode(table.select(["x"]))[:, 0]  # on [0, 1]
    public = np.linspace(0, 1, math.ceil(150 * schema.rows_per_person / budget[0]))
    rows = {"x": low + (high - low) * np.concatenate([x, public])}
    return private_median(rows, bounds=schema.select(["x"]), **_spent(budget), noise=noise)


def _share(table: pa.Table, *, schema: Schema, budget: Any, noise: Any, rng: Any) -> Any:
    from privatest.methods.shares import share  # noqa: PLC0415

    return share(
        **_read(table, schema, "x", "y"),
        locations=3,
        **_spent(budget),
        rng=rng or 0,
        noise=noise,
    )


def _ttest(table: pa.Table, *, schema: Schema, budget: Any, noise: Any, rng: Any) -> Any:
    from privatest.methods.means import ttest_1samp  # noqa: PLC0415

    low, high = _bounds(schema)
    read = _read(table, schema, "x")
    middle = (low + high) / 2
    return ttest_1samp(**read, popmean=middle, **_spent(budget), rng=rng, noise=noise)


_CALLS: dict[str, Callable[..., Any]] = {
    "binom_test": _binom,
    "conditional_randomisation_test": _crt,
    "hotelling_1samp": _hotelling,
    "mmd_test, three private groups": partial(_three_samples, group="group"),
    "mmd_test, three public groups": partial(_three_samples, group="arm"),
    "permutation_test": _custom,
    "permutation_test, naive": partial(_custom, how="naive"),
    "private_covariance": _covariance,
    "private_median": _median,
    "private_median, window": _median_window,
    "share": _share,
    "ttest_1samp": _ttest,
}
