"""Feature maps of the embedding tests: a row becomes a short vector of known length.

Mean embedding (ME): the kernel at public locations, whitened by their Gram matrix. Smooth
characteristic function (SCF): cosines and sines at public frequencies, smoothed. Jitkrittum et
al. (2016), Raj et al. (2019); bounds: docs/proofs/moments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import number
from privatest.data.domain import Domain
from privatest.kernels.fourier import FourierMap, fourier_map
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings

__all__ = [
    "RIDGE",
    "Embedding",
    "MeanEmbedding",
    "SmoothCharacteristic",
    "mean_embedding",
    "smooth_characteristic",
]

RIDGE = 1e-3  # keeps (K + ridge)^(-1/2) small where locations nearly coincide
_NARROWEST, _WIDEST = 1e-100, 1e100  # bandwidths whose squares are floats
_MOST_RADIANS = 1e6  # over a column's width: beyond, angles lose too many digits
_LEAST_EXPONENT = -300.0  # of g: nothing becomes subnormal, which takes longer than other numbers
_CENTRE = 0.5  # of the box in each column


class Embedding(Protocol):
    """A public map from encoded rows to vectors, with the bounds that privacy needs."""

    @property
    def dimension(self) -> int:
        """Number of features."""

    @property
    def radius(self) -> float:
        """No feature vector is longer than this."""

    @property
    def spread(self) -> float:
        """No two feature vectors are further apart than this."""

    @property
    def rounding(self) -> float:
        """Bound on the l2 rounding error of one feature vector."""

    @property
    def unscaling(self) -> NDArray[np.float64]:
        """The linear map from features to kernel values, or to cosines and sines."""

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map rows to rows × dimension."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanEmbedding:
    """psi(x) = (K + ridge I)^(-1/2) (k(x, t_1), ..., k(x, t_J)) at public locations t.

    Notes
    -----
    **Sensitivity** |psi(x)|² = phi' (K + ridge I)^-1 phi is at most the squared length of the
    projection of k(x, ·) on the span of the locations, so at most k(x, x) = 1; for the same
    reason |psi(x) - psi(x')| is at most the kernel's own spread.
    """

    kernel: Kernel
    locations: NDArray[np.float64]  # encoded
    domain: Domain
    whitening: NDArray[np.float64]  # (K + ridge I)^(-1/2), symmetric
    unscaling: NDArray[np.float64]  # its inverse
    spread: float
    rounding: float

    @property
    def dimension(self) -> int:
        """Number of locations."""
        return len(self.locations)

    @property
    def radius(self) -> float:
        """One: a projection of a unit vector."""
        return 1.0

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map rows to features."""
        values: NDArray[np.float64] = gram(self.kernel, rows, self.locations, self.domain)
        return values @ self.whitening


def mean_embedding(kernel: Kernel, locations: NDArray[np.float64], domain: Domain) -> MeanEmbedding:
    """Build the map at public, encoded ``locations``."""
    matrix = gram(kernel, locations, locations, domain)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    regular = np.maximum(values, 0.0) + RIDGE
    whitening = (vectors / np.sqrt(regular)) @ vectors.T
    count = len(locations)
    (entry,) = gram_roundings((kernel,), domain)
    # an error of each kernel value, then of the product with a matrix of norm <= ridge^(-1/2)
    rounding = math.sqrt(count / RIDGE) * (entry + 2 * (count + 8) * UNIT_ROUNDOFF)
    # K itself is off by |E| <= count (entry + 8 count u): (K + E + ridge I)^-1 is larger than
    # (K + ridge I)^-1 by a factor of at most 1 + 2 |E|/ridge, a feature vector by the root of it
    rounding += count * (entry + 8 * count * UNIT_ROUNDOFF) / RIDGE
    return MeanEmbedding(
        kernel=kernel,
        locations=locations,
        domain=domain,
        whitening=(whitening + whitening.T) / 2,
        unscaling=(vectors * np.sqrt(regular)) @ vectors.T,
        spread=kernel.spread(domain),
        rounding=rounding,
    )


@dataclass(frozen=True, slots=True, eq=False)
class SmoothCharacteristic:
    """psi(x) = g(x) (cos(w_j·x), sin(w_j·x)) / sqrt(F) at F public frequencies w.

    g(x) = exp(-|x - centre|²/(2 bandwidth²)) smooths the characteristic function; without a
    bandwidth g = 1.

    Notes
    -----
    **Sensitivity** |psi(x)| = g(x) <= 1. For two rows with angles a_j apart |psi - psi'|² =
    g² + g'² - 2 g g' mean cos a_j is convex in g and in g', so at most
    max(1, 2 - 2 mean cos(min(|w_j|₁, pi))) on the unit box.
    """

    waves: FourierMap
    bandwidth: float | None
    spread: float
    rounding: float

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """Columns × F, in radians per unit of the box."""
        return self.waves.frequencies

    @property
    def dimension(self) -> int:
        """Cosines and sines."""
        return 2 * len(self.waves.amplitudes)

    @property
    def radius(self) -> float:
        """One: the average of cos² + sin²."""
        return 1.0

    @property
    def unscaling(self) -> NDArray[np.float64]:
        """sqrt(F) times the identity."""
        return math.sqrt(self.dimension / 2) * np.eye(self.dimension)

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map rows to features."""
        features = self.waves(rows)
        if self.bandwidth is not None:
            exponent = -np.square(rows - _CENTRE).sum(axis=1) / (2 * self.bandwidth**2)
            features *= np.exp(np.maximum(exponent, _LEAST_EXPONENT))[:, None]
        return features


def smooth_characteristic(
    frequencies: NDArray[np.float64], bandwidth: float | None, domain: Domain
) -> SmoothCharacteristic:
    """Build the map at public ``frequencies`` (one per row), in radians per encoded unit."""
    if domain.categorical:
        raise ParameterError("frequencies", "need numeric columns; use me_test for categories")
    if not domain.bounded:
        # cos(w·x) of an x without bound has no known rounding error
        raise ParameterError("bounds must be given for a characteristic function.")
    if np.abs(frequencies).max(initial=0.0) > _MOST_RADIANS:
        raise ParameterError(
            "frequencies", f"must be at most {_MOST_RADIANS:g} radians over the width of a column"
        )
    waves = fourier_map(np.ascontiguousarray(frequencies.T), domain)
    if bandwidth is None:
        return SmoothCharacteristic(waves, None, waves.spread, waves.rounding)
    bandwidth = number("bandwidth", bandwidth, at_least=_NARROWEST, below=_WIDEST)
    # the exponent t of g is off by (d + 5) u t, so g by less than (d + 5) u/e, and by exp's own
    rounding = waves.rounding + (domain.dimension + 8) * UNIT_ROUNDOFF
    spread = max(1.0, waves.spread) + 4 * rounding
    return SmoothCharacteristic(waves, bandwidth, spread, rounding)
