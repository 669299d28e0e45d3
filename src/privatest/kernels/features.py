"""Feature maps on public points: rows become short vectors, so sums replace N×N matrices.

A map is linear on top of cheap raw features, and sums commute with its linear part: raw
features are summed over rows, then projected once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.data.domain import Domain
from privatest.kernels.fourier import FourierMap, random_map
from privatest.kernels.kernels import Kernel, gram, gram_roundings, grams
from privatest.kernels.sums import tile_sums

__all__ = [
    "FeatureMaps",
    "FourierFeatures",
    "NystromFeatures",
    "Together",
    "Unprojected",
    "fourier",
    "nystrom",
    "resolved",
]

# Directions of the landmarks' span with less than this share of the largest eigenvalue are
# dropped: they hold no signal and would magnify rounding errors.
_EIGENVALUE_CUT = 1e-6


class FeatureMaps(Protocol):
    """Blocks of features (one for each kernel of a grid), and norms of sums of each block.

    A norm is a member of the family of statistics that a test takes the maximum of.
    """

    @property
    def spreads(self) -> tuple[float, ...]:
        """Largest distance between the features of two rows, for each member."""

    @property
    def roundings(self) -> tuple[float, ...]:
        """Rounding error of one raw feature, for each member."""

    @property
    def amplifications(self) -> tuple[float, ...]:
        """Largest factor between an error in every raw feature and that of a member."""

    @property
    def exact(self) -> bool:
        """Whether sums of raw features over rows are exact, in any order."""

    @property
    def raw_width(self) -> int:
        """Number of raw features of a row, in the largest block."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""

    def raw(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield rows × raw features for each block; the buffer may be reused."""

    def binned(
        self,
        x: NDArray[np.float64],
        edges: NDArray[np.intp],
        weights: NDArray[np.float64] | None = None,
    ) -> Iterator[NDArray[np.float64]]:
        """Yield, for each block, the (weighted) sums of raw features over rows between edges."""

    def project(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map sums of raw features of block ``index`` to sums of features (last axis)."""

    def measure(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the norms of block ``index``, members × rows of (projected) ``sums``."""


class Unprojected(ABC):
    """What maps without a linear part have in common."""

    exact = False

    @abstractmethod
    def raw(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield rows × features."""

    def binned(
        self,
        x: NDArray[np.float64],
        edges: NDArray[np.intp],
        weights: NDArray[np.float64] | None = None,
    ) -> Iterator[NDArray[np.float64]]:
        """Yield sums over the rows between edges."""
        return iter(tile_sums(self.raw, x, edges, weights))

    def project(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums: there is no linear part."""
        del index
        return sums


@dataclass(frozen=True, slots=True)
class Together:
    """Several maps as one: their blocks and members, one after the other."""

    parts: tuple[FeatureMaps, ...]

    @property
    def spreads(self) -> tuple[float, ...]:
        """Largest distance between the features of two rows, for each member."""
        return tuple(chain.from_iterable(part.spreads for part in self.parts))

    @property
    def roundings(self) -> tuple[float, ...]:
        """Rounding error of one raw feature, for each member."""
        return tuple(chain.from_iterable(part.roundings for part in self.parts))

    @property
    def amplifications(self) -> tuple[float, ...]:
        """Largest factor between an error in every raw feature and that of a member."""
        return tuple(chain.from_iterable(part.amplifications for part in self.parts))

    @property
    def exact(self) -> bool:
        """Whether sums are exact."""
        return all(part.exact for part in self.parts)

    @property
    def raw_width(self) -> int:
        """Number of raw features of a row, in the largest block."""
        return max(part.raw_width for part in self.parts)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return sum(part.blocks for part in self.parts)

    def raw(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield rows × raw features for each block."""
        return chain.from_iterable(part.raw(x) for part in self.parts)

    def binned(
        self,
        x: NDArray[np.float64],
        edges: NDArray[np.intp],
        weights: NDArray[np.float64] | None = None,
    ) -> Iterator[NDArray[np.float64]]:
        """Yield, for each block, the sums of raw features over the rows between edges."""
        return chain.from_iterable(part.binned(x, edges, weights) for part in self.parts)

    def project(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply the linear part of the block's own map."""
        part, own = self._owner(index)
        return part.project(own, sums)

    def measure(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the norms of the block's own map."""
        part, own = self._owner(index)
        return part.measure(own, sums)

    def _owner(self, index: int) -> tuple[FeatureMaps, int]:
        for part in self.parts:
            if index < part.blocks:
                return part, index
            index -= part.blocks
        raise IndexError(index)


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
    def exact(self) -> bool:
        """Sums are rounded."""
        return False

    @property
    def raw_width(self) -> int:
        """Number of landmarks."""
        return len(self.landmarks)

    def raw(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield k(x_i, landmark_j) for each kernel."""
        return grams(self.kernels, x, self.landmarks, self.domain)

    @property
    def blocks(self) -> int:
        """One for each kernel."""
        return len(self.kernels)

    def binned(
        self,
        x: NDArray[np.float64],
        edges: NDArray[np.intp],
        weights: NDArray[np.float64] | None = None,
    ) -> Iterator[NDArray[np.float64]]:
        """Yield sums over the rows between edges, for each kernel."""
        return iter(tile_sums(self.raw, x, edges, weights))

    def project(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply the linear part."""
        projection = self.projections[index]
        flat = sums.reshape(-1, len(projection))  # one product, not a stack of small ones
        features: NDArray[np.float64] = flat @ projection
        return features.reshape(*sums.shape[:-1], projection.shape[1])

    def measure(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Euclidean norm."""
        del index
        norms: NDArray[np.float64] = np.linalg.norm(sums, axis=1)[None, :]
        return norms


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
class FourierFeatures(Unprojected):
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

    @property
    def blocks(self) -> int:
        """One for each kernel."""
        return len(self.maps)

    def measure(self, index: int, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Euclidean norm."""
        del index
        norms: NDArray[np.float64] = np.linalg.norm(sums, axis=1)[None, :]
        return norms


def fourier(
    kernels: Sequence[Kernel], n_frequencies: int, domain: Domain, rng: np.random.Generator
) -> FourierFeatures:
    """Draw random Fourier features; ``rng`` is public randomness."""
    if domain.categorical or not domain.bounded:
        raise ParameterError("random Fourier features need numeric columns with bounds.")
    return FourierFeatures(
        tuple(random_map(kernel, domain, n_frequencies, rng) for kernel in kernels)
    )
