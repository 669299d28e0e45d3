"""Shares of groups whose sizes are public: one noisy number of successes for each.

Everything here is computed from released numbers. Proof: docs/proofs/proportions.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privatest.laws.counts import binomial_masses
from privatest.laws.law import Alternative
from privatest.laws.proportions import NO_NOISE, open_end, share_interval, tulap_variance
from privatest.laws.tulap import LatticeTulap

__all__ = [
    "FEW",
    "PublicShares",
    "Shares",
    "Uniforms",
    "Wanted",
    "binomial_draws",
    "share_grid",
    "sides_of",
    "turned",
]

FEW = 10  # successes or failures: with fewer, intervals of differences misjudge a single one

Floats = NDArray[np.float64]
Shares = tuple[Floats, Floats, Floats]
"""Estimates of the groups' shares, and lower and upper ends."""
Wanted = Literal["both", "least difference", "largest difference"]
"""Which ends are computed: all, or those behind one end of the first share minus the second."""

_POINTS = 33  # common shares that are tried
_AT_ONCE = 2048  # simulated counts whose statistics are computed together: they stay in a cache
_REACH = 1.65  # noise variances: up to there beyond 0 and n the statistic is monotone


@dataclass(frozen=True, slots=True)
class PublicShares:
    """What is released of groups with public sizes.

    Attributes
    ----------
    counts : tuple of float
        Noisy numbers of successes.
    sizes : tuple of int
        Rows of each group.
    noise : LatticeTulap
        Of each count.
    """

    counts: tuple[float, ...]
    sizes: tuple[int, ...]
    noise: LatticeTulap

    @property
    def scarce(self) -> bool:
        """Whether a group has fewer than ten successes or failures, by what was released."""
        pairs = zip(self.counts, self.sizes, strict=True)
        return any(min(count, n - count) < FEW for count, n in pairs)

    @property
    def finest(self) -> float:
        """The smallest level at which ends can be computed."""
        return 1e-9

    @property
    def estimates(self) -> Floats:
        """Shares in [0, 1]."""
        return np.clip(np.array(self.counts) / self.sizes, 0, 1)

    def ends(self, side: float, wanted: Wanted = "both") -> Shares:
        """Return shares as if those beyond 0 and 1 existed; each end is missed with ``side``."""
        groups = zip(self.sizes, self.counts, *sides_of(wanted, len(self.sizes)), strict=True)
        pairs = [
            (
                open_end(n, z, self.noise, side) if lower else math.nan,
                open_end(n, z, self.noise, 1 - side) if upper else math.nan,
            )
            for n, z, lower, upper in groups
        ]
        low, high = np.transpose(pairs)
        return np.array(self.counts) / self.sizes, low, high

    def within(self, side: float) -> Shares:
        """Return shares in [0, 1], of counts that are cut at 0 and n."""
        return self._closed(side, self.noise)

    def without_noise(self, side: float) -> Shares:
        """Return shares as if the counts had no noise."""
        return self._closed(side, NO_NOISE)

    def _closed(self, side: float, noise: LatticeTulap) -> Shares:
        cut = np.clip(self.counts, 0, self.sizes).tolist()
        pairs = zip(self.sizes, cut, strict=True)
        low, high = np.transpose([share_interval(n, z, noise, side, side) for n, z in pairs])
        return self.estimates, low, high

    def statistic(self, counts: Floats) -> Floats:
        """Return how far noisy counts (groups first) are from one common share.

        Of two groups a signed z, which grows with the first count and falls with the second; of
        more a chi-squared. Its variance includes that of the noise.
        """
        variance = tulap_variance(self.noise)
        sizes = np.array(self.sizes, dtype=np.float64).reshape(-1, *[1] * (counts.ndim - 1))
        reach = _REACH * variance
        counts = np.minimum(np.maximum(counts, -reach), sizes + reach)
        pooled = np.clip(counts.sum(axis=0) / sizes.sum(), 0, 1)
        spread = pooled * (1 - pooled) / sizes + variance / sizes**2
        shares = counts / sizes
        if len(sizes) == 2:
            difference = shares[0] - shares[1]
            signed: Floats = difference / np.sqrt(spread.sum(axis=0))
            return signed
        weights = 1 / spread
        middle = (weights * shares).sum(axis=0) / weights.sum(axis=0)
        total: Floats = (weights * (shares - middle) ** 2).sum(axis=0)
        return total

    def pvalue(
        self, alternative: Alternative, n_simulations: int, rng: np.random.Generator
    ) -> float:
        """Return the largest p-value over common shares that fit, plus what they may miss."""
        missed = 1 / (n_simulations + 1)
        side = missed / (2 * len(self.sizes))
        ends = [
            share_interval(n, z, self.noise, side, side)
            for n, z in zip(self.sizes, self.counts, strict=True)
        ]
        low, high = max(end[0] for end in ends), min(end[1] for end in ends)
        if low > high:  # no common share fits; one-sided, shares in the other order may
            order = {"greater": ends[0][1] < ends[1][0], "less": ends[1][1] < ends[0][0]}
            return 1.0 if order.get(alternative, False) else missed
        observed = turned(self.statistic(np.array(self.counts)), alternative)
        uniforms = rng.uniform(size=(2, len(self.sizes), n_simulations))
        noise = self.noise.quantile(np.clip(uniforms[0], 1e-300, None))
        most = 0
        groups = list(zip(self.sizes, map(Uniforms.of, uniforms[1]), strict=True))
        for share in share_grid(low, high, _POINTS):
            counts = np.stack([binomial_draws(n, share, drawn) for n, drawn in groups])
            counts += noise
            larger = 0
            for start in range(0, n_simulations, _AT_ONCE):
                drawn = self.statistic(counts[:, start : start + _AT_ONCE])
                larger += int(np.count_nonzero(turned(drawn, alternative) >= observed))
            most = max(most, larger)
        return min(1.0, (1 + most) * missed + missed)


def sides_of(wanted: Wanted, groups: int) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Return of which groups the lower ends are wanted, and of which the upper ends."""
    if wanted == "both":
        return (True,) * groups, (True,) * groups
    first, second = (True, False), (False, True)
    return (first, second) if wanted == "least difference" else (second, first)


def turned(statistic: Floats, alternative: Alternative) -> Floats:
    """Orient a signed statistic so that large values favour the alternative."""
    if alternative == "two-sided":
        return np.abs(statistic)
    return statistic if alternative == "greater" else -statistic


def share_grid(low: float, high: float, points: int) -> list[float]:
    """Return shares between two, closer together near 0 and 1, where laws change faster."""
    first, last = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
    count = points if high > low else 1
    grid = np.sin(np.linspace(first, last, count)) ** 2
    return np.clip(grid, 0, 1).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class Uniforms:
    """Random numbers in their order of size, and the place of each in the order they came in."""

    ordered: Floats
    places: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, numbers: Floats) -> Uniforms:
        """Sort them once: many laws are drawn from them."""
        order = np.argsort(numbers, kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return cls(numbers[order], places)


def binomial_draws(n: int, share: float, uniforms: Uniforms) -> Floats:
    """Return binomial numbers by inversion: the same random numbers for every share."""
    counts, masses = binomial_masses(n, share)
    # of sorted numbers those of a count are neighbours: it is enough to look for the edges
    edges = np.searchsorted(uniforms.ordered, np.cumsum(masses[:-1]), side="left")
    ends = np.concatenate([[0], edges, [len(uniforms.ordered)]])
    drawn: Floats = np.repeat(counts, np.diff(ends))
    return drawn if uniforms.places is None else drawn[uniforms.places]
