"""Tests of conditional independence of two columns.

By products of residuals of two private regressions on cells of z, or, where the law of x given z
is known, by drawing x anew. Columns lie in [-1, 1]. Proofs: docs/proofs/conditional.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision, Interval, Outcome, declare_level
from privatest.core.user_code import run_user_code
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.encoding import (
    Sample,
    TwoSamples,
    encode_numeric_pairs,
    encode_sample,
    require_public_bounds,
    rows_of_a_person,
)
from privatest.data.schema import Bounds, Domain
from privatest.data.sources import Joined
from privatest.mechanisms.additive import CountNoise, integer_noise, noisy_integers
from privatest.mechanisms.moments import cube_moments, plan_release, release_sample
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result
from privatest.methods.descriptor import SMOOTHED, Method, Offered
from privatest.methods.mean_inference import (
    Contrast,
    check_replicates,
    replicate,
    scenarios,
    upper_point,
)
from privatest.numerics.cells import UNIT, Grid, cell_sums, cell_sums_sensitivity, interpolate
from privatest.numerics.laws import ALTERNATIVES, Alternative

Floats = NDArray[np.float64]
_REACH = 3.0  # standard deviations at which residuals are clipped
_NOISY = 60.0  # rows of a cell times epsilon: noise on its mean is about .15 of the bounds
_FITTED = 20.0  # rows of a cell: with fewer, a mean fits the errors of its own rows too
_LEAST = {0: 1, 1: 12, 2: 5}  # cells of a numeric column, by how many there are
_MOST = 4096  # cells in all
_STEADY = 3.5  # standard deviations of noise in a count that is trusted
_SURE = 1.5  # standard deviations of noise to which small counts are raised
_STACK = 1 << 20  # numbers drawn at a time
_LEAST_ROWS = 10
_BLOCK = 1 << 12  # rows drawn anew at a time


_NULLS = {
    "two-sided": "x and y are independent given z",
    "greater": "x and y are independent given z, or fall together",
    "less": "x and y are independent given z, or rise together",
}


# --- two regressions by cells of z ---


def choose_grid(
    domain: Domain, n: int, budget: Budget, cells: int | None, rows_per_person: int
) -> Grid:
    """Return the cells of z: as many as noise and rows allow, from public numbers."""
    numeric = sum(levels == 0 for levels in domain.levels)
    if numeric > max(_LEAST):
        raise DataError(
            f"z must have at most {max(_LEAST)} numeric columns: with more, cells are too coarse "
            "to explain x and y. Declare the others as categories."
        )
    combined = math.prod(levels for levels in domain.levels if levels)
    if combined * _LEAST[numeric] ** numeric > _MOST:
        raise DataError(f"z must have at most {_MOST} combinations of categories and cells.")
    size = cells
    if size is None and numeric:
        allowed = n * min(budget.pure_epsilon / (_NOISY * rows_per_person), 1 / _FITTED)
        each = (min(allowed, float(_MOST)) / combined) ** (1 / numeric)
        most = math.floor((_MOST / combined) ** (1 / numeric) + 1e-9)
        size = min(max(round(each), _LEAST[numeric]), most)
    grid = Grid(domain.levels, tuple(levels or size or 1 for levels in domain.levels))
    if cells is not None and (not numeric or grid.count > _MOST):
        most = math.floor((_MOST / combined) ** (1 / max(numeric, 1)) + 1e-9)
        expected = f"at most {most} here" if numeric else "left out: z has no numeric column"
        reject("cells", expected, cells)
    return grid


@dataclass(frozen=True, slots=True, eq=False)
class Regressions:
    """Two regressions, from what was released: means of cells, interpolated.

    Attributes
    ----------
    grid : Grid
        The cells of z.
    law : CountNoise
        The noise of every released integer.
    means : ndarray of shape (2, cells)
        Of x and of y in each cell.
    divisors : ndarray of shape (2, cells)
        Numbers of rows by which sums were divided.
    trust : ndarray of shape (2, 1)
        How far these follow the noisy counts: 1, or less where counts are nearly equal.
    shares : ndarray
        Of the rows, in each cell.
    limits : ndarray of shape (2,)
        Where the residuals of each are clipped.
    """

    grid: Grid
    law: CountNoise
    means: Floats
    divisors: Floats
    trust: Floats
    shares: Floats
    limits: Floats

    @property
    def unit(self) -> float:
        """The largest product of residuals."""
        return float(np.prod(self.limits))

    def products(self, rows: Floats) -> Floats:
        """Return the clipped product of residuals of each row, over its largest size.

        A function of single rows and released numbers, in [-1, 1].
        """
        corners = self.grid.corners(rows[:, :-2])
        left = np.ones(len(rows))
        for values, means, limit in zip(rows[:, -2:].T, self.means, self.limits, strict=True):
            fitted = np.clip(interpolate(means, corners), -1.0, 1.0)
            left *= np.clip((2 * values - 1 - fitted) / limit, -1.0, 1.0)
        return left

    def unexplained(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw the mean product of what noise adds to the two regressions."""
        points = self.grid.points()
        corners, weights = self.grid.corners(points), self._weights(points)
        errors = np.empty(count)
        step = max(1, _STACK // len(points))
        for start in range(0, count, step):
            size = min(step, count - start)
            sides = (interpolate(self._errors(side, size, rng), corners) for side in (0, 1))
            errors[start : start + size] = np.sum(next(sides) * next(sides) * weights, axis=1)
        return errors / self.unit

    def _errors(self, side: int, count: int, rng: np.random.Generator) -> Floats:
        """Draw errors of the means of cells: of the sum, and of the count times the mean."""
        sums, counts = (self.law.draws((count, self.grid.count), rng) for _ in range(2))
        error = (sums - 2 * self.trust[side] * self.means[side] * counts) / UNIT
        result: Floats = error / self.divisors[side]
        return result

    def _weights(self, points: Floats) -> Floats:
        weights = self.shares[self.grid.cells(points)]
        result: Floats = weights / weights.sum()
        return result

    def noise_variances(self) -> tuple[Floats, Floats]:
        """Return the mean square of each regression, and the part that is noise."""
        points = self.grid.points()
        corners, weights = self.grid.corners(points), self._weights(points)
        squared = [(cells, share**2) for cells, share in corners]
        each = (
            self.law.variance
            / UNIT**2
            * (1 + (2 * self.trust * self.means) ** 2)
            / self.divisors**2
        )
        fitted = np.clip(interpolate(self.means, corners), -1.0, 1.0) ** 2
        return np.sum(fitted * weights, axis=1), np.sum(
            interpolate(each, squared) * weights, axis=1
        )


def regress(integers: Floats, grid: Grid, law: CountNoise, n: int) -> Regressions:
    """Return the regressions from noisy sums; post-processing."""
    table = integers[:-2].reshape(4, grid.count)
    counts, sums = table[:2] * (2 / UNIT), table[2:] / UNIT
    noise = 2 * math.sqrt(law.variance) / UNIT  # of a count
    # Where cells have few rows, counts are drawn to their mean: divisors that were raised instead
    # would be too large for x and for y, and leave a part of both unexplained. Not so where
    # counts differ by more than noise explains.
    usual = n / grid.count
    spread = np.mean((counts - usual) ** 2, axis=1)
    trust = np.maximum(1 - noise**2 / spread, min(usual / (_STEADY * noise), 1.0))[:, None]
    counts = usual + trust * (counts - usual)
    raised = np.maximum(counts, np.maximum(_SURE * trust * noise, 1.0))
    divisors = raised + (trust * noise) ** 2 / raised  # the mean of 1/count exceeds 1/mean
    middle = np.clip(sums.sum(axis=1) / n, -1.0, 1.0)[:, None]
    means = np.clip(middle + (sums - middle * counts) / divisors, -1.0, 1.0)
    shares = np.maximum(counts.mean(axis=0), 0.0) + 1e-9
    fitted = Regressions(grid, law, means, divisors, trust, shares, np.full(2, 2.0))
    explained, wrong = fitted.noise_variances()
    squares = integers[-2:] * (2 / (UNIT * n))
    # the squares of a regression have its noise once, and so have the residuals
    left = np.maximum(squares - explained + 2 * wrong, wrong) + noise / n
    limits = np.minimum(_REACH * np.sqrt(left), 2.0)
    return replace(fitted, limits=limits)


# --- tests ---


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
    cells: Offered[int | None] = None,
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
    generator = public_generator(rng)
    require_public_bounds(bounds_x=bounds_x, bounds_y=bounds_y, bounds_z=bounds_z)
    source = noise_source(noise)
    sides, covariates = _read(x, y, z, bounds_x, bounds_y, bounds_z)
    grid = choose_grid(
        covariates.domain, len(covariates), each, cells, rows_of_a_person(covariates)
    )
    regressions, contrast = _release(sides, covariates, grid, each, source)
    facts = {
        "spent": budget,
        "adjacency": "one",
        "method": "conditional independence test by products of residuals",
        "null_hypothesis": "x and y are independent given z",
        "sizes": {"n": len(covariates)},
        "rows_per_person": covariates.rows_per_person,
        "simulated": source.simulated,
        "parameters": {"cells": grid.sizes, "n_bootstrap": n_bootstrap},
    }
    return _outcome(regressions, contrast, sides, alpha, n_bootstrap, generator, facts)


def _read(
    x: Any, y: Any, z: Any, bounds_x: Bounds, bounds_y: Bounds, bounds_z: Bounds
) -> tuple[TwoSamples, Sample]:
    sides = encode_numeric_pairs(x, y, bounds_x, bounds_y, rows=_LEAST_ROWS)
    covariates = encode_sample(z, bounds_z, "z")
    if len(covariates) != len(sides.x):
        raise DataError("z must have as many rows as x and y: row i of each is one record.")
    if covariates.rows_per_person != sides.rows_per_person:
        raise ParameterError("bounds_z must have the rows_per_person of bounds_x and bounds_y.")
    return sides, covariates


def _release(
    sides: TwoSamples, covariates: Sample, grid: Grid, each: Budget, source: NoiseSource
) -> tuple[Regressions, Contrast]:
    """Release the regressions, then the products of their residuals; ``each`` is spent twice."""
    n, persons = len(covariates), rows_of_a_person(covariates)
    held = covariates.held, *(side.held for side in sides)
    sums = cell_sums(Sample(Joined(held, _beside, covariates.width + 2), None), grid)
    bound = cell_sums_sensitivity(persons)
    noisy = noisy_integers(sums.integers, sensitivity=bound, budget=each, noise=source)
    regressions = regress(noisy, grid, integer_noise(bound, each), n)
    (products,) = cube_moments(Sample(Joined(held, partial(_products, regressions), 1), None))
    released = release_sample(products, plan_release(n, 1, each, persons), source)
    return regressions, Contrast((released,), (1.0,), float(n))


def _beside(*parts: Floats) -> Floats:
    """Return the columns of z, x and y."""
    return np.hstack(parts)


def _products(regressions: Regressions, *parts: Floats) -> Floats:
    return (regressions.products(_beside(*parts))[:, None] + 1) / 2


def _outcome(
    regressions: Regressions,
    contrast: Contrast,
    sides: TwoSamples,
    alpha: float,
    count: int,
    rng: np.random.Generator,
    facts: dict[str, Any],
) -> Outcome:
    error = float(np.sqrt(contrast.released_scale[0, 0] / contrast.size))
    observed = float(contrast.value[0] / error)
    draws = _null_draws(regressions, contrast, count, rng)
    pvalue = max(float((1 + np.sum(each >= abs(observed))) / (count + 1)) for each in draws)
    unit = regressions.unit * float(np.prod([side.box.half[0] for side in sides]))
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


def _null_draws(
    regressions: Regressions, contrast: Contrast, count: int, rng: np.random.Generator
) -> list[Floats]:
    """Draw |t| under the null hypothesis, in each scenario of the mean product's spread.

    The mean product has the errors of a private mean, and the mean product of the noise of the
    two regressions.
    """
    unexplained = regressions.unexplained(count, rng)
    seed = int(rng.integers(2**63))
    drawn = []
    for scenario in scenarios(contrast):
        draws = replicate(contrast, scenario, count, public_generator(seed))
        errors = np.sqrt(draws.diagonals[:, 0] / contrast.size)
        drawn.append(np.abs(draws.deviations[:, 0] + unexplained) / errors)
    return drawn


def _interval(
    middle: float, error: float, unit: float, draws: list[Floats], level: float
) -> Interval:
    """Return the interval at a level; products are at most ``unit`` in size."""
    alpha = max(1 - level, 1 / (len(draws[0]) + 1))
    reach = max(upper_point(each, alpha) for each in draws) * error
    low, high = (float(np.clip(end, -unit, unit)) for end in (middle - reach, middle + reach))
    return Interval(low, high, level)


@declare_level("valid")
def conditional_randomisation_test(
    x: Any,
    y: Any,
    z: Any,
    quantile: Callable[[Floats, Floats], Any],
    *,
    bounds_x: Bounds,
    bounds_y: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    alternative: Alternative = "two-sided",
    n_resamples: int = 199,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether x and y are independent given z; the law of x given z is known.

    As in a trial whose treatment was drawn by a known rule: x is drawn anew for every row, and
    the observed covariance of x and y is compared with those of the draws.

    Parameters
    ----------
    x, y : array, series or table of one numeric column
        The two sides; row i of each belongs to the same record.
    z : array of one or two dimensions
        What is given; it is only passed to ``quantile``.
    quantile : callable
        ``quantile(u, z)``: the quantiles of x at levels u in (0, 1) for rows z, an array as long as
        u. It must work row by row: a result that depends on other rows is not private.
    bounds_x, bounds_y : pair or Schema
        Public bounds; values outside are clipped, those of ``quantile`` too.
    epsilon, delta, alpha
        The privacy budget, and the level of the decision.
    release : {"pvalue", "decision"}
        What is published; a decision needs less noise.
    alternative : {"two-sided", "greater", "less"}
        "greater": y rises with x, given z; it needs half the noise.
    n_resamples : int
        How often x is drawn anew.
    rng : None, int or Generator
        Public randomness, for these draws.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        The p-value, or the decision.

    Raises
    ------
    PrivatestError
        ``quantile`` failed on the private data, or gave no number for each row.

    Notes
    -----
    A true hypothesis is rejected with probability at most alpha, at every n and whatever the law
    of y given z, if ``quantile`` is right: the observed x is then one more draw.

    **Sensitivity** With both columns mapped to [-1, 1] the mean product of each draw moves by at
    most 2/n, and its distance from the mean of all draws by 4/n, times the rows of a person. Rows
    are put in a secret order first. Proof: docs/proofs/conditional.md.

    **Privacy** The p-value (a multiple of 1/10,000) or the decision of the smoothed permutation
    test is released at (epsilon, delta), if ``quantile`` works row by row and does not fail. A
    failure is disclosed, but not its message.

    References
    ----------
    Kalemaj, Kasiviswanathan and Ramdas (2024), Differentially private conditional independence
    testing; Candès, Fan, Janson and Lv (2018).

    Examples
    --------
    A treatment is given with a probability that depends on age, by a known rule.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, size=3000)
    >>> rule = lambda u, age: u < age / 100
    >>> treated = rule(rng.uniform(size=3000), age)
    >>> score = np.clip(age / 100 + 0.2 * treated + rng.normal(0, 0.1, size=3000), 0, 1)
    >>> conditional_randomisation_test(
    ...     treated.astype(float), score, age, lambda u, z: u > 1 - z / 100,
    ...     bounds_x=(0, 1), bounds_y=(0, 1), epsilon=1, rng=0,
    ... ).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("release", release, RELEASES)
    one_of("alternative", alternative, ALTERNATIVES)
    if not callable(quantile):
        raise ParameterError("quantile must be a function of levels u and rows z.")
    n_resamples = integer_at_least("n_resamples", n_resamples, 1)
    generator = public_generator(rng)
    require_public_bounds(bounds_x=bounds_x, bounds_y=bounds_y)
    source = noise_source(noise)
    sides, covariates = encode_numeric_pairs(x, y, bounds_x, bounds_y, rows=4), np.asarray(z)
    n = len(covariates)
    if covariates.ndim not in (1, 2) or n != len(sides.x):
        raise DataError("z must be an array with as many rows as x and y.")
    sums = resampled_products(
        sides, covariates, quantile, source.permutation(n), n_resamples, generator
    )
    moved = 2.0
    if alternative == "two-sided":
        sums, moved = np.abs(sums - sums.mean()), 4.0
    elif alternative == "less":
        sums = -sums
    exact = PermutationSensitivity(moved / n, moved / n) * sides.rows_per_person
    return permutation_result(
        sums,
        sensitivity=exact.widened(_rounding(n)),
        budget=budget,
        alpha=alpha,
        release=release,
        noise=source,
        facts={
            "adjacency": "one",
            "method": "conditional randomisation test",
            "null_hypothesis": _NULLS[alternative],
            "sizes": {"n": n},
            "parameters": {"alternative": alternative, "n_resamples": n_resamples},
            "rows_per_person": sides.rows_per_person,
        },
    )


def resampled_products(
    sides: TwoSamples,
    covariates: NDArray[Any],
    quantile: Callable[[Floats, Floats], Any],
    order: NDArray[np.intp],
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the mean product of x and y, observed first, and with x drawn anew."""
    lower, half = float(sides.x.box.lower[0]), float(sides.x.box.half[0])
    own, other = (2 * side.values[order] - 1 for side in sides)
    rows, sums = covariates[order], np.zeros(n_resamples + 1)
    sums[0] = np.sum(own * other)
    for start in range(0, len(rows), _BLOCK):
        part, weights = rows[start : start + _BLOCK], other[start : start + _BLOCK]
        for draw in range(1, n_resamples + 1):
            levels = rng.uniform(size=len(part))
            drawn = _drawn(quantile, levels, part)
            with np.errstate(all="ignore"):
                unit = np.clip((drawn - lower) / half - 1, -1.0, 1.0)
            # what is not a number becomes a public one: refusing it would tell of a row
            sums[draw] += np.sum(np.where(np.isnan(unit), -1.0, unit) * weights)
    mean: Floats = sums / len(rows)
    return mean


def _drawn(quantile: Callable[[Floats, Floats], Any], levels: Floats, rows: NDArray[Any]) -> Floats:
    """Return the quantiles of private rows, or an error that says nothing of them."""

    def numbers() -> Floats:
        # copies: it may change its arguments, and return them
        values = np.array(quantile(levels.copy(), rows.copy()), dtype=np.float64)
        if values.shape != (len(rows),):
            raise ValueError
        return values

    return run_user_code(
        numbers,
        message="quantile failed on the private data, or did not return one number for each row; "
        "no noise was drawn. What it said is withheld, as it may hold values.",
    )


def _rounding(n: int) -> float:
    """Bound the rounding error of a mean of n products in [-1, 1], and of its distance."""
    return 8.0 * (_BLOCK + n / _BLOCK + 64) * 2.0**-53


DESCRIPTORS = (
    Method(
        name="gcm",
        question="independence",
        function=conditional_independence_test,
        about="one column and another, given more columns",
        part="given",
        caution="the time to look up cells may depend on values",
        sentence=(
            "We tested conditional independence by the covariance of residuals of private "
            "regressions"
        ),
        papers=("shah2020", "kalemaj2024"),
    ),
    Method(
        name="conditional-randomisation",
        question="",
        function=conditional_randomisation_test,
        sentence=f"We tested conditional independence by drawing x anew given z, {SMOOTHED}",
        papers=("kim2023", "candes2018"),
    ),
)
