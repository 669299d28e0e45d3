"""The Fourier map: cosines and sines at public frequencies, and how far a row can move them.

Kernels here are products of shift-invariant kernels, one for each column: on the line for a
number, on the cyclic group of codes for a category. So one cosine and one sine of frequency · row
serve mixed rows too. Proofs: docs/proofs/fourier-release.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.data.domain import Domain
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel

__all__ = [
    "FourierMap",
    "Frequencies",
    "angles",
    "cos_sin",
    "fourier_map",
    "kernel_map",
    "random_map",
]

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
