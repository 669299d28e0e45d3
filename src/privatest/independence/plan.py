"""What an independence test decides before it looks at the data.

Chosen by public facts alone: columns, bounds, sizes, epsilon and what was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Literal

import numpy as np

from privatest.core.errors import ParameterError
from privatest.data.domain import Domain
from privatest.data.samples import TwoSamples
from privatest.kernels.additive import additive
from privatest.kernels.features import nystrom, resolved
from privatest.kernels.kernels import Kernel
from privatest.kernels.shared import SharedFeatures, stacked, tabulated
from privatest.mechanisms.permutation import Release
from privatest.statistics.dependence import Functions, indicators, trends, values
from privatest.statistics.portfolio import STATISTICS, check_bandwidths, named_statistics

__all__ = [
    "FUNCTIONS",
    "METHODS",
    "NAMES",
    "SHUFFLES",
    "Asked",
    "Method",
    "Plan",
    "Shuffle",
    "count_pairs",
    "make_plan",
    "side_features",
]

Method = Literal["auto", "exact", "nystrom"]
METHODS = ("auto", "exact", "nystrom")
Shuffle = Literal["auto", "permute", "swap"]
SHUFFLES = ("auto", "permute", "swap")
TREND = "trend"
NAMES: tuple[str, ...] = (*(name for name in STATISTICS if name != "pairwise"), TREND)
_MAX_RANK = 24  # per kernel; more did not change power (benchmarks/power/hsic.py)
_MOST_PAIRS = 1 << 15  # of functions: sums of all pairs of blocks then take 256 MB
_TREND_SHARE = Fraction(1, 4)  # of the level, if other statistics take part
# A trend looks at the middle of the bounds, the less of it the more noise there is: the widest
# for which n epsilon² is above (benchmarks/power/independence.py).
_TREND_WIDTHS = {1e4: 0.5, 1e3: 0.375, 1e2: 0.25, 0.0: 0.125}
# Swaps have less noise, permutations a smaller statistic under the null hypothesis: their power
# is the same near this n epsilon² (benchmarks/power/independence.py).
_EQUAL_POWER: dict[Release, float] = {"decision": 190.0, "pvalue": 240.0}

Kernels = tuple[tuple[Kernel, ...], tuple[Kernel, ...]]
# "mean": columns as they are, and clipped to the middle of their bounds, each a statistic
FUNCTIONS: dict[str, tuple[Functions, ...]] = {
    "kolmogorov": (indicators,),
    "mean": (values, *(partial(values, width=width) for width in (0.5, 0.25, 0.125))),
    TREND: (partial(trends, width=0.5),),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller asks for: statistics, how they are computed, and what is released."""

    statistics: str | Sequence[str] | None
    estimator: Literal["v", "u"]
    method: Method
    shuffle: Shuffle
    n_permutations: int
    default_bandwidths: bool
    release: Release
    alpha: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before looking at the data, and the data."""

    sides: TwoSamples
    kernels: Kernels
    exact: bool
    names: tuple[str, ...]
    estimator: Literal["v", "u"]
    n_permutations: int
    swap: bool
    trend_width: float

    @property
    def domains(self) -> tuple[Domain, Domain]:
        """The public domains of both sides."""
        return self.sides[0].domain, self.sides[1].domain

    @property
    def family(self) -> tuple[str, ...]:
        """The statistics that the maximum is taken over."""
        return tuple(name for name in self.names if name != TREND)

    @property
    def trend_share(self) -> Fraction:
        """Share of the level that goes to a trend."""
        if TREND not in self.names:
            return Fraction(0)
        return _TREND_SHARE if self.family else Fraction(1)


def make_plan(sides: TwoSamples, kernels: Kernels, asked: Asked) -> Plan:
    """Decide how to compute, and which statistics."""
    bounded = all(side.domain.bounded for side in sides)
    if asked.method == "nystrom" and not bounded:
        raise ParameterError("method='nystrom' needs bounds on both sides for its public points.")
    if asked.method == "nystrom" and asked.estimator == "u":
        raise ParameterError("estimator='u' needs method='exact': features have no diagonal.")
    exact = asked.method == "exact" or asked.estimator == "u" or not bounded
    if not exact:
        first, second = (
            side_features(grid, side.domain)[0] for side, grid in zip(sides, kernels, strict=True)
        )
        kernels = (first, second)
    domains = sides[0].domain, sides[1].domain
    names = chosen_names(domains, asked, exact=exact)
    if not asked.default_bandwidths:
        check_bandwidths(names)
    strength = len(sides[0]) * (asked.epsilon / sides.rows_per_person) ** 2
    width = next(width for least, width in _TREND_WIDTHS.items() if strength >= least)
    swap = asked.shuffle == "swap"
    if asked.shuffle == "auto":
        swap = not exact and strength < _EQUAL_POWER[asked.release]
    if exact and swap:
        raise ParameterError(
            "shuffle='swap' needs bounds on both sides, estimator='v' and method='auto'."
        )
    estimator, count = asked.estimator, asked.n_permutations
    return Plan(sides, kernels, exact, names, estimator, count, swap, width)


def chosen_names(domains: tuple[Domain, Domain], asked: Asked, *, exact: bool) -> tuple[str, ...]:
    """Names of the statistics, in the order of NAMES."""
    if asked.statistics is not None:
        return _checked(named_statistics(asked.statistics, NAMES), domains, asked, exact=exact)
    if exact or not asked.default_bandwidths:
        return ("kernel",)
    several = any(domain.dimension > 1 for domain in domains)
    left_out = set() if several else {"additive"}
    if asked.release == "pvalue" or not _trend_counts(domains, asked):
        left_out.add(TREND)
    return tuple(
        name
        for name in NAMES
        if name == "kernel" or (name not in left_out and 0 < _pairs(name, domains) <= _MOST_PAIRS)
    )


def _trend_counts(domains: tuple[Domain, Domain], asked: Asked) -> bool:
    """Whether permutations are enough for each sign's share of the level, with room to spare."""
    signs = 2 * _pairs(TREND, domains)
    return _TREND_SHARE * asked.alpha * (asked.n_permutations + 1) >= 2 * signs


def _checked(
    names: tuple[str, ...], domains: tuple[Domain, Domain], asked: Asked, *, exact: bool
) -> tuple[str, ...]:
    """Refuse names that these columns, or this way of computing, have no statistics for."""
    if exact and names != ("kernel",):
        raise ParameterError(
            "statistics other than 'kernel' need bounds on both sides, estimator='v' and "
            "method='auto'."
        )
    for name in names:
        if name != "kernel" and not 0 < _pairs(name, domains) <= _MOST_PAIRS:
            raise ParameterError(
                f"statistics={name!r} needs, on each side, a numeric column or one with at "
                "most 24 categories, and not too many columns; leave it out."
            )
    alone = names == (TREND,) and _pairs(TREND, domains) == 1
    if TREND in names and asked.release == "pvalue" and not alone:
        raise ParameterError(
            "statistics='trend' has a p-value only by itself, and for one column a side that is a "
            "number or has two categories; ask for release='decision'."
        )
    if names == (TREND,) and asked.shuffle == "swap":
        raise ParameterError("shuffle='swap' does not apply to statistics='trend'; leave it out.")
    return names


def _pairs(name: str, domains: tuple[Domain, Domain]) -> int:
    """Count the pairs of functions that a statistic takes covariances of."""
    if name == "additive":
        return int(np.prod([additive("gaussian", domain).width for domain in domains]))
    return sum(
        int(np.prod([make(np.zeros((0, own.dimension)), own).shape[1] for own in domains]))
        for make in FUNCTIONS[name]
    )


def count_pairs(
    domains: tuple[Domain, Domain],
    statistics: str | Sequence[str] | None,
    *,
    exact: bool,
    alone: bool,
) -> int:
    """Count the pairs of functions of all statistics but kernels, which have their own."""
    asked = Asked(
        statistics, "v", "auto", "auto", 999, not alone, release="decision", alpha=0.05, epsilon=1.0
    )
    names = chosen_names(domains, asked, exact=exact)
    return sum(_pairs(name, domains) for name in names if name != "kernel")


@lru_cache(maxsize=32)
def side_features(
    kernels: tuple[Kernel, ...], domain: Domain
) -> tuple[tuple[Kernel, ...], SharedFeatures]:
    """Return the kernels that public points resolve, and their features."""
    landmarks = domain.landmarks()
    kept = resolved(kernels, landmarks, domain)
    table = tabulated(kept, domain, max_rank=_MAX_RANK)
    return kept, table or stacked(nystrom(kept, landmarks, domain, max_rank=_MAX_RANK))
