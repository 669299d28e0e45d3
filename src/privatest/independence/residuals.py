"""Two private regressions by cells of z, and what they leave of x and of y.

All of it in the cube: x and y lie in [-1, 1]. Proof: docs/proofs/conditional.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.privacy import Budget
from privatest.core.validation import reject
from privatest.data.domain import Domain
from privatest.mechanisms.additive import CountNoise
from privatest.statistics.cell_sums import UNIT, Grid, interpolate

__all__ = ["Floats", "Regressions", "choose_grid", "regress"]

_REACH = 3.0  # standard deviations at which residuals are clipped
_NOISY = 60.0  # rows of a cell times epsilon: noise on its mean is about .15 of the bounds
_FITTED = 20.0  # rows of a cell: with fewer, a mean fits the errors of its own rows too
_LEAST = {0: 1, 1: 12, 2: 5}  # cells of a numeric column, by how many there are
_MOST = 4096  # cells in all
_STEADY = 3.5  # standard deviations of noise in a count that is trusted
_SURE = 1.5  # standard deviations of noise to which small counts are raised
_STACK = 1 << 20  # numbers drawn at a time

Floats = NDArray[np.float64]


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
        found = np.empty(count)
        step = max(1, _STACK // len(points))
        for start in range(0, count, step):
            made = min(step, count - start)
            sides = (interpolate(self._errors(side, made, rng), corners) for side in (0, 1))
            found[start : start + made] = np.sum(next(sides) * next(sides) * weights, axis=1)
        return found / self.unit

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
    found = Regressions(grid, law, means, divisors, trust, shares, np.full(2, 2.0))
    explained, wrong = found.noise_variances()
    squares = integers[-2:] * (2 / (UNIT * n))
    # the squares of a regression have its noise once, and so have the residuals
    left = np.maximum(squares - explained + 2 * wrong, wrong) + noise / n
    limits = np.minimum(_REACH * np.sqrt(left), 2.0)
    return replace(found, limits=limits)
