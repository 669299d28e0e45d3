"""All that pearsonr and linregress look at: the order of rows, five moments, a sampling variance.

The covariance of two columns needs noise for the whole of their bounds. Kendall's score needs none
for bounds, so a part of the budget asks it whether the columns are independent, unless there are so
many rows that the covariance knows as well. Derivation: docs/proofs/correlation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from privatest.core.noise import NoiseSource
from privatest.data.samples import Sample, TwoSamples, beside
from privatest.independence.line import Line, leap_pvalue, line_pvalue
from privatest.laws.law import Alternative
from privatest.laws.rank_correlation import kendall_law
from privatest.mechanisms.additive import linf_mean, linf_scale
from privatest.mechanisms.lattice import noisy_integer, part_law
from privatest.statistics.linear import (
    Products,
    line_moments,
    line_sensitivity,
    mean_square,
    mean_square_sensitivity,
)
from privatest.statistics.rank_correlation import kendall_score, kendall_width

__all__ = ["LineRelease", "Shares", "release_line", "shares_of"]

_BELOW = 1 - 1e-12  # parts are rounded down, so that they never sum to more than epsilon
_SQUARE = 0.1  # of epsilon, for the sampling variance behind an interval
_ROWS = 100.0  # n epsilon over this is where squares are cut off: their noise is about 1/7 then
_SMALLEST_LIMIT, _LARGEST_LIMIT = 10.0, 1000.0  # with a larger one noise would not fall any more
_LEAST = 0.2
# of epsilon, for ranks: over sqrt(n) epsilon, so that their noise is half of chance; within limits
_RANKS, _FEWEST, _MOST = 18.0, 0.1, 0.5
_ENOUGH = 1e6  # n epsilon² from which on the covariance needs no help
_LEVEL = 0.85  # of the level, for ranks where both are asked


@dataclass(frozen=True, slots=True)
class Shares:
    """How epsilon is divided; public.

    Attributes
    ----------
    ranks, moments, square : float
        What each release spends; 0 if it is left out.
    limit : float
        Where squares are cut off.
    """

    ranks: float
    moments: float
    square: float
    limit: float


def shares_of(n: int, rows_per_person: int, epsilon: float) -> Shares:
    """Divide epsilon by public numbers only."""
    epsilon *= _BELOW
    limit = min(n * epsilon / _ROWS, _LARGEST_LIMIT * rows_per_person)
    square = _SQUARE if limit >= _SMALLEST_LIMIT * rows_per_person else 0.0
    size = n * (epsilon / rows_per_person) ** 2
    ranks = min(max(_RANKS / math.sqrt(size), _FEWEST), _MOST) if size < _ENOUGH else 0.0
    return Shares(ranks * epsilon, (1 - square - ranks) * epsilon, square * epsilon, limit)


@dataclass(frozen=True, slots=True)
class LineRelease:
    """What was released, and a p-value that follows from the ranks.

    Attributes
    ----------
    line : Line
        Noisy moments.
    ranks : float or None
        The p-value of Kendall's score, if it was asked.
    """

    line: Line
    ranks: float | None

    def pvalue(self, alternative: Alternative, count: int, rng: np.random.Generator) -> float:
        """Return the p-value of independence: ranks, where asked, have most of the level."""
        found = line_pvalue(self.line, alternative, count, rng)
        if self.ranks is None:
            return found
        found = max(found, leap_pvalue(self.line, alternative, count, rng))
        return min(1.0, self.ranks / _LEVEL, found / (1 - _LEVEL))


def release_line(
    sides: TwoSamples,
    epsilon: float,
    alternative: Alternative,
    products: Callable[[Line, float], Products],
    noise: NoiseSource,
) -> LineRelease:
    """Release the ranks' score, the moments, and the sampling variance.

    Parameters
    ----------
    sides : TwoSamples
        Two columns on [0, 1].
    epsilon : float
        What is spent in all.
    alternative : {"two-sided", "greater", "less"}
        Which score of the ranks is released: its absolute value, itself or its negative.
    products : callable
        From released moments to what rows add to an estimate.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** Of the score 2 (n - 1), of the moments 2/n each, of the mean square its limit
    over n, times the rows of a person.

    **Privacy** Three releases whose epsilons sum to at most ``epsilon``.
    """
    n, people = len(sides.x), sides.rows_per_person
    shares = shares_of(n, people, epsilon)
    ranks = _rank_pvalue(sides, shares.ranks, alternative, noise) if shares.ranks else None
    pairs, sensitivity = beside(*sides), line_sensitivity(n, people)
    moments = line_moments(pairs)
    released = linf_mean(moments, sensitivity=sensitivity, epsilon=shares.moments, noise=noise)
    line = Line.of(n, released, linf_scale(sensitivity, shares.moments))
    if shares.square:
        wanted = products(line, shares.limit)
        line = replace(line, excess=_excess(pairs, wanted, shares, people, noise))
    return LineRelease(line, ranks)


def _rank_pvalue(
    sides: TwoSamples, epsilon: float, alternative: Alternative, noise: NoiseSource
) -> float:
    """Release Kendall's score, and return its p-value: exact for every n, ties or not."""
    n = len(sides.x)
    labels = noise.permutation(n), noise.permutation(n)
    score = kendall_score(sides.x.values, sides.y.values, *labels)
    value = abs(score) if alternative == "two-sided" else -score if alternative == "less" else score
    law = part_law(kendall_width(n) * sides.rows_per_person, epsilon)
    noisy = noisy_integer(value, law=law, noise=noise)
    return kendall_law(n).pvalue(noisy, law, alternative)


def _excess(
    pairs: Sample, wanted: Products, shares: Shares, people: int, noise: NoiseSource
) -> float:
    """Release the sampling variance over that of normal rows."""
    square = np.array([mean_square(pairs, wanted)])
    moved = mean_square_sensitivity(len(pairs), people, wanted.limit)
    (noisy,) = linf_mean(square, sensitivity=moved, epsilon=shares.square, noise=noise)
    error = math.sqrt(2) * linf_scale(moved, shares.square)
    return max(float(noisy) + error, _LEAST) / _kept(wanted.limit)


@lru_cache(maxsize=64)
def _kept(limit: float) -> float:
    """Return E min(p², limit) for the product p of two normals: what a limit leaves of 1."""
    from scipy.special import ndtri  # noqa: PLC0415

    squares = ndtri((np.arange(1000) + 0.5) / 1000) ** 2
    return float(np.minimum(np.outer(squares, squares), limit).mean())
