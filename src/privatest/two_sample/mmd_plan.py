"""What :func:`mmd_test` decides before it looks at the data: from public quantities only."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.privacy import Adjacency, PermutationSensitivity
from privatest.core.validation import public_generator
from privatest.data.domain import Domain
from privatest.data.samples import TwoSamples
from privatest.kernels.coded import CODE_CELLS, CodedMaps, has_codes
from privatest.kernels.features import FeatureMaps, Together, fourier, nystrom, resolved
from privatest.kernels.kernels import Kernel
from privatest.kernels.tabulated import TabulatedKernels, tabulated_kernels
from privatest.mechanisms.permutation import NullLaw
from privatest.statistics.bins import rows_per_bin
from privatest.statistics.kernel_moments import null_moments
from privatest.statistics.mmd import mmd_sensitivity, mmd_u_sensitivity
from privatest.statistics.pair_swaps import SWAP_BINS, pair_swaps_sensitivity
from privatest.statistics.pooled import PooledVariances, pooled_variances
from privatest.statistics.portfolio import (
    Member,
    Statistic,
    members,
    unit_moments,
    usual_variances,
)
from privatest.statistics.private_groups import LABEL_BLOCKS, private_groups_sensitivity
from privatest.two_sample.common import NULL_HYPOTHESIS, public_sizes, shown_sizes

__all__ = [
    "EXACT_BINS",
    "METHODS",
    "Method",
    "Plan",
    "declared",
    "is_quick",
    "make_plan",
    "needs_pairs",
    "null_law",
    "pooled",
    "public_facts",
    "sums_kept",
]

Floats = NDArray[np.float64]
Method = Literal["auto", "exact", "nystrom", "fourier"]
METHODS = ("auto", "exact", "nystrom", "fourier")
# Up to here the exact kernel is quick; permuting private labels costs N² per permutation. In more
# than two columns public points can miss what lies between them, so it is worth more time.
_EXACT_ROWS, _EXACT_ROWS_PRIVATE, _EXACT_ROWS_MANY_COLUMNS = 2_000, 500, 10_000
_FREQUENCIES = 256
_MANY_ROWS = 1_000_000  # of both samples, from which reading them is not to be outweighed
_FEW_POINTS = 16
EXACT_BINS, _FEATURE_BINS = 2_048, 16_384  # rows of public groups are permuted in so many bins


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before looking at the data, and the data."""

    samples: TwoSamples
    kernels: tuple[Kernel, ...]
    family: tuple[Statistic, ...]
    kernel_maps: FeatureMaps | None  # None: the exact kernel
    others: tuple[Member, ...]  # members that are not kernels in all columns
    adjacency: Adjacency
    estimator: Literal["v", "u"]
    method: Method
    swap: bool  # private groups are relabelled within pairs
    bin_size: int | None
    coded: bool = False  # rows are so many that only codes of them are looked at

    @property
    def sizes(self) -> tuple[int, int]:
        """The two sample sizes, as far as they are public."""
        return public_sizes(self.samples, self.adjacency)

    @property
    def max_bins(self) -> int:
        """How many bins rows of public groups are permuted in, at most."""
        return _max_bins(exact=bool(self.exact))

    @property
    def sums(self) -> int:
        """About how many sums of features are kept for permutations."""
        exact, size = bool(self.exact), self.bin_size
        return sums_kept(*self.sizes, self.adjacency, exact=exact, swap=self.swap, bin_size=size)

    @property
    def exact(self) -> tuple[Kernel, ...]:
        """Kernels that are evaluated at every pair of rows."""
        return self.kernels if self.kernel_maps is None else ()

    @property
    def maps(self) -> FeatureMaps | None:
        """All members that are norms of features, if there are any."""
        parts = self.others if self.kernel_maps is None else (self.kernel_maps, *self.others)
        if self.coded:
            return CodedMaps(parts, self.samples.domain)
        return Together(parts) if parts else None

    @property
    def spreads(self) -> tuple[float, ...]:
        """Of all members, in the order of their statistics."""
        exact = tuple(kernel.spread(self.samples.domain) for kernel in self.exact)
        return exact if self.maps is None else exact + self.maps.spreads


def make_plan(
    samples: TwoSamples,
    kernels: tuple[Kernel, ...],
    family: tuple[Statistic, ...],
    adjacency: Adjacency,
    estimator: Literal["v", "u"],
    method: Method,
    *,
    swap: bool,
    bin_size: int | None,
) -> Plan:
    """Decide how to compute, from public quantities only.

    Pairs of many columns may have no room: the plan's family is what takes part.
    """
    domain, total = samples.domain, len(samples.x) + len(samples.y)
    if estimator == "u" and method not in ("auto", "exact"):
        raise ParameterError("estimator='u' needs method='exact': features have no diagonal.")
    if not domain.bounded and method not in ("auto", "exact"):
        raise ParameterError(f"method={method!r} needs bounds, to place its public points.")
    if method == "auto":
        quick = is_quick(total, domain.dimension, adjacency, swap=swap)
        method = "exact" if estimator == "u" or not domain.bounded or quick else "nystrom"
    maps: FeatureMaps | None = None
    coded = method == "nystrom" and total >= _MANY_ROWS and has_codes(domain)
    if kernels and method == "nystrom":
        # where others look at single columns and pairs, a few points are enough for the rest
        few = coded and "pairwise" in family
        kernels, maps = _on_landmarks(kernels, domain, coded=coded, few=few)
        coded = coded and isinstance(maps, TabulatedKernels)
    elif kernels and method == "fourier":
        # public frequencies, the same in every run
        maps = fourier(kernels, _FREQUENCIES, domain, public_generator(0))
    plan = Plan(samples, kernels, family, maps, (), adjacency, estimator, method, swap, bin_size)
    others = members(family, domain, plan.sums, coded=coded)
    present = {"kernel", *(part.name for part in others)}
    family = tuple(name for name in family if name in present)
    return replace(plan, others=others, family=family, coded=coded)


@lru_cache(maxsize=32)
def _on_landmarks(
    kernels: tuple[Kernel, ...], domain: Domain, *, coded: bool, few: bool
) -> tuple[tuple[Kernel, ...], FeatureMaps]:
    """Return the kernels that public points resolve, and their features."""
    if few:  # the widest sees means of columns, as others do
        landmarks = domain.landmarks(_FEW_POINTS)
        own = resolved(kernels[1:] or kernels, landmarks, domain)
        found = tabulated_kernels(own, landmarks, domain, CODE_CELLS)
        if found is not None:
            return own, found
    landmarks = domain.landmarks()
    kernels = resolved(kernels, landmarks, domain)
    exact = tabulated_kernels(kernels, landmarks, domain, CODE_CELLS if coded else 0)
    return kernels, nystrom(kernels, landmarks, domain) if exact is None else exact


def is_quick(total: int, dimension: int, adjacency: Adjacency, *, swap: bool) -> bool:
    """Return whether "auto" takes the exact kernel, by public numbers of rows and columns."""
    most = _EXACT_ROWS if dimension <= 2 else _EXACT_ROWS_MANY_COLUMNS
    return total <= (_EXACT_ROWS_PRIVATE if adjacency == "row" and not swap else most)


def sums_kept(
    n: int, m: int, adjacency: Adjacency, *, exact: bool, swap: bool, bin_size: int | None = None
) -> int:
    """About how many sums of features are kept for permutations, by public sizes.

    ``exact``: there are kernels that are evaluated at every pair of rows.
    """
    if adjacency != "row":
        return (n + m) // rows_per_bin(n, m, bin_size, _max_bins(exact=exact)) + 2
    if swap:
        return SWAP_BINS
    return n + m if exact else LABEL_BLOCKS**2


def _max_bins(*, exact: bool) -> int:
    return EXACT_BINS if exact else _FEATURE_BINS


def null_law(plan: Plan) -> NullLaw | None:
    """Say what each member would be like if both samples were uniform."""
    domain = plan.samples.domain
    if not domain.bounded:
        return None
    n, m = plan.sizes
    rate = 1 / n + 1 / m
    moments = np.zeros((0, 2))
    if plan.kernels:
        moments = np.array(null_moments(plan.kernels, domain))
    if plan.estimator == "u":
        return NullLaw(np.zeros(len(moments)), rate * np.sqrt(2 * moments[:, 1]))
    # a kernel that rounds to 1 everywhere has neither
    means = np.sqrt(moments[:, 0])
    deviations = np.sqrt(moments[:, 1] / 2) / np.where(means > 0, means, np.inf)
    both = np.vstack(
        [np.stack([means, deviations], axis=1), *(unit_moments(own, domain) for own in plan.others)]
    )
    share = n * m / (n + m) ** 2 if plan.adjacency == "row" else 1.0  # T is (nm/N²) MMD
    if plan.swap:  # half of the pairs have two labels
        share *= math.sqrt(2)
    both *= share * math.sqrt(rate)
    usual = [moments[:, 0], *(usual_variances(own, domain) for own in plan.others)]
    return NullLaw(both[:, 0], both[:, 1], np.concatenate(usual))


def needs_pairs(plan: Plan) -> bool:
    """Whether members are weighed by how widely rows vary: there are several, and a box."""
    return plan.samples.domain.bounded and plan.estimator != "u" and len(plan.spreads) > 1


def pooled(plan: Plan, pairs: tuple[Floats, Floats] | None) -> PooledVariances | None:
    """How widely the rows of both groups together vary, in the features of each member."""
    if pairs is None:
        return None
    persons = 2 if plan.adjacency == "both" else 1
    return pooled_variances(
        pairs,
        plan.kernels,
        plan.others,
        plan.samples.domain,
        replaced=persons * plan.samples.rows_per_person,
    )


def declared(plan: Plan) -> list[PermutationSensitivity]:
    """How far the statistic of each member moves between neighbours, but for rounding."""
    n, m = plan.sizes
    if plan.adjacency == "row":
        own = pair_swaps_sensitivity if plan.swap else private_groups_sensitivity
        bounds = [own(spread, n + m) for spread in plan.spreads]
    else:
        bound = mmd_u_sensitivity if plan.estimator == "u" else mmd_sensitivity
        bounds = [bound(spread, n, m, plan.adjacency) for spread in plan.spreads]
    return [sensitivity * plan.samples.rows_per_person for sensitivity in bounds]


def public_facts(plan: Plan, n_permutations: int) -> dict[str, Any]:
    """Return what a result says besides its answer; never which member was the largest."""
    return {
        "adjacency": plan.adjacency,
        "method_id": "mmd_test/kernel" if plan.family == ("kernel",) else "mmd_test/largest",
        "method": _name(plan),
        "null_hypothesis": NULL_HYPOTHESIS,
        "sizes": shown_sizes(plan.samples, plan.adjacency),
        "parameters": {"statistics": plan.family}
        | (
            {
                "kernel": plan.kernels[0].family,
                "bandwidths": tuple(kernel.bandwidth for kernel in plan.kernels),
                "estimator": plan.estimator,
                "computation": plan.method,
            }
            if plan.kernels
            else {}
        )
        | {"n_permutations": n_permutations}
        | ({"relabel": "swap" if plan.swap else "permute"} if plan.adjacency == "row" else {}),
        "rows_per_person": plan.samples.rows_per_person,
    }


def _name(plan: Plan) -> str:
    if plan.family == ("kernel",):
        return f"two-sample MMD test ({plan.kernels[0].family} kernel)"
    return "two-sample test by the largest of " + ", ".join(plan.family)
