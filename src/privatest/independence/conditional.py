"""Is X independent of Y given Z? Products of residuals of two private regressions.

Proof and measured level: docs/proofs/conditional.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.intervals import Interval
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, public_generator, reject
from privatest.data.bounds import Bounds
from privatest.data.limits import refuse_wide_bounds, rows_of_a_person
from privatest.data.samples import Sample, encode_pairs, encode_sample
from privatest.data.stream import Joined
from privatest.independence.residuals import Floats, Regressions, choose_grid, regress
from privatest.means.bootstrap import Contrast, replicate, scenarios, upper_point
from privatest.means.inference import check_replicates
from privatest.means.release import cube_moments, plan_release, release_sample
from privatest.mechanisms.additive import integer_noise, noisy_integers
from privatest.statistics.cell_sums import Grid, cell_sums, cell_sums_sensitivity

__all__ = ["conditional_independence_test"]

_METHOD = "conditional independence test by products of residuals"
_NULL = "x and y are independent given z"
_LEAST_ROWS = 10


@declare_level("measured")
def conditional_independence_test(
    x: Any,
    y: Any,
    z: Any,
    *,
    bounds_x: Bounds,
    bounds_y: Bounds,
    bounds_z: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    cells: int | None = None,
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether x and y are independent given z.

    What z explains of x and of y is taken away by two private regressions, which interpolate
    noisy means of cells of z; the mean product of what is left is then tested for being 0 (the
    generalised covariance measure).

    Parameters
    ----------
    x, y : array, series or table of one numeric column
        The two sides; row i of each belongs to the same record.
    z : array, data frame or Arrow table
        What is given: at most two numeric columns, and categories.
    bounds_x, bounds_y, bounds_z : pair, mapping of names to pairs, or Schema
        Public bounds of each; values outside are clipped.
    epsilon, delta : float, int, str or Decimal
        The privacy budget; half goes to the regressions, half to the products.
    alpha : float
        Level of the decision; the confidence interval has level 1 - alpha.
    cells : int, optional
        Equal parts of the bounds of each numeric column of z; every combination of them and of
        categories has a mean of its own. By default as many as the noise allows.
    n_bootstrap : int
        Draws of the law under the null hypothesis.
    rng : None, int or Generator
        Public randomness, for the bootstrap.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        With the private t and, in ``estimates``, the ``partial_covariance`` of x and y given z with
        its interval ``lower`` to ``upper``.

    Notes
    -----
    The null hypothesis is that x and y are independent given z, with conditional means that
    change little within a cell. The level was measured, not proved; no test of conditional
    independence is valid for all laws. docs/proofs/conditional.md says where it fails: bounds of
    z much wider than its values, and means that wiggle within a cell. Dependence that leaves the
    mean product at 0 is not seen.

    **Sensitivity** The regressions are computed from noisy counts and sums of cells, as integers:
    a replaced row moves two cells. Given these, which are public, the product of residuals is a
    function of one row, clipped to a public range: as in :func:`privatest.ttest_1samp`. Proof:
    docs/proofs/conditional.md.

    **Privacy** Both releases together are (epsilon, delta)-private by composition; all else is
    computed from them.

    References
    ----------
    Kalemaj, Kasiviswanathan and Ramdas (2024), Differentially private conditional independence
    testing; they add noise to every product instead.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(-1, 1, size=5000)
    >>> x, y = (np.clip((z + rng.normal(size=5000)) / 4, -1, 1) for _ in range(2))
    >>> sides = {f"bounds_{name}": (-1, 1) for name in "xyz"}
    >>> y = (x + y) / 2
    >>> conditional_independence_test(x, y, z, epsilon=5, delta=1e-6, rng=0, **sides).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    if cells is not None:
        cells = integer_at_least("cells", cells, 2)
    check_replicates(n_bootstrap, alpha)
    if float(budget.epsilon) < 2e-6:
        reject("epsilon", "at least 0.000002: two releases share it", float(budget.epsilon))
    each = budget.divided(2)
    generator, source = public_generator(rng), noise_source(noise)
    sides, given = _read(x, y, z, bounds_x, bounds_y, bounds_z)
    grid = choose_grid(given.domain, len(given), each, cells, rows_of_a_person(given))
    found = _release(sides, given, grid, each, source)
    facts = {
        "spent": budget,
        "adjacency": "one",
        "method": _METHOD,
        "null_hypothesis": _NULL,
        "sizes": {"n": len(given)},
        "rows_per_person": given.rows_per_person,
        "simulated": source.simulated,
        "parameters": {"cells": grid.sizes, "n_bootstrap": n_bootstrap},
    }
    return _outcome(found, sides, alpha, n_bootstrap, generator, facts)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What was released: the regressions, and the mean product of residuals."""

    regressions: Regressions
    products: Contrast


def _read(
    x: Any, y: Any, z: Any, bounds_x: Bounds, bounds_y: Bounds, bounds_z: Bounds
) -> tuple[tuple[Sample, Sample], Sample]:
    given_bounds = {"bounds_x": bounds_x, "bounds_y": bounds_y, "bounds_z": bounds_z}
    for name, bounds in given_bounds.items():
        if bounds is None:
            raise ParameterError(
                f"{name} must be given: a pair (lower, upper), one for each column, or a Schema. "
                "Bounds found from the data would leak it."
            )
    pair, given = encode_pairs(x, y, bounds_x, bounds_y), encode_sample(z, bounds_z, "z")
    for side, name in zip(pair, ("x", "y"), strict=True):
        if side.domain.levels != (0,):
            raise DataError(f"{name} must be one numeric column.")
    refuse_wide_bounds(*pair)
    if len(given) != len(pair.x):
        raise DataError("z must have as many rows as x and y: row i of each is one record.")
    if given.rows_per_person != pair.x.rows_per_person:
        raise ParameterError("bounds_z must have the rows_per_person of bounds_x and bounds_y.")
    if len(given) < _LEAST_ROWS:
        raise DataError(f"there must be at least {_LEAST_ROWS} rows.")
    return (pair.x, pair.y), given


def _release(
    sides: tuple[Sample, Sample], given: Sample, grid: Grid, each: Budget, source: NoiseSource
) -> Found:
    """Release the regressions, then the products of their residuals; ``each`` is spent twice."""
    n, persons = len(given), rows_of_a_person(given)
    held = given.held, *(side.held for side in sides)
    sums = cell_sums(Sample(Joined(held, _beside, given.width + 2), None), grid)
    bound = cell_sums_sensitivity(persons)
    noisy = noisy_integers(sums.integers, sensitivity=bound, budget=each, noise=source)
    regressions = regress(noisy, grid, integer_noise(bound, each), n)
    products = Joined(held, partial(_products, regressions), 1)
    (found,) = cube_moments(Sample(products, None))
    released = release_sample(found, plan_release(n, 1, each, persons), source)
    return Found(regressions, Contrast((released,), (1.0,), float(n)))


def _beside(*parts: Floats) -> Floats:
    """Return the columns of z, x and y."""
    return np.hstack(parts)


def _products(regressions: Regressions, *parts: Floats) -> Floats:
    return (regressions.products(_beside(*parts))[:, None] + 1) / 2


def _outcome(
    found: Found,
    sides: tuple[Sample, Sample],
    alpha: float,
    count: int,
    rng: np.random.Generator,
    facts: dict[str, Any],
) -> Outcome:
    contrast = found.products
    error = float(np.sqrt(contrast.released_scale[0, 0] / contrast.size))
    observed = float(contrast.value[0] / error)
    draws = _null_draws(found, count, rng)
    pvalue = max(float((1 + np.sum(each >= abs(observed))) / (count + 1)) for each in draws)
    unit = found.regressions.unit * float(np.prod([side.box.half[0] for side in sides]))
    middle, reach = float(contrast.value[0]) * unit, error * unit
    shown = _interval(middle, reach, unit, draws, 1 - alpha)
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        pvalue=pvalue,
        statistic=observed,
        estimated="partial_covariance",
        estimates={"partial_covariance": middle, "lower": shown.low, "upper": shown.high},
        intervals=partial(_interval, middle, reach, unit, draws),
        **facts,
    )


def _null_draws(found: Found, count: int, rng: np.random.Generator) -> list[Floats]:
    """Draw |t| under the null hypothesis, in each scenario of the mean product's spread.

    The mean product has the errors of a private mean, and the mean product of the noise of the
    two regressions.
    """
    contrast = found.products
    left = found.regressions.unexplained(count, rng)
    seed = int(rng.integers(2**63))
    drawn = []
    for scenario in scenarios(contrast):
        made = replicate(contrast, scenario, count, public_generator(seed))
        errors = np.sqrt(made.diagonals[:, 0] / contrast.size)
        drawn.append(np.abs(made.deviations[:, 0] + left) / errors)
    return drawn


def _interval(
    middle: float, error: float, unit: float, draws: list[Floats], level: float
) -> Interval:
    """Return the interval at a level; products are at most ``unit`` in size."""
    alpha = max(1 - level, 1 / (len(draws[0]) + 1))
    reach = max(upper_point(each, alpha) for each in draws) * error
    low, high = (float(np.clip(end, -unit, unit)) for end in (middle - reach, middle + reach))
    return Interval(low, high, level)
