"""How widely rows vary in the features of each statistic of a family, whatever their group.

A statistic's values under permutations are large where the pooled rows vary widely. That is the
same for every permutation, moves little when a row is replaced, and says where a statistic alone
would reject: a family weighs its members by it. Proof: docs/proofs/portfolio.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.data.domain import Domain
from privatest.kernels.kernels import Kernel, paired_kernels

__all__ = ["PooledVariances", "Varying", "pooled_variances", "secret_pairs"]

MOST_PAIRS = 1 << 15  # more would take time, and sharpen nothing that decides power
# Errors of computed features, products and means over pairs are below 2^-32 in each of two
# neighbours; no feature has a norm above 1.
_ROUNDING = 2.0**-30


class Varying(Protocol):
    """A map whose members know how widely rows vary in their features."""

    @property
    def spreads(self) -> tuple[float, ...]:
        """Largest distance between the features of two rows, for each member."""

    @property
    def varies(self) -> bool:
        """Whether :meth:`variances` depends on the rows."""

    def variances(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Half the mean squared distance between features of a's rows and b's, for each member."""


@dataclass(frozen=True, slots=True)
class PooledVariances:
    """For each statistic: the variance of its features over pooled rows, which is private.

    ``moves`` bounds how far it moves between neighbours, ``most`` how large it can be; both are
    public.
    """

    values: NDArray[np.float64]
    moves: NDArray[np.float64]
    most: NDArray[np.float64]


def secret_pairs(
    x: NDArray[np.float64], y: NDArray[np.float64], noise: NoiseSource
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pair rows of both samples at random, whatever their sample; each is in one pair at most.

    The pairs must not depend on the order in which rows are put into bins: then permuting rows
    and pairs together changes nothing, and the permutation test stays exact.
    """
    total = len(x) + len(y)
    count = min(total // 2, MOST_PAIRS)
    chosen = noise.permutation(total)[: 2 * count]
    rows = np.empty((len(chosen), x.shape[1]))
    in_x = chosen < len(x)
    rows[in_x], rows[~in_x] = x[chosen[in_x]], y[chosen[~in_x] - len(x)]
    return rows[:count], rows[count:]


def pooled_variances(
    pairs: tuple[NDArray[np.float64], NDArray[np.float64]],
    kernels: Sequence[Kernel],
    maps: Sequence[Varying],
    domain: Domain,
    *,
    replaced: int,
) -> PooledVariances:
    """Estimate each member's variance from pairs of rows.

    Notes
    -----
    **Sensitivity** A row is in one pair at most, and half the squared distance of a pair is
    between 0 and c²/2: each of the ``replaced`` rows moves the mean by at most c²/(2 pairs).
    """
    a, b = pairs
    parts = [1 - paired_kernels(kernels, a, b, domain).mean(axis=1)] if kernels else []
    values = np.concatenate([*parts, *(part.variances(a, b) for part in maps)])
    spreads = [kernel.spread(domain) for kernel in kernels]
    spreads += [spread for part in maps for spread in part.spreads]
    varies = [True] * len(kernels) + [part.varies for part in maps for _ in part.spreads]
    most = np.square(spreads) / 2
    moves = np.minimum(replaced * most / len(a), most) + _ROUNDING
    return PooledVariances(np.clip(values, 0.0, most), np.where(varies, moves, 0.0), most)
