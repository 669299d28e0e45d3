"""The family of statistics that a two-sample test takes the maximum of.

Any norm of a difference of mean features with a known spread may enter: the maximum of public
affine functions of statistics moves no further than the furthest of them, so a family costs no
more noise than one statistic. Proofs: docs/proofs/portfolio.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
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

Member = ColumnMap | PairMap | ThresholdMap | MeanMap
Statistic = Literal["kernel", "additive", "pairwise", "kolmogorov", "mean"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
Name = TypeVar("Name", bound=str)

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
def unit_moments(part: Member, domain: Domain) -> NDArray[np.float64]:
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
def usual_variances(part: Member, domain: Domain) -> NDArray[np.float64]:
    """Return the variance of each member's features under the uniform law on the domain."""
    points = domain.points(_VARIANCE_POINTS)
    return part.variances(points, np.random.default_rng(0).permutation(points))  # public
