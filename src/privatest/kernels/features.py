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
from privatest.kernels.fourier import FourierMap, random_map
from privatest.kernels.kernels import Kernel, gram, gram_roundings, grams

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
    """Leave out kernels so narrow that they are nearly zero between the landmarks.

    For these the effective number of directions, (tr K)²/tr K², is close to the number of
    landmarks. The widest kernel always stays.
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
    """Random Fourier features of each kernel: no linear part, every raw feature is one."""

    maps: tuple[FourierMap, ...]

    @property
    def spreads(self) -> tuple[float, ...]:
        """Largest distance between the features of two rows, for each kernel."""
        return tuple(each.spread for each in self.maps)

    @property
    def roundings(self) -> tuple[float, ...]:
        """Rounding error of one raw feature, for each kernel."""
        return tuple(each.rounding for each in self.maps)

    @property
    def amplifications(self) -> tuple[float, ...]:
        """Two: cosine and sine."""
        return (2.0,) * len(self.maps)

    @property
    def raw_width(self) -> int:
        """Cosines and sines."""
        return 2 * len(self.maps[0].amplitudes)

    def raw(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield cosines and sines for each kernel."""
        return (each(x) for each in self.maps)

    def project(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums."""
        del index
        return sums


def fourier(
    kernels: Sequence[Kernel], n_frequencies: int, domain: Domain, rng: np.random.Generator
) -> FourierFeatures:
    """Draw random Fourier features; ``rng`` is public randomness."""
    if domain.categorical or not domain.bounded:
        raise ParameterError("random Fourier features need numeric columns with bounds.")
    return FourierFeatures(
        tuple(random_map(kernel, domain, n_frequencies, rng) for kernel in kernels)
    )
