"""Sums of features over secret bins of rows, and their second moment, in one pass.

Proof of the rounding bound: docs/proofs/exact-sums.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privatest.core.secret_order import SecretBins
from privatest.engines.summaries import FixedPoint, fixed_rounding
from privatest.engines.sums import PIECE, UNIT_ROUNDOFF, Terms, pieces, square_sums
from privatest.kernels.sums import sum_rows
from privatest.statistics.bins import bin_order
from privatest.statistics.moments import moments_rounding

__all__ = ["BinnedMoments", "binned_rounding"]

Floats = NDArray[np.float64]


class BinnedMoments:
    """Sums of psi over the rows of each bin, and of psi · psi' over all rows.

    Parameters
    ----------
    psi : function
        Rows to rows × dimension, each row by itself; it travels to other processes.
    dimension : int
        Number of features.
    bins : SecretBins
        Which bin each row is in.
    sizes : tuple of int
        Rows of the sample, and the most in a bin.
    radius : float
        No psi is longer than this.
    """

    __slots__ = ("bins", "psi", "second", "sums")

    def __init__(
        self, psi: Terms, dimension: int, bins: SecretBins, sizes: tuple[int, int], radius: float
    ) -> None:
        self.psi, self.bins = psi, bins
        n, largest = sizes
        self.sums = FixedPoint((bins.count, dimension), largest * radius)
        self.second = FixedPoint((dimension, dimension), n * radius**2)

    def update(self, rows: Floats, start: int) -> None:
        """Put a block in the order of its bins, and add it."""
        bins = self.bins.of_rows(start, start + len(rows))
        order, edges = bin_order(bins, self.bins.count)
        sums, second = np.zeros(self.sums.units.shape), np.zeros(self.second.units.shape)
        first = 0
        for piece in pieces(rows[order]):
            features = self.psi(piece)
            within = np.clip(edges - first, 0, len(piece))
            sums += sum_rows(features, within)
            second += square_sums(features)
            first += len(piece)
        self.sums.add(sums)
        self.second.add(second)

    def merge(self, other: BinnedMoments) -> None:
        """Add other blocks."""
        self.sums.merge(other.sums)
        self.second.merge(other.second)


def binned_rounding(
    n: int, least: int, count: int, largest: int, radius: float, feature_error: float, width: int
) -> tuple[float, float]:
    """Bound the rounding, in l2, of means by way of ``count`` bins, and of the second moment.

    Parameters
    ----------
    n, least : int
        Rows of all samples, and of the smallest: a row counts 1/least at most.
    count, largest : int
        Number of bins, and the most rows in one.
    radius, feature_error, width
        Largest norm of the features of a row, the l2 error in them, and how many they are.
    """
    _, second = moments_rounding(n, radius, width, feature_error)
    # within a piece a bin is summed one after the other, then over pieces and over bins
    chain = 1.01 * (min(PIECE, largest) + 32 + count) * UNIT_ROUNDOFF
    fixed = math.sqrt(width) * count * fixed_rounding(n, largest * radius) / least
    return feature_error + chain * (radius + feature_error) + fixed, second
