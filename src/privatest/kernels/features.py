"""Feature maps on public points: rows become short vectors, so sums replace N×N matrices.

A map is linear on top of cheap raw features, and sums commute with its linear part: raw
features are summed over rows, then projected once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.data.domain import Domain
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings, grams

__all__ = ["FeatureMaps", "FourierFeatures", "NystromFeatures", "fourier", "nystrom", "resolved"]

# Directions of the landmarks' span with less than this share of the largest eigenvalue are
# dropped: they hold no signal and would magnify rounding errors.
_EIGENVALUE_CUT = 1e-6


class FeatureMaps(Protocol):
    """One feature map for each kernel of a grid."""

    @property
    def spreads(self) -> tuple[float, ...]:
        """Largest distance between the features of two rows, for each kernel."""

    @property
    def roundings(self) -> tuple[float, ...]:
        """Rounding error of one raw feature, for each kernel."""

    @property
    def amplifications(self) -> tuple[float, ...]:
        """Largest factor between an error in every raw feature and that of the projection."""

    @property
    def raw_width(self) -> int:
        """Number of raw features of a row."""

    def raw(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield rows × raw features for each kernel; the buffer may be reused."""

    def project(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map sums of raw features of kernel ``index`` to sums of features (last axis)."""


@dataclass(frozen=True, slots=True)
class NystromFeatures:
    """Projections on the span of public landmarks in each kernel's RKHS.

    Notes
    -----
    **Sensitivity** A projection is a contraction, so two rows' features are no further apart
    than c of the kernel itself (docs/proofs/mmd-sensitivity.md).
    """

    kernels: tuple[Kernel, ...]
    landmarks: NDArray[np.float64]
    domain: Domain
    projections: tuple[NDArray[np.float64], ...]
    spreads: tuple[float, ...]
    roundings: tuple[float, ...]
    amplifications: tuple[float, ...]

    @property
    def raw_width(self) -> int:
        """Number of landmarks."""
        return len(self.landmarks)

    def raw(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield k(x_i, landmark_j) for each kernel."""
        return grams(self.kernels, x, self.landmarks, self.domain)

    def project(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply the linear part."""
        return sums @ self.projections[index]


def resolved(
    kernels: tuple[Kernel, ...], landmarks: NDArray[np.float64], domain: Domain
) -> tuple[Kernel, ...]:
    """Leave out kernels so narrow that the landmarks hardly see each other.

    Their features are nearly zero for rows between the landmarks. The effective number of
    directions, (tr K)²/tr K², tells: it is close to the number of landmarks. The widest kernel
    always stays.
    """
    count = len(landmarks)
    energies = [
        float(np.vdot(matrix, matrix)) for matrix in grams(kernels, landmarks, landmarks, domain)
    ]
    seen = (energy >= 2 * count for energy in energies[1:])
    return kernels[:1] + tuple(
        kernel for kernel, keep in zip(kernels[1:], seen, strict=True) if keep
    )


def nystrom(
    kernels: Sequence[Kernel],
    landmarks: NDArray[np.float64],
    domain: Domain,
    *,
    max_rank: int | None = None,
) -> NystromFeatures:
    """Build Nyström features on public ``landmarks``, at most ``max_rank`` for each kernel.

    psi(x) = D^(-1/2) U' k_L(x) with K_LL = U D U', small eigenvalues cut: coordinates in an
    orthonormal basis of a subspace, rescaled so that W' K_LL W <= I despite rounding.
    """
    projections, spreads, amplifications = [], [], []
    errors = gram_roundings(kernels, domain)
    for kernel, error in zip(kernels, errors, strict=True):
        matrix = gram(kernel, landmarks, landmarks, domain)
        values, vectors = np.linalg.eigh(matrix)
        kept = values >= _EIGENVALUE_CUT * values[-1]
        if max_rank is not None:
            kept[:-max_rank] = False  # eigenvalues come in ascending order
        projection = vectors[:, kept] / np.sqrt(values[kept])
        size = np.linalg.norm(projection.T @ matrix @ projection, 2)
        projection /= math.sqrt(max(float(size), 1.0))
        smallest = float(values[kept][0])
        # W' (K + E) W <= I with |E| <= count · error: the contraction holds up to this factor
        distortion = len(landmarks) * error / smallest
        projections.append(projection)
        spreads.append(kernel.spread(domain) * (1 + distortion + 1e-12))
        amplifications.append(math.sqrt(len(landmarks) / smallest))
    return NystromFeatures(
        kernels=tuple(kernels),
        landmarks=landmarks,
        domain=domain,
        projections=tuple(projections),
        spreads=tuple(spreads),
        roundings=errors,
        amplifications=tuple(amplifications),
    )


@dataclass(frozen=True, slots=True)
class FourierFeatures:
    """Random Fourier features: (cos, sin)(w·x)/sqrt(D) for public random frequencies w.

    Notes
    -----
    **Sensitivity** Features have norm 1; on the unit box w·(x - x') lies in [-|w|₁, |w|₁], so
    two rows' features are at most sqrt(2 (1 - mean cos(min(|w|₁, pi)))) apart.
    """

    frequencies: tuple[NDArray[np.float64], ...]
    spreads: tuple[float, ...]
    roundings: tuple[float, ...]
    amplifications: tuple[float, ...]

    @property
    def raw_width(self) -> int:
        """Cosines and sines."""
        return 2 * int(self.frequencies[0].shape[1])

    def raw(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield cosines and sines for each kernel."""
        for frequencies in self.frequencies:
            angles = x @ frequencies
            yield np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(frequencies.shape[1])

    def project(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums: there is no linear part."""
        del index
        return sums


def fourier(
    kernels: Sequence[Kernel], n_frequencies: int, domain: Domain, rng: np.random.Generator
) -> FourierFeatures:
    """Draw random Fourier features; ``rng`` is public randomness."""
    if domain.categorical or not domain.bounded:
        raise ParameterError("random Fourier features need numeric columns with bounds.")
    if any(kernel.family == "imq" for kernel in kernels):
        raise ParameterError("random Fourier features need a gaussian or laplace kernel.")
    shape = (domain.dimension, n_frequencies)
    frequencies, spreads, roundings = [], [], []
    for kernel in kernels:
        if kernel.family == "gaussian":  # exp(-t²/w²) is the cf of N(0, 2/w²)
            drawn = rng.normal(scale=math.sqrt(2) / kernel.bandwidth, size=shape)
        else:  # exp(-|t|/w) is the cf of Cauchy(1/w)
            drawn = rng.standard_cauchy(size=shape) / kernel.bandwidth
        reach = np.abs(drawn).sum(axis=0)
        cosines = np.cos(np.minimum(reach, np.pi))
        # an angle is off by reach · (d + 1) u; a feature vector by at most the root mean square
        error = ((domain.dimension + 1) * float(np.sqrt(np.mean(reach**2))) + 8) * UNIT_ROUNDOFF
        frequencies.append(drawn)
        spreads.append(math.sqrt(2 * (1 - float(cosines.mean()))) + 4 * error)
        roundings.append(error)
    ones = (2.0,) * len(frequencies)
    return FourierFeatures(tuple(frequencies), tuple(spreads), tuple(roundings), ones)
