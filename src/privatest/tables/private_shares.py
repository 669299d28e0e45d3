"""Shares of two groups, where the group of a row is private too: a noisy 2 x 2 table.

Everything here is computed from released numbers. Proof: docs/proofs/proportions.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.laws.law import Alternative
from privatest.laws.proportions import NO_NOISE, share_interval
from privatest.mechanisms.additive import CountNoise
from privatest.tables.public_shares import (
    FEW,
    Shares,
    Uniforms,
    Wanted,
    binomial_draws,
    share_grid,
    sides_of,
    turned,
)

__all__ = ["PrivateShares", "SumOfTwo"]

Floats = NDArray[np.float64]
_POINTS = 7  # of each nuisance: the share of a group, and that of successes
_DRAWS, _SEED = 9999, 0  # of intervals: public and fixed, so that they can be repeated
_FAR = 60.0  # shares beyond which no end is looked for


@dataclass(frozen=True, slots=True)
class SumOfTwo:
    """The noise of a margin: a sum of the noise of two cells."""

    cell: CountNoise

    def survival(self, x: ArrayLike) -> Floats:
        """Return P(noise >= x)."""
        values = np.asarray(x, dtype=np.float64)
        if self.cell.kind == "gaussian":
            from scipy.special import ndtr  # noqa: PLC0415

            normal: Floats = ndtr(-values / (self.cell.scale * math.sqrt(2)))
            return normal
        # P(j) is proportional to q^|j| (|j| + (1 + q²)/(1 - q²))
        q, step = math.exp(-1 / self.cell.scale), -math.expm1(-1 / self.cell.scale)
        least = np.ceil(values)
        start = np.maximum(least, 1 - least)  # P(noise >= -k) = 1 - P(noise >= k + 1)
        inner = start + (1 + q * q) / (step * (1 + q)) + q / step
        tail = (step / (1 + q)) ** 2 * np.exp(-start / self.cell.scale) * inner / step
        result: Floats = np.where(least >= 1, tail, 1 - tail)
        return result


@dataclass(frozen=True, slots=True)
class PrivateShares:
    """What is released of two private groups.

    Attributes
    ----------
    cells : tuple of float
        Noisy successes and failures of the first group, then those of the second.
    total : int
        The public number of rows of both.
    noise : CountNoise
        Of each cell.
    """

    cells: tuple[float, float, float, float]
    total: int
    noise: CountNoise

    @property
    def scarce(self) -> bool:
        """Whether a group has fewer than ten successes or failures, by what was released."""
        return min(self.cells) < FEW

    @property
    def finest(self) -> float:
        """The smallest level at which ends can be computed."""
        return 10 / (_DRAWS + 1)

    @property
    def estimates(self) -> Floats:
        """Shares in [0, 1]."""
        return np.clip(self._raw(), 0, 1)

    def _raw(self) -> Floats:
        table = np.reshape(self.cells, (2, 2))
        sizes = table.sum(axis=1)
        return np.where(sizes >= 1, table[:, 0] / np.maximum(sizes, 1), 0.5)

    def ends(self, side: float, wanted: Wanted = "both") -> Shares:
        """Return shares with ends that are each missed with ``side``; they may be infinite."""
        groups = zip((self.cells[:2], self.cells[2:]), *sides_of(wanted, 2), strict=True)
        low, high = np.transpose([self._ends(*cells, side, *asked) for cells, *asked in groups])
        return self._raw(), low, high

    def within(self, side: float) -> Shares:
        """Return shares in [0, 1]."""
        _, low, high = self.ends(side)
        return self.estimates, np.clip(low, 0, 1), np.clip(high, 0, 1)

    def without_noise(self, side: float) -> Shares:
        """Return shares as if the table had no noise."""
        sizes = [self._size(sum(self.cells[:2])), self._size(sum(self.cells[2:]))]
        pairs = [
            share_interval(n, n * share, NO_NOISE, side, side)
            for n, share in zip(sizes, self.estimates.tolist(), strict=True)
        ]
        low, high = np.transpose(pairs)
        return self.estimates, low, high

    def _size(self, noisy: float) -> int:
        return round(min(max(noisy, 1.0), self.total))

    def _ends(
        self, won: float, lost: float, side: float, lower: bool, upper: bool
    ) -> tuple[float, float]:
        """Return shares s at which won - s (won + lost), whose mean is 0, is not too far from 0.

        An end that is not asked for is NaN. The size of the group is known up to noise only. If
        it may as well be 0, so may be every share.
        """
        size = won + lost
        if size < 1 or float(SumOfTwo(self.noise).survival(size)) > side:
            return -math.inf, math.inf
        n = self._size(size)
        noise, uniforms = _draws(self.noise)

        def beyond(share: float) -> float:
            known = min(max(share, 0.0), 1.0)
            drawn = binomial_draws(n, known, uniforms) - n * known
            drawn += (1 - share) * noise[0] - share * noise[1]
            return float(np.count_nonzero(drawn >= won - share * size)) / _DRAWS

        middle = won / size
        low = _crossing(lambda share: beyond(share) - side, middle, -_FAR) if lower else math.nan
        high = (
            _crossing(lambda share: 1 - beyond(share) - side, middle, _FAR) if upper else math.nan
        )
        return low, high

    def statistic(self, cells: Floats) -> Floats:
        """Return a signed z of noisy tables (cells last): positive if the first share is larger.

        Its variance includes that of the noise, with its part of second order: it is positive
        whatever the table.
        """
        a, b, c, d = np.moveaxis(cells, -1, 0)
        n, v = self.total, self.noise.variance
        first = np.clip((a + b) / n, 0, 1)
        won = np.clip((a + c) / n, 0, 1)
        shares = first * (1 - first) * won * (1 - won)
        slopes = (first**2 + (1 - first) ** 2) * (won**2 + (1 - won) ** 2)
        result: Floats = (a * d - b * c) / n / np.sqrt(n * shares + v * slopes + 2 * (v / n) ** 2)
        return result

    def pvalue(
        self, alternative: Alternative, n_simulations: int, rng: np.random.Generator
    ) -> float:
        """Return the largest p-value over group shares and common shares that fit."""
        missed = 1 / (n_simulations + 1)
        a, b, c, _ = self.cells
        firsts, wons = (self._margin(noisy, missed / 4) for noisy in (a + b, a + c))
        observed = turned(self.statistic(np.array(self.cells)), alternative)
        noise, seed = self.noise.draws((n_simulations, 4), rng), int(rng.integers(2**63))
        most, apart = 0, np.ascontiguousarray(noise.T)
        for first in firsts:
            same = np.random.default_rng(seed)  # the same random numbers for every pair
            sizes = same.binomial(self.total, first, size=n_simulations)
            others, state = self.total - sizes, same.bit_generator.state
            for won in wons:
                same.bit_generator.state = state
                here, there = same.binomial(sizes, won), same.binomial(others, won)
                cells = np.stack([here, sizes - here, there, others - there]) + apart
                drawn = turned(self.statistic(cells.T), alternative)
                most = max(most, int(np.count_nonzero(drawn >= observed)))
        return min(1.0, (1 + most) * missed + missed)

    def _margin(self, noisy: float, side: float) -> list[float]:
        """Return shares of all rows that fit a noisy margin."""
        law = SumOfTwo(self.noise)
        low, _ = share_interval(self.total, noisy, law, side, 0)
        _, high = share_interval(self.total, noisy + 1, law, 0, side)  # P(at most noisy)
        return share_grid(low, max(low, high), _POINTS)


@lru_cache(maxsize=8)
def _draws(noise: CountNoise) -> tuple[Floats, Uniforms]:
    """Return noise of two cells and uniform numbers, always the same, by the latter's size.

    Whoever searches for numbers in their order finds them several times as fast.
    """
    rng = np.random.default_rng(_SEED)
    cells = noise.draws((2, _DRAWS), rng) + rng.uniform(-0.5, 0.5, size=(2, _DRAWS))
    uniforms = rng.uniform(size=_DRAWS)
    order = np.argsort(uniforms)
    return cells[:, order], Uniforms(uniforms[order])


def _crossing(excess: Callable[[float], float], middle: float, far: float) -> float:
    """Return where a function that is positive in the middle becomes negative, or infinity."""
    step = math.copysign(1 / 64, far)
    inside, outside = middle, middle + step
    while excess(outside) >= 0:
        step *= 2
        inside, outside = outside, outside + step
        if abs(outside) > abs(far):
            return math.copysign(math.inf, far)
    for _ in range(18):
        half = 0.5 * (inside + outside)
        inside, outside = (half, outside) if excess(half) >= 0 else (inside, half)
    return outside
