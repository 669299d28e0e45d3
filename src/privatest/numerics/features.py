"""The Fourier map: cosines and sines at public frequencies, and how far a row can move them.

Kernels here are products of shift-invariant kernels, one for each column: on the line for a
number, on the cyclic group of codes for a category. So one cosine and one sine of frequency · row
serve mixed rows too. Proofs: docs/proofs/fourier-release.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import number
from privatest.data.schema import Domain
from privatest.numerics.kernels import (
    UNIT_ROUNDOFF,
    Kernel,
    KernelFamily,
    gram,
    gram_roundings,
    grams,
    kernel_grid,
    tile_sums,
)

Frequencies = Literal["auto", "lattice", "random"]

_WRAP = 4.0  # bandwidths between the box and its nearest copy: k is e^-16 there
_TAIL = 1e-8  # spectral mass that is not worth a frequency
_WORST_TAIL = 1e-2  # above this the lattice is no good likeness of the kernel
_LARGEST_GRID = 2_000_000  # lattice points looked at
_ROUNDOFFS = 32  # cos_sin is off by at most this many units, beyond its angle


@dataclass(frozen=True, slots=True, eq=False)
class FourierMap:
    """Features a_j (cos, sin)(w_j · x), with squares of a that sum to 1.

    ``spread`` is the largest distance between the features of two rows, ``rounding`` bounds
    the error of one computed feature vector in l2; both are public.
    """

    frequencies: NDArray[np.float64]  # columns × J, in radians
    amplitudes: NDArray[np.float64]
    spread: float
    rounding: float

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map rows to rows × 2J: the cosines, then the sines."""
        cosine, sine = cos_sin(angles(rows, self.frequencies))
        cosine *= self.amplitudes
        sine *= self.amplitudes
        return np.hstack([cosine, sine])


def fourier_map(frequencies: NDArray[np.float64], domain: Domain) -> FourierMap:
    """Build the map at ``frequencies`` (columns × J), each with the same amplitude.

    Notes
    -----
    **Sensitivity** Angles of two rows are at most R_j apart, R_j = |w_j|₁ on the unit box; a
    category adds pi. So features are at most sqrt(2 - 2 mean cos(min(R_j, pi))) apart.
    """
    count = frequencies.shape[1]
    amplitudes = np.full(count, 1 / math.sqrt(count))
    rounding = _rounding(frequencies, amplitudes, domain)
    cosines = np.cos(np.minimum(_reach(frequencies, domain), math.pi))
    spread = math.sqrt(2 * (1 - float(cosines.mean()))) + 4 * rounding
    return FourierMap(frequencies, amplitudes, spread, rounding)


def random_map(kernel: Kernel, domain: Domain, count: int, rng: np.random.Generator) -> FourierMap:
    """Draw frequencies from the spectral law of the kernel; ``rng`` is public randomness."""
    if kernel.family == "imq":
        raise ParameterError(
            "kernel must be gaussian or laplace: Fourier features need one of them."
        )
    frequencies = np.empty((domain.dimension, count))
    if domain.numeric:
        shape = (len(domain.numeric), count)
        if kernel.family == "gaussian":  # exp(-t²/w²) is the cf of N(0, 2/w²)
            drawn = rng.normal(scale=math.sqrt(2) / kernel.bandwidth, size=shape)
        else:  # exp(-|t|/w) is the cf of Cauchy(1/w)
            drawn = rng.standard_cauchy(size=shape) / kernel.bandwidth
        frequencies[domain.numeric] = drawn
    for column in domain.categorical:
        level = domain.levels[column]
        codes = rng.choice(level, size=count, p=_category_masses(kernel, level))
        frequencies[column] = 2 * math.pi / level * codes
    return fourier_map(frequencies, domain)


def kernel_map(
    kernel: Kernel,
    domain: Domain,
    n_frequencies: int,
    rng: np.random.Generator,
    kind: Frequencies = "auto",
) -> FourierMap:
    """Choose the frequencies of a kernel from public facts only.

    "lattice": the Fourier series of the kernel, periodic beyond the box. It is the kernel, to
    1e-7, and needs the least noise. Its size grows as (box/bandwidth)^columns, so "auto" takes
    it where ``n_frequencies`` are enough and random frequencies elsewhere.
    """
    found = None if kind == "random" else _lattice(kernel, domain, n_frequencies)
    if found is None and kind == "lattice":
        raise ParameterError(
            "frequencies='lattice' needs a gaussian kernel, bounds, and a larger n_frequencies or "
            "bandwidth. Use frequencies='random'."
        )
    return found or random_map(kernel, domain, n_frequencies, rng)


# --- the Fourier series on a box -----------------------------------------------------------------


def _lattice(kernel: Kernel, domain: Domain, most: int) -> FourierMap | None:
    """Return the heaviest frequencies of the series, or None where ``most`` are too few."""
    if kernel.family != "gaussian" or (domain.numeric and not domain.bounded):
        return None
    period = 1 + _WRAP * kernel.bandwidth
    rate = math.pi * kernel.bandwidth / period
    largest = math.ceil(5 / rate)
    sizes = [level or 2 * largest + 1 for level in domain.levels]
    if math.prod(sizes) > _LARGEST_GRID:
        return None
    copies = sum(math.exp(-((m * period / kernel.bandwidth) ** 2)) for m in range(-8, 9))
    k = np.rint(np.fft.fftfreq(2 * largest + 1) * (2 * largest + 1))  # 0, 1, ..., -2, -1
    # Fourier coefficients of exp(-t²/w²) with its copies, which sum to 1
    numeric = np.exp(-((rate * k) ** 2)) * rate / (math.sqrt(math.pi) * copies)
    masses = [_category_masses(kernel, level) if level else numeric for level in domain.levels]
    steps = [np.arange(level, dtype=np.float64) if level else k for level in domain.levels]
    mass, grid = _half_lattice(sizes, masses)
    order = np.argsort(-mass, kind="stable")[:most]
    # what is left out, plus the rounding errors of this sum
    tails = 1 + 1e-12 + 2 * len(order) * UNIT_ROUNDOFF - np.cumsum(mass[order])
    kept = min(int(np.searchsorted(-tails, -_TAIL)) + 1, len(order))
    tail = float(tails[kept - 1])
    if tail > _WORST_TAIL:
        return None
    order = order[:kept]
    units = [2 * math.pi / (level or period) for level in domain.levels]
    frequencies = np.stack(
        [unit * step[index[order]] for unit, step, index in zip(units, steps, grid, strict=True)]
    )
    amplitudes = np.sqrt(mass[order] / mass[order].sum())
    rounding = _rounding(frequencies, amplitudes, domain)
    nearest = max(1 - kernel.spread(domain) ** 2 / 2, 0.0)  # inf k, rounded down
    lowest = nearest / copies ** len(domain.numeric) * (1 - 1e-12)
    spread = min(math.sqrt(2 * (1 - lowest) / (1 - tail)), 2.0) + 4 * rounding
    return FourierMap(frequencies, amplitudes, spread, rounding)


def _half_lattice(
    sizes: list[int], masses: list[NDArray[np.float64]]
) -> tuple[NDArray[np.float64], list[NDArray[np.intp]]]:
    """Masses and indices of one of k and -k, which have the same cosine and sine."""
    flat = np.arange(math.prod(sizes))
    grid = list(np.unravel_index(flat, sizes))
    opposite = np.ravel_multi_index(
        [(-index) % size for index, size in zip(grid, sizes, strict=True)], sizes
    )
    mass = np.ones(len(flat))
    for index, own in zip(grid, masses, strict=True):
        mass *= own[index]
    mass *= np.where(opposite == flat, 1.0, 2.0)
    first = flat <= opposite
    return mass[first], [index[first] for index in grid]


def _category_masses(kernel: Kernel, level: int) -> NDArray[np.float64]:
    """Spectrum of 1{equal} + mismatch 1{not equal} on the codes 0, 1, ..., as a cyclic group."""
    mismatch = math.exp(kernel.log_mismatch)
    masses = np.full(level, (1 - mismatch) / level)
    masses[0] += mismatch
    return masses


# --- bounds --------------------------------------------------------------------------------------


def _reach(frequencies: NDArray[np.float64], domain: Domain) -> NDArray[np.float64]:
    """Furthest that the angles of two rows can be apart; at pi nothing is left to bound."""
    reach = np.zeros(frequencies.shape[1])
    for column, level in enumerate(domain.levels):
        if level == 0 and not domain.bounded:
            return np.full_like(reach, math.pi)
        reach += (
            np.where(frequencies[column] != 0, math.pi, 0) if level else abs(frequencies[column])
        )
    return reach


def _rounding(
    frequencies: NDArray[np.float64], amplitudes: NDArray[np.float64], domain: Domain
) -> float:
    """Bound the error of a computed feature vector in l2.

    An angle is off by (d + 4) u |w|·|x|, and cosine and sine by as much. Without bounds the
    angle may be anything, but the computed features are still a point of the unit circle each:
    the bound 2 on distances needs no angle.
    """
    if domain.numeric and not domain.bounded:
        return _ROUNDOFFS * UNIT_ROUNDOFF
    furthest = np.array([max(level - 1, 1) for level in domain.levels], dtype=np.float64)
    size = float(np.linalg.norm(amplitudes * (furthest @ np.abs(frequencies))))
    return ((domain.dimension + 4) * size + _ROUNDOFFS) * UNIT_ROUNDOFF


# --- cosines and sines ---------------------------------------------------------------------------

# Taylor series of cos and sin to 1e-17 on [-pi/4, pi/4], in the square of the angle
_COS = [(-1) ** n / math.factorial(2 * n) for n in range(9)]
_SIN = [(-1) ** n / math.factorial(2 * n + 1) for n in range(9)]


def angles(rows: NDArray[np.float64], frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return frequency · row in quarter turns, less whole turns: in [-2, 2]."""
    with np.errstate(over="ignore", invalid="ignore"):
        quarters: NDArray[np.float64] = rows @ (frequencies * (2 / math.pi))
    # only without bounds, and only a value: whatever a row is mapped to, it is a unit vector
    quarters[~np.isfinite(quarters)] = 0.0
    turns = np.rint(quarters * 0.25)
    turns *= 4.0
    quarters -= turns
    return quarters


def cos_sin(
    quarters: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cosine and sine of angles in quarter turns; three times faster than NumPy's in float64.

    Of a quarter of the angle by Taylor series, then doubled twice.
    """
    theta = quarters * (math.pi / 8)
    square = theta * theta
    cosine, sine = _series(_COS, square), _series(_SIN, square)
    sine *= theta
    for _ in range(2):
        np.multiply(sine, sine, out=square)
        sine *= cosine
        sine *= 2.0
        square *= -2.0
        square += 1.0
        cosine, square = square, cosine
    return cosine, sine


def _series(coefficients: list[float], square: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.full_like(square, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total *= square
        total += coefficient
    return total


# Feature maps on public points: rows become short vectors, so sums replace N×N matrices.
#
# A map is linear on top of cheap raw features, and sums commute with its linear part: raw
# features are summed over rows, then projected once.


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


# Feature maps of the embedding tests: a row becomes a short vector of known length.
#
# Mean embedding (ME): the kernel at public locations, whitened by their Gram matrix. Smooth
# characteristic function (SCF): cosines and sines at public frequencies, smoothed. Jitkrittum et
# al. (2016), Raj et al. (2019); bounds: docs/proofs/moments.md.


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


# Features of all bandwidths as linear functions of one vector, the basis of a row.
#
# Sums of products of bases then serve every pair of bandwidths. For one column the features of all
# bandwidths nearly lie in one space of few functions, which a public table holds.


_LATTICE = 513  # points of the table of a numeric column
_MOST_LEVELS = 1024  # categories of a table
# Directions with less than this share of the largest variance are left out: of each kernel's
# features, which they hardly change, and of all of them together, where only rounding may remain.
_VARIANCE_CUT = 1e-3
_TABLE_CUT = 1e-3
_LEAST_SPREAD = 1e-30  # a kernel that rounds to 1 everywhere has none, and a sensitivity is not 0

Basis = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class SharedFeatures:
    """One basis for the features of several kernels.

    Parameters
    ----------
    basis : function
        Encoded rows to rows × basis.
    mix : array or None
        Basis × features of all kernels, side by side; None if the basis is these features.
    weights : array
        Features × kernels: the factor of each squared feature in a kernel's squared norm; 1
        where a feature belongs to a kernel, else 0, if each kernel has features of its own.
    spreads : tuple of float
        Largest distance between the features of two rows, for each kernel.
    sizes : tuple of float
        Bound on the norm of any row's features, and of what they are computed from.
    errors : tuple of float
        Bound on the rounding error of a row's features.
    reach : float
        Bound on the absolute value of a number of the basis, at least 1.
    """

    basis: Basis
    mix: NDArray[np.float64] | None
    weights: NDArray[np.float64]
    spreads: tuple[float, ...]
    sizes: tuple[float, ...]
    errors: tuple[float, ...]
    reach: float = 1.0

    @property
    def width(self) -> int:
        """Length of the basis."""
        return len(self.weights) if self.mix is None else len(self.mix)

    @property
    def gains(self) -> NDArray[np.float64]:
        """How long a kernel's features are at most, if no number of the basis is larger than 1.

        A product of gains bounds the norm of mixed products of two bases in the same way.
        """
        squares = (
            np.ones(len(self.weights)) if self.mix is None else np.square(self.mix).sum(axis=0)
        )
        width = 1 if self.mix is None else len(self.mix)
        found: NDArray[np.float64] = np.sqrt(width * (squares @ self.weights)) * (1 + 1e-12)
        return found


def stacked(maps: FeatureMaps) -> SharedFeatures:
    """Put the features of all kernels side by side; they have norm at most 1."""
    nothing = np.zeros((0, maps.raw_width))
    kernels = range(len(maps.spreads))
    return SharedFeatures(
        basis=_Projected(maps),
        mix=None,
        weights=_owners([maps.project(index, nothing).shape[1] for index in kernels]),
        spreads=maps.spreads,
        sizes=(1.0,) * len(maps.spreads),
        errors=tuple(
            amplification * (rounding + maps.raw_width * UNIT_ROUNDOFF)
            for amplification, rounding in zip(maps.amplifications, maps.roundings, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Projected:
    """The features of all kernels side by side; it travels to other processes."""

    maps: FeatureMaps

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        raw = enumerate(self.maps.raw(rows))
        return np.hstack([self.maps.project(index, each) for index, each in raw])


def tabulated(
    kernels: tuple[Kernel, ...], domain: Domain, *, max_rank: int
) -> SharedFeatures | None:
    """Tabulate the kernels' features of one column on a public lattice, in one short basis.

    Features are centred on the lattice: tests centre them anyway, and a constant needs no room.
    None where a table does not serve: several columns, no bounds, or too many categories.

    Notes
    -----
    **Sensitivity** Between two points of the lattice the basis is interpolated, so features lie
    in the convex hull of the table's rows, and no two are further apart than two rows of the
    table: ``spreads`` is the largest distance, by computing them all.
    """
    levels = domain.levels[0]
    if domain.dimension > 1 or not domain.bounded or levels > _MOST_LEVELS:
        return None
    points = np.arange(float(levels)) if levels else np.linspace(0, 1, _LATTICE)
    features = stacked(nystrom(kernels, domain.landmarks(), domain, max_rank=max_rank))
    every = features.basis(points[:, None])
    every -= every.mean(axis=0)
    parts = [_main_directions(part) for part in _split(every, features.weights)]
    left, strengths, right = np.linalg.svd(np.hstack(parts), full_matrices=False)
    kept = strengths >= _TABLE_CUT * strengths[0]
    table, mix = left[:, kept] * strengths[kept], right[kept]
    weights = _owners([part.shape[1] for part in parts])
    size = float(np.linalg.norm(table, axis=1).max())
    mixes = _split(mix, weights)
    sizes = tuple(size * float(np.linalg.norm(each)) * (1 + 1e-12) for each in mixes)
    roundoff = 4 * (len(mix) + 8) * UNIT_ROUNDOFF
    return SharedFeatures(
        basis=interpolation(table, numeric=levels == 0),
        mix=np.ascontiguousarray(mix),
        weights=weights,
        spreads=tuple(
            diameter(table @ each) + 2 * roundoff * bound
            for each, bound in zip(mixes, sizes, strict=True)
        ),
        sizes=sizes,
        errors=tuple(roundoff * bound for bound in sizes),
        reach=max(1.0, float(np.abs(table).max())),
    )


def _owners(widths: list[int]) -> NDArray[np.float64]:
    """Features × kernels: 1 where a feature belongs to a kernel."""
    return np.repeat(np.eye(len(widths)), widths, axis=0)


def _split(matrix: NDArray[np.float64], weights: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Take the columns of each kernel."""
    return [matrix[:, owned > 0] for owned in weights.T]


def _main_directions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotate features and leave out directions in which nearly nothing varies."""
    left, strengths, _ = np.linalg.svd(points, full_matrices=False)
    kept = strengths**2 >= _VARIANCE_CUT * strengths[0] ** 2
    main: NDArray[np.float64] = left[:, kept] * strengths[kept]
    return main


def interpolation(table: NDArray[np.float64], *, numeric: bool) -> Basis:
    """Return the function that looks rows up in the table: by their code, or between points."""
    return _Between(table, np.diff(table, axis=0)) if numeric else _AtCodes(table)


@dataclass(frozen=True, slots=True, eq=False)
class _AtCodes:
    """Rows of a table by the code of a category."""

    table: NDArray[np.float64]

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.table[rows[:, 0].astype(np.intp)]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Between:
    """Rows of a table of points of [0, 1], interpolated between neighbours."""

    table: NDArray[np.float64]
    steps: NDArray[np.float64]

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        position = rows[:, 0] * len(self.steps)
        index = np.minimum(position.astype(np.intp), len(self.steps) - 1)
        found: NDArray[np.float64] = self.steps[index]
        found *= (position - index)[:, None]
        found += self.table[index]
        return found


def diameter(points: NDArray[np.float64]) -> float:
    """Largest distance between two rows, rounded up."""
    squares = np.einsum("ij,ij->i", points, points)
    distances = squares[:, None] + squares - 2 * (points @ points.T)
    slack = 8 * (points.shape[1] + 8) * UNIT_ROUNDOFF * float(squares.max())
    widest = math.sqrt(max(float(distances.max()), 0.0) + slack) * (1 + 1e-14)
    return max(widest, _LEAST_SPREAD)


# Additive kernels: the mean over columns of one-column kernels, by public tables.
#
# A kernel of all columns sees little where data crowd in a part of a box of many columns. Each
# column has a few orthogonal functions, shared by all bandwidths, which differ in how much weight
# these have: nearly the kernels of the default grid, whose principal functions they are, but larger
# at the ends of a column.


_POINTS = 129  # of the table of a numeric column
_ADDITIVE_BANDWIDTHS = 4  # bandwidths of the default grid, the wide ones: few functions serve these
_MOST_FUNCTIONS = 160  # of all columns together, if there are not too many
_FUNCTIONS = (2, 12)  # fewest and most of a numeric column
_MOST_FUNCTION_LEVELS = 24  # categories with functions of their own


@lru_cache(maxsize=64)
def _column(
    family: KernelFamily, level: int, functions: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[float, ...]]:
    """Table (points × functions), weights (functions × kernels) and spreads of one column."""
    domain = Domain((level,))
    points = np.arange(float(level)) if level else np.linspace(0, 1, _POINTS)
    operators = []
    for kernel in kernel_grid(family, None, domain)[:_ADDITIVE_BANDWIDTHS]:
        matrix = gram(kernel, points[:, None], points[:, None], domain)
        means = matrix.mean(axis=0)
        operators.append((matrix - means - means[:, None] + means.mean()) / len(points))
    typical = sum(matrix / max(float(np.trace(matrix)), 1e-300) for matrix in operators)
    _, vectors = np.linalg.eigh(typical)
    table = vectors[:, ::-1][:, : max(1, min(functions, len(points) - 1))] * np.sqrt(len(points))
    weights = np.array(
        [np.maximum(np.einsum("ia,ij,ja->a", table, each, table), 0) for each in operators]
    ).T / len(points)
    spreads = tuple(diameter(table * np.sqrt(weight)) for weight in weights.T)
    return np.ascontiguousarray(table), weights, spreads


def _functions(level: int, columns: int) -> int:
    if level:
        return min(level - 1, _MOST_FUNCTION_LEVELS)
    fewest, most = _FUNCTIONS
    return max(fewest, min(most, _MOST_FUNCTIONS // columns))


def additive(family: KernelFamily, domain: Domain) -> SharedFeatures:
    """Features of additive kernels on a bounded domain, for some bandwidths of the default grid.

    Notes
    -----
    **Sensitivity** As for other tables (:func:`privatest.numerics.features.tabulated`) for each
    column; squared distances of rows are means over columns, so c² is the mean of the columns' c².
    """
    count = domain.dimension
    columns = [_column(family, level, _functions(level, count)) for level in domain.levels]
    lookups = tuple(
        interpolation(table, numeric=level == 0)
        for (table, _, _), level in zip(columns, domain.levels, strict=True)
    )
    largest = [np.square(table) @ weights for table, weights, _ in columns]
    sizes = np.sqrt(np.mean([squares.max(axis=0) for squares in largest], axis=0)) * (1 + 1e-12)
    spreads = np.sqrt(np.mean([np.square(spread) for _, _, spread in columns], axis=0))
    roundoff = 4 * (sum(table.shape[1] for table, _, _ in columns) + 8) * UNIT_ROUNDOFF
    return SharedFeatures(
        basis=_EachColumn(lookups),
        mix=None,
        weights=np.vstack([weights for _, weights, _ in columns]) / count,
        spreads=tuple(float(spread) * (1 + 1e-12) for spread in spreads),
        sizes=tuple(float(size) for size in sizes),
        errors=tuple(float(roundoff * size) for size in sizes),
        reach=max(1.0, *(float(np.abs(table).max()) for table, _, _ in columns)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _EachColumn:
    """Each column's functions, side by side; it travels to other processes."""

    lookups: tuple[Basis, ...]

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        found = [lookup(rows[:, [index]]) for index, lookup in enumerate(self.lookups)]
        return np.hstack(found)


def additive_moments(family: KernelFamily, domain: Domain) -> tuple[tuple[float, float], ...]:
    """Return (1 - E k, E k~²) of each kernel under the uniform law, as ``null_moments`` does.

    A table's functions are orthonormal under it: these are sums of weights and of their squares.
    """
    count = domain.dimension
    columns = [_column(family, level, _functions(level, count)) for level in domain.levels]
    weights = np.vstack([weight for _, weight, _ in columns]) / count
    return tuple((float(w.sum()), float(np.square(w).sum())) for w in weights.T)


# Feature maps whose norm is the largest absolute feature: thresholds, and means of columns.
#
# All of them have spread 1. Proofs: docs/proofs/portfolio.md.


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ThresholdMap(Unprojected):
    """Kolmogorov's distance at public thresholds, the largest over columns.

    For a category: the largest difference of a share, codes being taken modulo ``thresholds``. Its
    sensitivity does not depend on bounds.
    """

    domain: Domain
    thresholds: int

    name = "kolmogorov"
    exact = True
    blocks = 1
    varies = False
    spreads = (1.0,)
    roundings = (0.0,)  # indicators are exact
    amplifications = (1.0,)

    @cached_property
    def _cells(self) -> list[int]:
        """Number of cells of each column."""
        most = self.thresholds
        return [min(level, most) or most for level in self.domain.levels]

    @property
    def raw_width(self) -> int:
        """Number of cells."""
        return sum(self._cells)

    def _codes(self, x: Floats) -> Iterator[tuple[NDArray[np.intp], int]]:
        for column, cells in enumerate(self._cells):
            if self.domain.levels[column]:
                codes = x[:, column].astype(np.intp) % cells
            else:
                codes = np.minimum(x[:, column] * cells, cells - 1).astype(np.intp)
            yield codes, cells

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield indicators: at or below each threshold; of each category."""
        parts = [
            np.equal.outer(codes, np.arange(cells))
            if level
            else np.less_equal.outer(codes, np.arange(cells))
            for level, (codes, cells) in zip(self.domain.levels, self._codes(x), strict=True)
        ]
        yield np.hstack(parts).astype(np.float64)

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield counts of the indicators over the rows between edges."""
        bins = len(edges) - 1
        bin_of_row = np.repeat(np.arange(bins), np.diff(edges))
        parts = []
        for level, (codes, cells) in zip(self.domain.levels, self._codes(x), strict=True):
            counts = np.bincount(bin_of_row * cells + codes, weights, minlength=bins * cells)
            counts = counts.reshape(bins, cells)
            parts.append(counts if level else np.cumsum(counts, axis=1))
        yield np.hstack(parts).astype(np.float64)

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the largest, 1 × rows of ``sums``."""
        del index
        return _largest(sums)

    def variances(self, a: Floats, b: Floats) -> Floats:
        """Return 1/4, the variance at a median: this distance hardly depends on the law of rows."""
        del a, b
        return np.array([0.25])


@dataclass(frozen=True)
class MeanMap(Unprojected):
    """Difference of means, the largest over numeric columns.

    Numbers are rounded down to multiples of 2^-bits of their bounds, so that sums are exact.
    """

    domain: Domain
    bits: int = 24

    name = "mean"
    exact = True
    blocks = 1
    varies = True
    spreads = (1.0,)
    roundings = (0.0,)
    amplifications = (1.0,)

    @property
    def raw_width(self) -> int:
        """Number of numeric columns."""
        return len(self.domain.numeric)

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield numeric columns, around the centre of the box."""
        yield self._placed(x[:, self.domain.numeric])

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield sums over the rows between edges, a column at a time."""
        sums = np.zeros((len(edges) - 1, self.raw_width))
        filled = np.flatnonzero(np.diff(edges))
        for place, column in enumerate(self.domain.numeric if len(filled) else ()):
            numbers = self._placed(x[:, column])
            if weights is not None:
                numbers *= weights
            sums[filled, place] = np.add.reduceat(numbers, edges[filled])
        yield sums

    def _placed(self, values: Floats) -> Floats:
        """Return multiples of 2^-bits, at least -1/2 and below 1/2."""
        numbers = values * 2.0**self.bits
        np.minimum(numbers, 2.0**self.bits - 1, out=numbers)
        np.floor(numbers, out=numbers)
        numbers *= 2.0**-self.bits
        numbers -= 0.5
        return numbers

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the largest, 1 × rows of ``sums``."""
        del index
        return _largest(sums)

    def variances(self, a: Floats, b: Floats) -> Floats:
        """Half the mean squared difference, of the column where it is largest."""
        numeric = self.domain.numeric
        squares = np.square(a[:, numeric] - b[:, numeric]).mean(axis=0)
        return np.array([squares.max() / 2])


def _largest(sums: Floats) -> Floats:
    largest: Floats = np.maximum(sums.max(axis=1), -sums.min(axis=1))[None, :]
    return largest
