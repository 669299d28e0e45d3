"""Kuiper's distance of a sample to a location-scale family, within a declared slack.

The distance is the minimum of k1 + k2 over feasible levels (k1, k2) of
:mod:`privatest.statistics.location_scale`. It is not convex in k1, so a local search is not
enough: [0, best) is cut into cells of k1, and each cell gets a lower bound from every certificate
found so far. The smallest k2 falls as k1 grows; in the cell (l, u] the sum is at least
l + k2(u). Proof: docs/proofs/location-scale.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.families import Family
from privatest.statistics.location_scale import QUANTILE_SLACK, first_feasible, ks_fit
from privatest.statistics.location_scale_program import Certificate, GridSample

__all__ = ["kuiper_fit", "kuiper_fit_sensitivity"]

_SPLIT = 8  # a cell that is still open is cut into that many
_ROUNDING = 2.0**-48  # of a certificate's sums in floats, relative to the sizes of their terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def kuiper_fit_sensitivity(steps: int, slack: int, rows_per_person: int = 1) -> int:
    """Bound how far :func:`kuiper_fit` moves if one person's records are replaced.

    ``steps`` for a replaced record, ``slack`` because the minimum is found up to it, and one
    step for each level and neighbour because quantiles are.
    """
    return rows_per_person * steps + slack + 4 * QUANTILE_SLACK


def kuiper_fit(sample: GridSample, family: Family, steps: int, slack: int) -> int:
    """Return a number in [T, T + slack], T = n · steps · the smallest Kuiper distance, rounded up.

    T is never below ``steps``: with records at the bounds the distance may be below 1/n.

    Parameters
    ----------
    sample : GridSample
        From :func:`privatest.statistics.location_scale.on_grid`.
    family : Family
        Where members come from.
    steps : int
        Grid steps for a distance of 1/n; even.
    slack : int
        At least 2.
    """
    search = _Search(sample, family, steps)
    width = max(slack // 2, 1)
    while width < search.best // 64:
        width *= _SPLIT
    lows = np.arange(0, search.best, width, dtype=np.int64)
    while True:
        lows = search.close(lows, width, max(slack, 2 * width))
        if width == max(slack // 2, 1):
            return max(search.best, steps)
        width //= _SPLIT
        lows = (lows[:, None] + width * np.arange(_SPLIT, dtype=np.int64)).ravel()
        lows = search.still_open(lows, width, slack)


class _Search:
    """The best pair so far, and what is known about all others."""

    def __init__(self, sample: GridSample, family: Family, steps: int) -> None:
        self.sample, self.family, self.steps = sample, family, steps
        self.total = sample.size * steps
        self.best = min(2 * ks_fit(sample, family, steps), self.total)
        self.certificates: list[Certificate] = []
        self.last = self.best // 2

    def try_first(self, first: int) -> None:
        """Find the smallest second level for a first one, and keep the certificate."""
        least = self.family.least[1]
        # (first, total - first) puts all records at one point; from there on up all is feasible
        most = max(self.total - first, least)
        guess = min(max(self.last, least), most)
        fit = first_feasible(self.sample, self.family, self.steps, first, (least, guess, most))
        self.best = min(self.best, first + fit.level)
        self.last = fit.level
        if fit.certificate is not None:
            self.certificates.append(fit.certificate)

    def close(self, lows: Integers, width: int, gap: int) -> Integers:
        """Try cells, most promising first, until all bounds are within ``gap`` of the best.

        Returns the cells that a finer cut has to look at. Each cell is tried at most once.
        """
        bounds = self.bounds(lows, width)
        tried = np.zeros(lows.size, dtype=np.bool_)
        while True:
            waiting = np.where(tried | (bounds >= self.best - gap), self.total + 1, bounds)
            if lows.size == 0 or (k := int(np.argmin(waiting))) < 0 or waiting[k] > self.total:
                return lows
            tried[k] = True
            known = len(self.certificates)
            self.try_first(max(int(lows[k]) + width, self.family.least[0]))
            for certificate in self.certificates[known:]:
                bounds = np.maximum(bounds, lows + self._second(certificate, lows + width, width))

    def still_open(self, lows: Integers, width: int, slack: int) -> Integers:
        """Drop the cells that cannot hold anything better than the best by more than slack."""
        return lows[self.bounds(lows, width) < self.best - slack]

    def bounds(self, lows: Integers, width: int) -> Integers:
        """Lower bounds on the sum in the cells (low, low + width]."""
        result = np.maximum(lows, self.steps)  # T is, too
        for certificate in self.certificates:
            result = np.maximum(result, lows + self._second(certificate, lows + width, width))
        return result

    def _second(self, certificate: Certificate, first: Integers, width: int) -> Integers:
        """Lower bounds on the second level that a certificate gives, to multiples of width.

        Sum of weights · b(k2) >= sum of weights · a(k1) is necessary. Both sums are rounded to
        the safe side, and the left one grows with k2.
        """
        nodes = np.arange(0, self.best + width, width, dtype=np.int64)
        left, right = np.zeros(nodes.size), np.zeros(first.size)
        whole = float(sum(certificate.weights))
        for i, j, weight in zip(
            certificate.upper, certificate.lower, certificate.weights, strict=True
        ):
            share = weight / whole
            b = self.family.upper_limits(i * self.steps + nodes, self.total)
            a = self.family.lower_limits((j + 1) * self.steps - first, self.total)
            left += share * (b + _ROUNDING * np.abs(np.where(np.isinf(b), 0, b)))
            right += share * (a - _ROUNDING * np.abs(np.where(np.isinf(a), 0, a)))
        place = np.searchsorted(np.maximum.accumulate(left), right)  # all nodes before are too low
        seconds: Integers = np.maximum(place - 1, 0) * width
        return seconds
