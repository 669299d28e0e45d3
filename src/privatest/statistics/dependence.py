"""The largest covariance between bounded functions of two sides of rows.

T = max |(1/n) sum (f(x_i) - mean)(g(y_i) - mean)| over functions f and g with values in [0, 1].
With the columns themselves this is the largest covariance; with [x <= s] and [y <= t] for public
s and t it is the largest |F(s, t) - F(s) F(t)|, Kolmogorov's distance from independence. Signed
covariances, of one pair of functions each, need a third of the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.data.domain import Domain

__all__ = [
    "Functions",
    "covariance_moments",
    "covariance_sensitivity",
    "indicators",
    "largest",
    "signed_covariance_sensitivity",
    "trends",
    "values",
]

_THRESHOLDS = 48  # of all numeric columns of a side, at most 23 of one
_MOST_THRESHOLDS = 23
_MOST_LEVELS = 24  # a column with more categories has no functions
_REFERENCE_POINTS, _DRAWS = 768, 400

Matrix = NDArray[np.float64]
Functions = Callable[[Matrix, Domain], Matrix]


def values(rows: Matrix, domain: Domain, width: float = 1.0) -> Matrix:
    """Numeric columns, and [x = category] for each category.

    ``width`` is the share of the bounds, in their middle, to which columns are clipped and which
    is stretched to [0, 1]: data that crowd there then vary more for the same sensitivity.
    """
    return np.hstack([_middle(rows, domain, width), *_categories(rows, domain)])


def trends(rows: Matrix, domain: Domain, width: float) -> Matrix:
    """As :func:`values`, with one function for two categories: the other differs by its sign."""
    categories = [own[:, :1] if own.shape[1] == 2 else own for own in _categories(rows, domain)]
    return np.hstack([_middle(rows, domain, width), *categories])


def _middle(rows: Matrix, domain: Domain, width: float) -> Matrix:
    columns = rows[:, domain.numeric]
    return columns if width == 1 else np.clip((columns - 0.5) / width + 0.5, 0.0, 1.0)


def indicators(rows: Matrix, domain: Domain) -> Matrix:
    """[x <= s] for public thresholds s of numeric columns, and [x = category]."""
    numeric = domain.numeric
    count = max(1, min(_MOST_THRESHOLDS, _THRESHOLDS // max(len(numeric), 1)))
    thresholds = np.arange(1, count + 1) / (count + 1)
    steps = [(rows[:, [column]] <= thresholds).astype(np.float64) for column in numeric]
    return np.hstack([np.zeros((len(rows), 0)), *steps, *_categories(rows, domain)])


def _categories(rows: Matrix, domain: Domain) -> list[Matrix]:
    return [
        (rows[:, [column]] == np.arange(domain.levels[column])).astype(np.float64)
        for column in domain.categorical
        if domain.levels[column] <= _MOST_LEVELS
    ]


def largest(covariances: Matrix) -> Matrix:
    """Return the largest absolute entry of each matrix, as a column."""
    flat = covariances.reshape(len(covariances), -1)
    found: Matrix = np.maximum(flat.max(axis=1), -flat.min(axis=1))[:, None]
    return found


def covariance_sensitivity(n: int) -> PermutationSensitivity:
    """How far the largest covariance moves when one pair is replaced.

    Notes
    -----
    **Sensitivity** (n-1)/n² for the observed statistic, twice that for permuted ones. Proof:
    docs/proofs/hsic-sensitivity.md.
    """
    step = (n - 1) / n**2 * (1 + 1e-15)
    return PermutationSensitivity(step, 2 * step)


def signed_covariance_sensitivity(n: int) -> PermutationSensitivity:
    """How far a signed covariance moves from permuted ones when one pair is replaced.

    Notes
    -----
    **Sensitivity** 1/n: the difference of an observed covariance of two functions and a permuted
    one depends on the pair by (f - f_i)(g - g_j) alone, whose values lie within 1 of each other.
    A permutation test looks at such differences only, so the observed covariance counts as
    fixed (PermutationSensitivity needs a positive bound). Proof: docs/proofs/hsic-sensitivity.md.
    """
    step = 1 / n * (1 + 1e-15)
    return PermutationSensitivity(1e-12 * step, step)


@lru_cache(maxsize=64)
def covariance_moments(make: Functions, domains: tuple[Domain, Domain]) -> tuple[float, float]:
    """Mean and standard deviation of sqrt(n) T for independent uniform rows and many of them.

    By drawing from the limit, a Gaussian matrix; tests are weighed by it, their level is not.
    """
    roots = []
    for domain in domains:
        functions = make(domain.points(_REFERENCE_POINTS), domain)
        spectrum, vectors = np.linalg.eigh(np.atleast_2d(np.cov(functions.T, bias=True)))
        roots.append(vectors * np.sqrt(np.maximum(spectrum, 0)))
    rng = np.random.default_rng(0)  # a public constant
    normal = rng.normal(size=(_DRAWS, len(roots[0]), len(roots[1])))
    found = largest(np.matmul(np.matmul(roots[0], normal), roots[1].T))
    return float(found.mean()), float(found.std())
