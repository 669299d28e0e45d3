"""From noisy counts below the edges of a grid to an estimate and intervals: post-processing only.

The place that is looked for has a count below it whose law is known: binomial for a quantile, that
of Mann and Whitney for a shift. A cell is kept if the noisy counts below its two ends are such as
that law and the noise allow; the interval runs from the first cell kept to the last one.
Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.intervals import Interval
from privatest.laws.cumulative import noisy_tails
from privatest.laws.law import Law

__all__ = ["Curve"]

_TINY = 1e-9  # by which counts that are equal are made to rise
_FLAT = 1e-4  # more than all of them together

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Released counts below edges, and the cells between which something is looked for.

    Attributes
    ----------
    counts : ndarray
        Noisy counts below edges; those of the first and last are exact.
    ones, halves : ndarray of int
        How many discrete Laplace numbers are in each count, with weight ±1 and ±1/2.
    scale : float
        Of each of them.
    places : ndarray
        Where the edges are.
    left, right : ndarray
        The ends of each cell that may hold what is looked for.
    under, over : ndarray of int
        For each of these cells an edge whose count is not above that at any place in the cell, and
        one whose count is not below it.
    whole : bool
        Whether what is looked for is one of the integers.
    """

    counts: Floats
    ones: Integers
    halves: Integers
    scale: float
    places: Floats
    left: Floats
    right: Floats
    under: Integers
    over: Integers
    whole: bool = False

    def pvalues(self, law: Law) -> Floats:
        """Return, for each cell, the least alpha at which the interval leaves it out."""
        low, high = self._tails(law)
        each = np.minimum(1.0, 2 * np.minimum(low[self.over], high[self.under]))
        # an interval has no holes: a cell between two that are kept is kept
        before = np.maximum.accumulate(each)
        after = np.maximum.accumulate(each[::-1])[::-1]
        return np.minimum(before, after)

    def _tails(self, law: Law) -> tuple[Floats, Floats]:
        """Return P(count <= what was released) and P(count >= it), at each edge."""
        kinds, which = np.unique(np.stack([self.ones, self.halves]), axis=1, return_inverse=True)
        low, high = np.empty(len(self.counts)), np.empty(len(self.counts))
        for kind, (ones, halves) in enumerate(kinds.T.tolist()):
            edges = np.flatnonzero(which.ravel() == kind)
            low[edges], high[edges] = noisy_tails(law, self.scale, ones, halves, self.counts[edges])
        return low, high

    def interval(self, level: float, law: Law, pvalues: Floats | None = None) -> Interval:
        """Return the interval at a level, with the part of its width that is not noise.

        ``pvalues`` are those of the law if they are known already.
        """
        pvalues = self.pvalues(law) if pvalues is None else pvalues
        kept = np.flatnonzero(pvalues > min(1 - level, pvalues.max() * (1 - 1e-12)))
        low, high = float(self.left[kept[0]]), float(self.right[kept[-1]])
        return Interval.around(low, high, level, self._without_noise(level, law))

    def _without_noise(self, level: float, law: Law) -> float:
        """Return the width that the released curve would have if it were exact."""
        sums = np.cumsum(law.masses)
        tail = (1 - level) / 2
        ends = np.searchsorted(sums, [tail, 1 - tail])
        ranks = law.values[np.minimum(ends, len(sums) - 1)]
        first, last = np.interp(ranks, self._rising(), self.places)
        return float(last - first)

    def _rising(self) -> Floats:
        """Return the noisy counts made to rise: halfway between the two nearest bounds."""
        above = np.maximum.accumulate(self.counts)
        below = np.minimum.accumulate(self.counts[::-1])[::-1]
        tiny = np.arange(len(above)) * _TINY  # no two are equal, so that it can be inverted
        return np.clip((above + below) / 2, 0.0, self.counts[-1]) + tiny

    def place_of(self, rank: float) -> float:
        """Return where the count reaches ``rank``."""
        rising = self._rising()
        place = float(np.interp(rank, rising, self.places))
        if self.whole:  # the smallest integer with so many not above it: they are below the next
            return float(max(math.ceil(place) - 1, self.left[0]))
        # between the first place with so many below it and the last one
        return (place + float(np.interp(rank + _FLAT, rising, self.places))) / 2
