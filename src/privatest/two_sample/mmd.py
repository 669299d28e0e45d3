"""The kernel two-sample test, by the maximum mean discrepancy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.samples import TwoSamples, encode_samples
from privatest.kernels.features import FeatureMaps, Together, fourier, nystrom, resolved
from privatest.kernels.kernels import Kernel, KernelFamily, kernel_grid
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result, strongest
from privatest.statistics.bins import bin_size_of, one_below_other, two_sample_bins
from privatest.statistics.kernel_moments import null_moments
from privatest.statistics.mmd import (
    mmd_sensitivity,
    mmd_u_sensitivity,
    permuted_mmd_exact,
    permuted_mmd_features,
)
from privatest.statistics.pair_swaps import (
    pair_swaps_sensitivity,
    permuted_swaps_exact,
    permuted_swaps_features,
)
from privatest.statistics.portfolio import Statistic, chosen_statistics, members, unit_moments
from privatest.statistics.private_groups import (
    permuted_groups_exact,
    permuted_groups_features,
    private_groups_sensitivity,
)
from privatest.two_sample.common import (
    NULL_HYPOTHESIS,
    Relabel,
    check_relabel,
    check_sizes,
    labelled_rows,
    public_sizes,
    shown_sizes,
    swaps_labels,
)

__all__ = ["EXACT_BINS", "is_quick", "mmd_test"]

Method = Literal["auto", "exact", "nystrom", "fourier"]
_METHODS = ("auto", "exact", "nystrom", "fourier")
# Up to here the exact kernel is quick; permuting private labels costs N² per permutation. In more
# than two columns public points can miss what lies between them, so it is worth more time.
_EXACT_ROWS, _EXACT_ROWS_PRIVATE, _EXACT_ROWS_MANY_COLUMNS = 2_000, 500, 10_000
_FREQUENCIES = 256
EXACT_BINS, _FEATURE_BINS = 2_048, 16_384  # rows of public groups are permuted in so many bins


class MmdOptions(TypedDict, total=False):
    """What :func:`mmd_test` takes besides data, budget and ``release``."""

    delta: Amount
    alpha: float
    adjacency: Adjacency
    relabel: Relabel
    bounds: Any
    kernel: KernelFamily
    bandwidths: float | Sequence[float] | None
    statistics: Statistic | Sequence[Statistic] | None
    estimator: Literal["v", "u"]
    method: Method
    n_permutations: int
    bin_size: int | None
    rng: Rng
    noise: NoiseSource | None


@overload
def mmd_test(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    release: Literal["pvalue"] = ...,
    **options: Unpack[MmdOptions],
) -> Outcome: ...
@overload
def mmd_test(
    x: Any, y: Any, *, epsilon: Amount, release: Release, **options: Unpack[MmdOptions]
) -> Decision: ...
def mmd_test(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    adjacency: Adjacency = "one",
    relabel: Relabel = "auto",
    bounds: Any = None,
    kernel: KernelFamily = "gaussian",
    bandwidths: float | Sequence[float] | None = None,
    statistics: Statistic | Sequence[Statistic] | None = None,
    estimator: Literal["v", "u"] = "v",
    method: Method = "auto",
    n_permutations: int = 999,
    bin_size: int | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether two samples come from the same distribution (dpMMD and others).

    The maximum over a family of statistics, at the price of one: the maximum mean discrepancy
    over a public grid of bandwidths, and what single columns and pairs of columns show. With a
    smoothed permutation test: the p-value is exactly uniform under the null hypothesis.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; a row is a record, a 1-D array is one column.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    adjacency : {"one", "both", "row"}
        What is hidden: one record's values within its group; one record in each group; or one
        record with its group ("row": group sizes are private too).
    relabel : {"auto", "permute", "swap"}
        How private groups are relabelled: all labels permuted, or swapped within secret pairs of
        rows, with a third less noise and a larger statistic under the null hypothesis. "auto"
        swaps where N epsilon² is small.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns. Data outside is clipped. Without bounds ``bandwidths``
        must be given, in the data's own units.
    kernel : {"gaussian", "laplace", "imq"}
        Kernel of the numeric columns.
    bandwidths : float or sequence of float, optional
        Public bandwidths, as a share of each column's bounds; by default a grid from 4 to 1/16
        of the box.
    statistics : str or sequence of str, optional
        Members of the family: "kernel" (MMD in all columns), "additive" (MMD of single columns,
        their mean and the largest), "pairwise" (the same of pairs of columns), "kolmogorov"
        (largest difference of a column's distribution functions, or of a category's shares, at
        public thresholds) and "mean" (largest difference of a column's means). By default all
        that apply; "kernel" alone if ``bandwidths`` or ``estimator="u"`` are given or bounds are
        not.
    estimator : {"v", "u"}
        MMD, or the unbiased estimate of its square (more noise; exact kernel only).
    method : {"auto", "exact", "nystrom", "fourier"}
        The exact kernel, or features on public points or frequencies. "auto" looks at public
        sizes only.
    n_permutations : int
        Number of random permutations.
    bin_size : int, optional
        Rows that are permuted together; chosen from the sizes by default.
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        An Outcome without a statistic for ``release="pvalue"``, else a Decision.

    Notes
    -----
    **Sensitivity** With c² = 2 (sup k - inf k) over the public box, MMD moves by at most
    c/min(n, m) ("one"); permuted statistics by at most 2c/min(n, m) ("both"); with private
    groups (nm/N²) MMD moves by c (N-1)/N², permuted ones by twice that ("row"), swapped ones
    both by c/N. All of it is multiplied by the rows a person may have. Proofs:
    docs/proofs/mmd-sensitivity.md and docs/proofs/private-groups.md.

    **Privacy** Only the p-value (a multiple of 1/10,000) or the decision is released, at
    (epsilon, delta). Proof: docs/proofs/smoothed-permutation-test.md.

    References
    ----------
    Kim and Schrab (2023), Differentially private permutation tests: applications to kernel
    methods.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=2000), rng.beta(2, 1, size=2000)
    >>> pt.mmd_test(x, y, epsilon=1, bounds=(0, 1)).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("release", release, RELEASES)
    one_of("adjacency", adjacency, ADJACENCIES)
    check_relabel(relabel, adjacency)
    one_of("estimator", estimator, ("v", "u"))
    one_of("method", method, _METHODS)
    if adjacency == "row" and estimator == "u":
        raise ParameterError("adjacency='row' needs estimator='v'.")
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    if bin_size is not None:
        bin_size = integer_at_least("bin_size", bin_size, 1)
        if adjacency == "row":
            raise ParameterError("bin_size cannot be used with adjacency='row'.")
    generator, source = public_generator(rng), noise_source(noise)
    samples = encode_samples(x, y, bounds)
    check_sizes(samples, adjacency)
    kernel_only = bandwidths is not None or estimator == "u"
    family = chosen_statistics(statistics, samples.domain, kernel_only=kernel_only)
    if estimator == "u" and family != ("kernel",):
        raise ParameterError("estimator='u' needs statistics='kernel'.")
    kernels = kernel_grid(kernel, bandwidths, samples.domain) if "kernel" in family else ()
    total, rows_per_person = len(samples.x) + len(samples.y), samples.rows_per_person
    swap = adjacency == "row" and swaps_labels(
        relabel, total, rows_per_person, budget.pure_epsilon, release
    )
    plan = _plan(samples, kernels, family, adjacency, estimator, method, swap=swap)
    values, sensitivities = _statistics(plan, n_permutations, bin_size, generator, source)
    maxima, sensitivity = strongest(
        values,
        sensitivities,
        _null(plan),
        rows=total,
        epsilon=budget.pure_epsilon,
        release=release,
    )
    return permutation_result(
        maxima,
        sensitivity=sensitivity,
        budget=budget,
        alpha=alpha,
        release=release,
        noise=source,
        facts=_facts(plan, n_permutations),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is decided before looking at the data, and the data."""

    samples: TwoSamples
    kernels: tuple[Kernel, ...]
    family: tuple[Statistic, ...]
    kernel_maps: FeatureMaps | None  # None: the exact kernel
    others: tuple[FeatureMaps, ...]  # members that are not kernels in all columns
    adjacency: Adjacency
    estimator: Literal["v", "u"]
    method: Method
    swap: bool  # private groups are relabelled within pairs

    @property
    def sizes(self) -> tuple[int, int]:
        """The two sample sizes, as far as they are public."""
        return public_sizes(self.samples, self.adjacency)

    @property
    def exact(self) -> tuple[Kernel, ...]:
        """Kernels that are evaluated at every pair of rows."""
        return self.kernels if self.kernel_maps is None else ()

    @property
    def maps(self) -> FeatureMaps | None:
        """All members that are norms of features, if there are any."""
        parts = self.others if self.kernel_maps is None else (self.kernel_maps, *self.others)
        return Together(parts) if parts else None

    @property
    def spreads(self) -> tuple[float, ...]:
        """Of all members, in the order of their statistics."""
        exact = tuple(kernel.spread(self.samples.domain) for kernel in self.exact)
        return exact if self.maps is None else exact + self.maps.spreads


def _plan(
    samples: TwoSamples,
    kernels: tuple[Kernel, ...],
    family: tuple[Statistic, ...],
    adjacency: Adjacency,
    estimator: Literal["v", "u"],
    method: Method,
    *,
    swap: bool,
) -> _Plan:
    """Decide how to compute, from public quantities only."""
    domain, total = samples.domain, len(samples.x) + len(samples.y)
    if estimator == "u" and method not in ("auto", "exact"):
        raise ParameterError("estimator='u' needs method='exact': features have no diagonal.")
    if not domain.bounded and method not in ("auto", "exact"):
        raise ParameterError(f"method={method!r} needs bounds, to place its public points.")
    if method == "auto":
        quick = is_quick(total, domain.dimension, adjacency, swap=swap)
        method = "exact" if estimator == "u" or not domain.bounded or quick else "nystrom"
    maps: FeatureMaps | None = None
    if kernels and method == "nystrom":
        landmarks = domain.landmarks()
        kernels = resolved(kernels, landmarks, domain)
        maps = nystrom(kernels, landmarks, domain)
    elif kernels and method == "fourier":
        # public frequencies, the same in every run
        maps = fourier(kernels, _FREQUENCIES, domain, public_generator(0))
    sums = number_of_sums(samples, adjacency, swap=swap, exact=method == "exact")
    others = members(family, domain, sums)
    return _Plan(samples, kernels, family, maps, others, adjacency, estimator, method, swap)


def is_quick(total: int, dimension: int, adjacency: Adjacency, *, swap: bool) -> bool:
    """Return whether "auto" takes the exact kernel, by public numbers of rows and columns."""
    most = _EXACT_ROWS if dimension <= 2 else _EXACT_ROWS_MANY_COLUMNS
    return total <= (_EXACT_ROWS_PRIVATE if adjacency == "row" and not swap else most)


def _statistics(
    plan: _Plan,
    n_permutations: int,
    bin_size: int | None,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> tuple[NDArray[np.float64], list[PermutationSensitivity]]:
    """Return the statistics (members × permutations) and how far each member's move."""
    if plan.adjacency == "row":
        values, errors = _private_groups(plan, n_permutations, rng, noise)
    else:
        values, errors = _public_groups(plan, n_permutations, bin_size, rng, noise)
    n, m = plan.sizes
    if plan.adjacency == "row":
        own = pair_swaps_sensitivity if plan.swap else private_groups_sensitivity
        bounds = [own(spread, n + m) for spread in plan.spreads]
    else:
        bound = mmd_u_sensitivity if plan.estimator == "u" else mmd_sensitivity
        bounds = [bound(spread, n, m, plan.adjacency) for spread in plan.spreads]
    rows = plan.samples.rows_per_person
    return values, [
        (sensitivity * rows).widened(float(error))
        for sensitivity, error in zip(bounds, errors, strict=True)
    ]


def _public_groups(
    plan: _Plan,
    n_permutations: int,
    bin_size: int | None,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = plan.samples.x.rows, plan.samples.y.rows
    bins = two_sample_bins(
        x,
        y,
        noise.permutation(len(x)),
        noise.permutation(len(y)),
        size=bin_size,
        max_bins=EXACT_BINS if plan.exact else _FEATURE_BINS,
    )
    membership = bins.membership(n_permutations, rng)
    found = []
    if plan.exact:
        unbiased = plan.estimator == "u"
        domain = plan.samples.domain
        found.append(permuted_mmd_exact(bins, membership, plan.exact, domain, unbiased=unbiased))
    if plan.maps is not None:
        found.append(permuted_mmd_features(bins, membership, plan.maps))
    return one_below_other(*found)


def _private_groups(
    plan: _Plan, n_permutations: int, rng: np.random.Generator, noise: NoiseSource
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rows, labels = labelled_rows(plan.samples, noise)
    if plan.exact:
        exact = permuted_swaps_exact if plan.swap else permuted_groups_exact
        return exact(
            rows, labels, plan.exact, plan.samples.domain, n_permutations, rng, plan.maps
        )
    assert plan.maps is not None  # a family has a member
    permuted = permuted_swaps_features if plan.swap else permuted_groups_features
    return permuted(rows, labels, plan.maps, n_permutations, rng)


def _null(plan: _Plan) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Mean and standard deviation of each member's statistic if both samples were uniform."""
    domain = plan.samples.domain
    if not domain.bounded:
        return None
    n, m = plan.sizes
    rate = 1 / n + 1 / m
    moments = np.array(null_moments(plan.kernels, domain)).reshape(-1, 2)
    if plan.estimator == "u":
        return np.zeros(len(moments)), rate * np.sqrt(2 * moments[:, 1])
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
    return both[:, 0], both[:, 1]


def _facts(plan: _Plan, n_permutations: int) -> dict[str, Any]:
    return {
        "adjacency": plan.adjacency,
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
        "unit": plan.samples.unit,
    }


def _name(plan: _Plan) -> str:
    if plan.family == ("kernel",):
        return f"two-sample MMD test ({plan.kernels[0].family} kernel)"
    return "two-sample test by the largest of " + ", ".join(plan.family)
