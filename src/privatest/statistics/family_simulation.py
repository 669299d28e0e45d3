"""Draws of the distance between a sample of a location-scale family and the family.

The distance does not change if all records are shifted and scaled, so its law under the null
hypothesis is that of the standard member: it is public. Many samples are fitted side by side, in
floats, which is enough here: privacy does not depend on it. What comes out is the
Kolmogorov-Smirnov distance up to about 1e-9, and an upper bound of Kuiper's (a search over
first levels that a hidden second minimum may escape): p-values are then too large, not too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.families import Family

__all__ = ["simulate_distances"]

_CELLS = 1 << 17  # numbers held in one array at a time
_CLOSE = 1e-9
_MOST_PROGRAMS = 40
_MOST_CUTS = 60
_HALVINGS = 33

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def simulate_distances(
    family: Family, statistic: str, n: int, count: int, rng: np.random.Generator
) -> Floats:
    """Return ``count`` independent draws of sqrt(n) · distance under the null hypothesis.

    Parameters
    ----------
    family : Family
        Where samples come from, and what they are fitted to.
    statistic : {"ks", "kuiper"}
        The distance.
    n : int
        Size of each sample.
    count : int
        Number of draws.
    rng : Generator
        Public randomness.
    """
    rows = max(1, _CELLS // n)
    parts = []
    for start in range(0, count, rows):
        uniforms = rng.uniform(size=(min(rows, count - start), n))
        # 0 has no quantile; half a float's resolution does
        x = np.sort(family.sample(np.maximum(uniforms, 2.0**-54)), axis=1)
        x -= x[:, [(n - 1) // 2]]
        batch = _Batch(x, family)
        parts.append(batch.ks() if statistic == "ks" else batch.kuiper())
    distances: Floats = np.sqrt(n) * np.concatenate(parts)
    return distances


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """One line above each row's G: height + slope beta, from two records."""

    upper: Indices
    lower: Indices
    slope: Floats
    height: Floats

    def take(self, chosen: Indices | NDArray[np.bool_]) -> _Lines:
        return _Lines(
            self.upper[chosen], self.lower[chosen], self.slope[chosen], self.height[chosen]
        )

    def put(self, chosen: Indices, other: _Lines) -> None:
        self.upper[chosen], self.lower[chosen] = other.upper, other.lower
        self.slope[chosen], self.height[chosen] = other.slope, other.height


class _Batch:
    """Samples as rows, sorted."""

    def __init__(self, x: Floats, family: Family) -> None:
        self.x, self.family = x, family
        self.n = x.shape[1]

    def ks(self) -> Floats:
        """Smallest c for which (c, c) is feasible."""
        guess = min(0.5, 0.5 / self.n + 0.45 / self.n**0.5)
        return self._first(np.arange(len(self.x)), None, np.full(len(self.x), guess))

    def kuiper(self) -> Floats:
        """Smallest c1 + c2 found: a coarse look at all plausible c1, then two finer ones."""
        rows = np.arange(len(self.x))
        level = self.ks()
        best, where = np.full(len(rows), 2.0), level.copy()
        width = 0.8 * level
        for places in (np.linspace(-1, 1, 9), np.linspace(-0.75, 0.75, 4), np.linspace(-1, 1, 4)):
            centre, second = where.copy(), level
            for place in places:
                first = np.clip(centre + place * width, 1e-12, 1.0)
                second = self._first(rows, first, second)  # the last one is a good guess
                total = first + second
                better = total < best
                best[better], where[better] = total[better], first[better]
            width = width / 5
        found: Floats = np.minimum(best, 1.0)
        return found

    def _first(self, rows: Indices, first: Floats | None, guess: Floats) -> Floats:
        """Smallest c with (c, c) or (first, c) feasible: follow the certificates' roots.

        Every root is a lower bound. We are done at a level that is feasible, which is where its
        own root is not above it, and that is not far above the largest root.
        """
        level, low = guess.copy(), np.zeros(len(guess))
        for _ in range(_MOST_PROGRAMS):
            start = None if first is None else first[rows]
            left, right, weight = self._program(self.x[rows], *self._limits(start, level[rows]))
            root = self._root(left, right, weight, start)
            root[right.slope > 0] = 0.0  # no limit on G, no root
            low[rows] = np.maximum(low[rows], root)
            above = level[rows] - low[rows]
            open_ = (above < 0) | (above > _CLOSE)
            rows, limitless = rows[open_], (right.slope > 0)[open_]
            level[rows] = low[rows] + np.where(limitless, 0.5 * above[open_], 0.1 * _CLOSE)
            if rows.size == 0:
                break
        return level

    def _limits(self, first: Floats | None, level: Floats) -> tuple[Floats, Floats]:
        ranks = np.arange(self.n + 1) / self.n  # rounded as in _root: limits end at the same level
        low = level if first is None else first
        return self._lower(ranks[1:] - low[:, None]), self._upper(ranks[:-1] + level[:, None])

    def _lower(self, p: Floats) -> Floats:
        return _quantiles(self.family, p, -np.inf, self.family.upper)

    def _upper(self, p: Floats) -> Floats:
        return _quantiles(self.family, p, self.family.lower, np.inf)

    def _root(self, left: _Lines, right: _Lines, weight: Floats, first: Floats | None) -> Floats:
        """Smallest level that two lines leave open, by bisection."""
        upper = np.stack([left.upper, right.upper]) / self.n
        lower = (np.stack([left.lower, right.lower]) + 1) / self.n
        shares = np.stack([weight, 1 - weight])
        low, high = np.zeros(len(weight)), np.full(len(weight), 0.5 if first is None else 1.0)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            terms = self._upper(upper + middle) - self._lower(
                lower - (middle if first is None else first)
            )
            total = np.where(shares > 0, shares * np.where(shares > 0, terms, 0), 0).sum(axis=0)
            low, high = np.where(total >= 0, low, middle), np.where(total >= 0, middle, high)
        return high

    def _program(self, x: Floats, a: Floats, b: Floats) -> tuple[_Lines, _Lines, Floats]:
        """Kelley's cuts for all rows at once: the two lines at the top of G, and a weight."""
        every = np.arange(len(x))
        first = np.isfinite(a).argmax(axis=1)
        last = self.n - 1 - np.isfinite(b)[:, ::-1].argmax(axis=1)
        left = _lines(x, a, b, np.zeros_like(every), np.full_like(every, self.n - 1))
        right = _lines(x, a, b, last, first)
        rows = every[(left.slope > 0) & (right.slope <= 0)]
        for _ in range(_MOST_CUTS):
            one, two = left.take(rows), right.take(rows)
            beta = np.maximum((two.height - one.height) / (one.slope - two.slope), 0.0)
            shifted = beta[:, None] * x[rows]
            upper, lower = (b[rows] - shifted).argmin(axis=1), (shifted - a[rows]).argmin(axis=1)
            cut = _lines(x[rows], a[rows], b[rows], upper, lower)
            top = one.height + one.slope * beta
            lowered = cut.height + cut.slope * beta < top - 1e-13 * (1 + np.abs(top))
            rows, cut = rows[lowered], cut.take(lowered)
            rising = cut.slope > 0
            left.put(rows[rising], cut.take(rising))
            right.put(rows[~rising], cut.take(~rising))
            if rows.size == 0:
                break
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = -right.slope / (left.slope - right.slope)
        return left, right, np.where(left.slope <= 0, 1.0, np.clip(weight, 0.0, 1.0))


def _lines(x: Floats, a: Floats, b: Floats, upper: Indices, lower: Indices) -> _Lines:
    rows = np.arange(len(x))
    return _Lines(upper, lower, x[rows, lower] - x[rows, upper], b[rows, upper] - a[rows, lower])


def _quantiles(family: Family, p: Floats, below: float, above: float) -> Floats:
    values = np.where(p <= 0, below, above)
    inside = (p > 0) & (p < 1)
    values[inside] = family.ppf(p[inside])
    return values
