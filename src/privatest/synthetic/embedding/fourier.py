"""Algorithm 2 of Balog et al., lines 1 to 4: the mean Fourier feature of the rows, with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Budget, Sensitivity, gaussian_scale
from privatest.core.validation import Rng, integer_at_least, one_of, public_generator
from privatest.data.domain import Domain
from privatest.data.samples import Sample
from privatest.data.stream import BLOCK_ROWS, Held
from privatest.engines.local import within_block
from privatest.engines.shuffled import in_secret_order
from privatest.engines.summaries import FixedPoint, fixed_rounding, summarise
from privatest.kernels.fourier import FourierMap, Frequencies, angles, cos_sin, kernel_map
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel
from privatest.synthetic.embedding.sharing import with_rest

__all__ = ["NoisyFeatures", "mean_features", "mean_features_sensitivity", "noisy_features"]

_BLOCK_VALUES = 8_192  # of a temporary array: it stays in a processor's cache
_LONGEST_BLOCK = 1_024  # rows
_STRIP = 16_384  # rows of one thread's turn
_ANGLE_COST = 40  # of a cosine and a sine, in products of complex numbers


@dataclass(frozen=True, slots=True, eq=False)
class NoisyFeatures:
    """A private mean feature: everything in it may be published.

    Parameters
    ----------
    kernel : Kernel
        The public kernel; the features' inner products are it, or nearly.
    frequencies : ndarray
        Columns × J, public.
    amplitudes : ndarray
        J numbers whose squares sum to 1: feature j is a_j (cos, sin)(w_j · x).
    mean : ndarray
        2 × J: the mean of the cosines and of the sines over all rows, with noise.
    scale : float
        Standard deviation of the noise in every entry.
    simulated : bool
        Whether the noise was seeded, so that nothing is private.
    """

    kernel: Kernel
    frequencies: NDArray[np.float64]
    amplitudes: NDArray[np.float64]
    mean: NDArray[np.float64]
    scale: float
    simulated: bool


def noisy_features(
    rows: Held,
    *,
    kernel: Kernel,
    domain: Domain,
    n_frequencies: int,
    budget: Budget,
    rows_per_person: int = 1,
    share: Fraction | None = None,
    frequencies: Frequencies = "auto",
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> NoisyFeatures:
    """Release the mean Fourier feature of encoded rows.

    Parameters
    ----------
    rows : ndarray, or a way to read them
        Encoded rows, numbers and categories, within ``domain``.
    kernel : Kernel
        Gaussian, or Laplace with random frequencies.
    domain : Domain
        Where rows may lie. Without bounds the frequencies are random, the noise is for 2/N.
    n_frequencies : int
        The most frequencies to use; random ones are that many.
    budget : Budget
        Needs delta > 0.
    rows_per_person : int
        The most rows of one person.
    share : Fraction, optional
        What it takes of the budget, if atoms are counted too; by default all of it.
    frequencies : {"auto", "lattice", "random"}
        See :func:`privatest.kernels.fourier.kernel_map`.
    rng : None, int or Generator
        Public randomness for random frequencies.
    noise : NoiseSource, optional
        Secret randomness.

    Notes
    -----
    **Sensitivity** rows_per_person · spread/N in l2, where spread is the largest distance
    between the features of two rows of the domain: at most 2, for a lattice at most
    sqrt(2 (1 - inf k)/(1 - tail)) (docs/proofs/fourier-release.md). Widened by the rounding
    errors of both means.

    **Privacy** The noisy mean is (epsilon, delta)-private by the analytic Gaussian mechanism.
    The frequencies are public; the noise's scale depends on public facts alone.
    """
    integer_at_least("n_frequencies", n_frequencies, 1)
    integer_at_least("rows_per_person", rows_per_person, 1)
    one_of("frequencies", frequencies, ("auto", "lattice", "random"))
    source = noise_source(noise)
    if isinstance(rows, np.ndarray):  # others were encoded as they were read
        _check_rows(rows, domain)
    features = kernel_map(kernel, domain, n_frequencies, public_generator(rng), frequencies)
    sensitivity = mean_features_sensitivity(features, len(rows), rows_per_person)
    gaussian_scale(sensitivity.value, budget)  # refuses delta = 0 before the long work
    if not domain.bounded:
        rows = in_secret_order(Sample(rows, None), source).held
    exact = mean_features(rows, features)
    mean, scale = with_rest(
        exact, sensitivity=sensitivity, budget=budget, share=share, noise=source
    )
    constant = ~features.frequencies.any(axis=0)
    # the frequency 0 has no row in it: its mean is known
    mean[0, constant], mean[1, constant] = features.amplitudes[constant], 0.0
    return NoisyFeatures(
        kernel=kernel,
        frequencies=features.frequencies,
        amplitudes=features.amplitudes,
        mean=mean,
        scale=scale,
        simulated=source.simulated,
    )


def _check_rows(rows: NDArray[np.float64], domain: Domain) -> None:
    """Refuse rows that are not encoded: the sensitivity would not hold for them."""
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != domain.dimension:
        raise DataError(f"rows must be at least one row of {domain.dimension} columns.")
    for column, level in enumerate(domain.levels):
        values = rows[:, column]
        low, high = values.min(), values.max()  # NaN if there is one, and then refused below
        inside = np.isfinite(low) and np.isfinite(high)
        if level or domain.bounded:
            inside = low >= 0 and high <= max(level - 1, 1)
        if not inside or (level and not np.array_equal(values, np.rint(values))):
            raise DataError("rows must be encoded: [0, 1] for a number, 0, 1, ... for a category.")


def mean_features_sensitivity(
    features: FourierMap, n_rows: int, rows_per_person: int = 1
) -> Sensitivity:
    """How far :func:`mean_features` moves between neighbours, in l2.

    Each mean is off by the error of a feature and of its summation: the additions within a
    block, those of blocks and strips, and a few products. A feature has norm 1, so n additions
    add at most n units of roundoff in l2; twice that is taken. Sums of blocks of rows are rounded
    to fixed point, which puts each cosine and sine off by as much, and the squares of the
    amplitudes add up to 1.
    """
    blocks = math.ceil(_STRIP / _block_rows(len(features.amplitudes)))
    additions = _LONGEST_BLOCK + blocks + BLOCK_ROWS // _STRIP + 16
    fixed = 1.5 * fixed_rounding(n_rows, n_rows) / n_rows
    slack = features.rounding + 2 * additions * UNIT_ROUNDOFF + fixed
    moved = min(rows_per_person, n_rows) * features.spread / n_rows
    return Sensitivity((moved + 2 * slack) * (1 + 1e-14), norm="l2")


class _WaveSums:
    """Sums of exp(i w · x) for all pairs of parts of frequencies; real, then imaginary."""

    __slots__ = ("parts", "sums", "total")

    def __init__(self, parts: tuple[_Part, _Part], total: int) -> None:
        self.parts, self.total = parts, total
        shape = (2, *(part.values.shape[1] for part in parts))
        self.sums = FixedPoint(shape, total)

    def update(self, rows: NDArray[np.float64], start: int) -> None:
        """Add a block."""
        del start
        found = np.zeros(self.sums.units.shape[1:], dtype=np.complex128)
        strips = (rows[first : first + _STRIP] for first in range(0, len(rows), _STRIP))
        summed = partial(_summed, parts=self.parts)
        for part in within_block(summed, strips, self.total, len(rows) * found.size):
            found += part
        self.sums.add(np.stack([found.real, found.imag]))

    def merge(self, other: _WaveSums) -> None:
        """Add other blocks."""
        self.sums.merge(other.sums)


def mean_features(rows: Held, features: FourierMap) -> NDArray[np.float64]:
    """Return the mean of a_j cos(w_j · x) and of a_j sin(w_j · x) over rows: 2 × J, not private.

    exp(i w · x) is a product over two groups of columns. The frequencies of a lattice have few
    different parts in each group, so a matrix product replaces nearly all cosines. Without bounds
    rows have to be in a secret order: the last bit of an angle may depend on a row's place in its
    block, and may be a whole turn.
    """
    left, right = parts = _parts(features.frequencies)
    (found,) = summarise((Sample(rows, None), partial(_WaveSums, parts, len(rows))))
    sums = found.sums.value[:, left.index, right.index]
    return sums * features.amplitudes / len(rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Different frequencies of some columns, and which of them each frequency has."""

    columns: int
    values: NDArray[np.float64]
    index: NDArray[np.intp]


def _parts(frequencies: NDArray[np.float64]) -> tuple[_Part, _Part]:
    """Cut the columns where that is cheapest; random frequencies are not cut."""
    columns, count = frequencies.shape
    best = (
        _Part(columns, frequencies, np.arange(count)),
        _Part(0, np.zeros((0, 1)), np.zeros(count, dtype=np.intp)),
    )
    cost = float(_ANGLE_COST * count)
    for cut in range(1, columns):
        parts = []
        for group in (frequencies[:cut], frequencies[cut:]):
            values, index = np.unique(group, axis=1, return_inverse=True)
            parts.append(_Part(len(group), values, index.reshape(-1)))
        sizes = [part.values.shape[1] for part in parts]
        if _ANGLE_COST * sum(sizes) + sizes[0] * sizes[1] < cost:
            cost = float(_ANGLE_COST * sum(sizes) + sizes[0] * sizes[1])
            best = parts[0], parts[1]
    return best


def _summed(rows: NDArray[np.float64], parts: tuple[_Part, _Part]) -> NDArray[np.complex128]:
    """Sum over rows exp(i w · x), for all pairs of parts of frequencies."""
    left, right = parts
    total = np.zeros((left.values.shape[1], right.values.shape[1]), dtype=np.complex128)
    size = _block_rows(max(total.shape))
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        first = _waves(block[:, : left.columns], left.values)
        if right.columns:
            total += first.T @ _waves(block[:, left.columns :], right.values)
        else:
            total[:, 0] += first.sum(axis=0)
    return total


def _block_rows(width: int) -> int:
    return min(max(_BLOCK_VALUES // width, 1), _LONGEST_BLOCK)


def _waves(rows: NDArray[np.float64], frequencies: NDArray[np.float64]) -> NDArray[np.complex128]:
    waves = np.empty((len(rows), frequencies.shape[1]), dtype=np.complex128)
    waves.real, waves.imag = cos_sin(angles(rows, frequencies))
    return waves
