"""Simultaneous confidence intervals for the shares of all cells of a noisy table.

Exact up to a rounding that widens them. Proof: docs/proofs/contingency.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privatest.core.intervals import Interval
from privatest.mechanisms.additive import CountNoise

__all__ = ["cell_intervals"]

Floats = NDArray[np.float64]

_STEPS = 4  # blocks of noise in one scale
_FURTHEST = {"laplace": 20.0, "gaussian": 6.0}  # scales; what is beyond counts as infinite
_HALVINGS = 24


def cell_intervals(table: Floats, n: int, law: CountNoise, level: float) -> Interval:
    """Return an interval for the share of each cell, of any shape, all at once.

    For each cell Clopper and Pearson's interval with the noise added to the binomial count, at
    1 - (1 - level)/(number of cells): Bonferroni, so a little more than ``level`` are covered.

    Parameters
    ----------
    table : ndarray
        The released counts.
    n, law
        The public total and the law of the noise.
    level : float
        How often all intervals cover.
    """
    error = (1 - level) / table.size / 2
    cells = table.ravel()
    low, high = _lower(cells, n, law, error), 1 - _lower(n - cells, n, law, error)
    nearest = np.clip(np.rint(cells), 0, n)
    without = 1 - _binomial_lower(n - nearest, n, error) - _binomial_lower(nearest, n, error)
    shape = table.shape
    return Interval.around(
        low.reshape(shape), high.reshape(shape), level, np.maximum(without, 0.0).reshape(shape)
    )


def _lower(cells: Floats, n: int, law: CountNoise, error: float) -> Floats:
    """Return the smallest share s with P(Binomial(n, s) + noise >= cell) >= error.

    The noise is symmetric, so that the largest share is 1 minus this of n - cell.
    """
    from scipy.special import bdtrc  # noqa: PLC0415

    values, masses = _blocks(law)
    # the count has to be at least this, for each value of the noise
    needed = np.maximum(np.ceil(np.round(cells[:, None] - values, 9)), 0.0)
    low, high = np.zeros(len(cells)), np.ones(len(cells))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        some = bdtrc(np.clip(needed, 1, n) - 1, n, middle[:, None])
        reached = np.where(needed <= 0, 1.0, np.where(needed > n, 0.0, some)) @ masses
        below = reached < error
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def _blocks(law: CountNoise) -> tuple[Floats, Floats]:
    """Return upper ends of blocks of noise, and their masses: never less noise than there is."""
    far = _FURTHEST[law.kind]
    if law.kind == "gaussian":
        from scipy.special import ndtr  # noqa: PLC0415

        ends = np.arange(-far, far, 1 / _STEPS) * law.scale
        below = ndtr(ends / law.scale)
    else:
        step = max(1, math.floor(law.scale / _STEPS))
        most = step * math.ceil(far * law.scale / step)
        ends = np.arange(-most, most + step, step, dtype=np.float64)
        ratio = math.exp(-1 / law.scale)
        # P(noise <= j) of discrete Laplace noise
        below = ratio ** np.where(ends < 0, -ends, ends + 1) / (1 + ratio)
        below = np.where(ends < 0, below, 1 - below)
    return np.append(ends, np.inf), np.diff(below, prepend=0.0, append=1.0)


def _binomial_lower(counts: Floats, n: int, error: float) -> Floats:
    """Clopper and Pearson's lower end."""
    from scipy.special import betaincinv  # noqa: PLC0415

    some = betaincinv(np.maximum(counts, 1), n - counts + 1, error)
    found: Floats = np.where(counts > 0, some, 0.0)
    return found
