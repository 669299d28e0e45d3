"""The family of statistics that a two-sample test takes the maximum of.

Any norm of a difference of mean features with a known spread may enter: the maximum of public
affine functions of statistics moves no further than the furthest of them, so a family costs no
more noise than one statistic. Proofs: docs/proofs/portfolio.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.validation import one_of, reject
from privatest.data.schema import Domain
from privatest.numerics.coded import (
    CELLS,
    CODE_BITS,
    CODE_CELLS,
    CODE_FINE,
    FINE,
    ColumnMap,
    Harmonics,
    PairMap,
)
from privatest.numerics.features import MeanMap, ThresholdMap
from privatest.numerics.kernels import Kernel, paired_kernels

Member = ColumnMap | PairMap | ThresholdMap | MeanMap
Statistic = Literal["kernel", "additive", "pairwise", "kolmogorov", "mean"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
Name = TypeVar("Name", bound=str)
Floats = NDArray[np.float64]

_HARMONICS, _PAIR_HARMONICS = 4, 3  # more hardly change power (benchmarks/power/portfolio.py)
_THRESHOLDS, _MOST_THRESHOLDS = 512, 2048  # of a column, and of all
_SUMS_HELD = 1 << 21  # sums of features kept for all bins together
_FEWEST_BINS = 256  # as if there were so many: permutations keep sums of features too
_REFERENCE_POINTS, _REFERENCE_DRAWS = 256, 256
_VARIANCE_POINTS = 1024


def chosen_statistics(
    statistics: Statistic | Sequence[Statistic] | None, domain: Domain, *, kernel_only: bool
) -> tuple[Statistic, ...]:
    """Check what was asked for; None is all that apply, or kernels if ``kernel_only``.

    One column needs neither additive nor pairwise kernels: they are what "kernel" is. Two columns
    need no pairs. Means need a numeric column.
    """
    if statistics is None:
        if kernel_only or not domain.bounded:
            return ("kernel",)
        useless = {"additive": 2, "pairwise": 3}
        return tuple(
            name
            for name in STATISTICS
            if domain.dimension >= useless.get(name, 1) and (name != "mean" or domain.numeric)
        )
    named = named_statistics(statistics, STATISTICS)
    if not domain.bounded and named != ("kernel",):
        raise ParameterError("statistics other than 'kernel' need bounds.")
    if "pairwise" in named and domain.dimension < 2:
        raise ParameterError("statistics='pairwise' needs two columns or more.")
    if "mean" in named and not domain.numeric:
        raise ParameterError("statistics='mean' needs a numeric column.")
    return named


def named_statistics(statistics: object, known: tuple[Name, ...]) -> tuple[Name, ...]:
    """Return names that are among the known ones, in their order."""
    if not isinstance(statistics, Sequence) or not statistics:
        reject("statistics", f"one or more of {', '.join(known)}", statistics)
    listed = [statistics] if isinstance(statistics, str) else list(statistics)
    for name in listed:
        one_of("statistics", name, known)
    return tuple(name for name in known if name in listed)


def check_bandwidths(statistics: Sequence[str]) -> None:
    """Refuse bandwidths that no statistic would use."""
    if "kernel" not in statistics:
        raise ParameterError("bandwidths needs statistics with 'kernel': others have none.")


@lru_cache(maxsize=64)
def members(
    statistics: tuple[Statistic, ...], domain: Domain, bins: int, *, coded: bool = False
) -> tuple[Member, ...]:
    """Build the members that are not kernels in all columns, for ``bins`` sums of features.

    With many columns or bins pairs get fewer harmonics, and none where there is no room. With
    many rows all of them look at codes (:mod:`privatest.numerics.coded`).
    """
    room = _SUMS_HELD // max(bins, _FEWEST_BINS)
    cells, fine = (CODE_CELLS, CODE_FINE) if coded else (CELLS, FINE)
    found: list[Member] = []
    if "additive" in statistics:
        found.append(ColumnMap(Harmonics(domain, _HARMONICS, cells, fine)))
    if "pairwise" in statistics:
        asked = [Harmonics(domain, k, cells, fine) for k in range(_PAIR_HARMONICS, 0, -1)]
        if coded:
            asked = [Harmonics(domain, 2, cells, fine, apart=True), asked[-1]]
        found.extend(_pairs(asked, room))
    if "kolmogorov" in statistics:
        most = max(2, min(_THRESHOLDS, min(_MOST_THRESHOLDS, room // 4) // domain.dimension))
        found.append(ThresholdMap(domain, CODE_CELLS if coded else most))
    if "mean" in statistics:
        found.append(MeanMap(domain, CODE_BITS) if coded else MeanMap(domain))
    return tuple(found)


def _pairs(asked: Sequence[Harmonics], room: int) -> list[Member]:
    for harmonics in asked:
        widths = harmonics.sizes
        if (sum(widths) ** 2 - sum(width**2 for width in widths)) // 2 <= room:
            return [PairMap(harmonics)]
    return []


@lru_cache(maxsize=64)
def unit_moments(part: Member, domain: Domain) -> Floats:
    """Return mean and standard deviation (columns) of each member's statistic, times sqrt(n).

    Of |sum_i s_i f(z_i)|/sqrt(points) over random signs s, z being even points of the domain:
    what |mean of f over x - mean over y| is like, times 1/sqrt(1/n + 1/m), if both samples are
    uniform. Public, and the same in every run.
    """
    rng = np.random.default_rng(0)
    points = domain.points(_REFERENCE_POINTS)
    signs = rng.choice((-1.0, 1.0), size=(_REFERENCE_DRAWS, len(points)))
    signs -= signs.mean(axis=1, keepdims=True)
    signs /= math.sqrt(len(points))
    values = np.vstack(
        [
            part.measure(index, signs @ part.project(index, raw))
            for index, raw in enumerate(part.raw(points))
        ]
    )
    return np.stack([values.mean(axis=1), values.std(axis=1)], axis=1)


@lru_cache(maxsize=64)
def usual_variances(part: Member, domain: Domain) -> Floats:
    """Return the variance of each member's features under the uniform law on the domain."""
    points = domain.points(_VARIANCE_POINTS)
    return part.variances(points, np.random.default_rng(0).permutation(points))  # public


# How widely rows vary in the features of each statistic, whatever their group. Permuted values of a
# statistic are large where the pooled rows vary widely, which is the same for every permutation and
# moves little when a row is replaced: a family weighs its members by it.
# Proof: docs/proofs/portfolio.md.

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

    def variances(self, a: Floats, b: Floats) -> Floats:
        """Half the mean squared distance between features of a's rows and b's, for each member."""


@dataclass(frozen=True, slots=True)
class PooledVariances:
    """For each statistic: the variance of its features over pooled rows, which is private.

    ``moves`` bounds how far it moves between neighbours, ``most`` how large it can be; both are
    public.
    """

    values: Floats
    moves: Floats
    most: Floats


def secret_pairs(x: Floats, y: Floats, noise: NoiseSource) -> tuple[Floats, Floats]:
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
    pairs: tuple[Floats, Floats],
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
