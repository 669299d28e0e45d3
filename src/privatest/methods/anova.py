"""Analysis of variance of one column from noisy means of several groups.

"classical" is the parametric bootstrap of :mod:`privatest.methods.mean_inference` for k groups; as
noise vanishes it becomes Fisher's test, or Welch's. "any" compares pairs of groups, by Bonferroni.
Proof: docs/proofs/means.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Interval, Outcome, declare_level
from privatest.core.validation import Rng, boolean, public_generator
from privatest.data.reading import group_names, resolve_samples
from privatest.data.schema import Bounds, Box, Category
from privatest.methods.descriptor import FROM_MOMENTS, NEEDS_SIZES, Method, Offered
from privatest.methods.mean_inference import (
    BY_SIZES,
    HIGHEST_LEVEL,
    Calibration,
    Contrast,
    NullDraws,
    Scenario,
    calibrated,
    check_one_column,
    checked_bootstrap,
    checked_calibration,
    contrast_pvalue,
    contrast_reach,
    in_units,
    numeric_groups,
    redraw,
    release_rows,
    sample_budget,
    scenarios,
    upper_point,
)
from privatest.methods.two_groups import PublicGroups, group_facts

Floats = NDArray[np.float64]
_LEAST = 1e-100  # of a variance that was cut at 0: its reciprocal and squares are finite


@dataclass(frozen=True, slots=True, eq=False)
class GroupMeans(Contrast):
    """Released means of k groups of one column; ``size`` is the number of rows of the smallest."""

    @property
    def sizes(self) -> Floats:
        """Public numbers of rows."""
        return np.array([sample.plan.n for sample in self.samples], dtype=np.float64)

    @property
    def extra(self) -> float:
        """Variance that noise adds to the mean of the smallest group, times its size; ridge."""
        noise = max(sample.plan.variance for sample in self.samples)
        ridges = zip(self.weights, self.samples, strict=True)
        return self.size * noise + sum(weight * sample.ridge for weight, sample in ridges)

    def variances(self, own: Floats) -> Floats:
        """Return the variance of each released mean, noise included, from variances of rows.

        Groups are along the last axis. Equal variances are pooled, divisor N - k.
        """
        noise = np.array([sample.plan.variance for sample in self.samples])
        ridge = np.array([sample.ridge for sample in self.samples])
        sizes = self.sizes
        if self.equal:
            pooled = ((own + ridge) * (sizes - 1)).sum(axis=-1, keepdims=True) / self.freedom
            return np.asarray(pooled / sizes + noise)
        return np.asarray((own + ridge) / sizes + noise)

    @property
    def means(self) -> Floats:
        """The released means, in [-1, 1] up to noise."""
        return np.array([sample.mean[0] for sample in self.samples])

    @property
    def own(self) -> Floats:
        """The released variances of rows."""
        return np.array([sample.covariance[0, 0] for sample in self.samples])

    @property
    def each(self) -> list[Contrast]:
        """Each group by itself."""
        return [Contrast((sample,), (1.0,), float(sample.plan.n)) for sample in self.samples]

    def survival(self, values: Floats) -> Floats:
        """Return P(F >= value) of the classical test without noise: Fisher's, or Welch's."""
        from scipy.special import fdtrc  # noqa: PLC0415

        first, second = len(self.samples) - 1, float(self.freedom)
        if not self.equal:
            weights = self.sizes / np.maximum(self.own, _LEAST)
            welch = float(_welch(weights / weights.sum(), self.sizes))
            second = (len(self.samples) ** 2 - 1) / (3 * welch)
        return np.asarray(fdtrc(first, second, values))


def f_value(means: Floats, variances: Floats, sizes: Floats | None) -> Floats:
    """F = Σ w (m - m̄)²/(k - 1), w = 1/variance and m̄ the mean with these weights.

    Without noise and with equal variances it is the classical F; for two groups it is t².
    ``sizes`` are given where variances are not pooled: F is then divided as Welch does.
    """
    weights = 1 / variances
    total, count = weights.sum(axis=-1, keepdims=True), means.shape[-1]
    middle = (weights * means).sum(axis=-1, keepdims=True) / total
    value: Floats = (weights * np.square(means - middle)).sum(axis=-1) / (count - 1)
    if sizes is not None:
        value /= 1 + 2 * (count - 2) / (count**2 - 1) * _welch(weights / total, sizes)
    return value


def _welch(shares: Floats, sizes: Floats) -> Floats:
    """Return Σ (1 - w/W)²/(n - 1) of Welch (1951)."""
    return np.asarray((np.square(1 - shares) / (sizes - 1)).sum(axis=-1))


@dataclass(frozen=True, slots=True, eq=False)
class GroupDraws:
    """Releases of simulated groups: deviations of means, their variances, and F without noise."""

    deviations: Floats
    variances: Floats
    classical: Floats


def _replicate(groups: GroupMeans, scenario: Scenario, count: int, seed: int) -> GroupDraws:
    """Redraw the release of every group."""
    rng = public_generator(seed)
    drawn = [
        redraw(sample, covariance, count, rng)
        for sample, covariance in zip(groups.samples, scenario, strict=True)
    ]
    deviations = np.hstack([each.deviation for each in drawn])
    own = np.hstack([each.covariance[:, :, 0] for each in drawn])
    spread = np.array([max(float(each[0, 0]), _LEAST) for each in scenario])
    means = np.sqrt(spread) * np.hstack([each.white_mean for each in drawn])
    variances = spread * np.hstack([each.white_covariance[:, :, 0] for each in drawn])
    sizes = groups.sizes
    if groups.equal:
        pooled = (variances * (sizes - 1)).sum(axis=1, keepdims=True) / groups.freedom
        classical = f_value(means, pooled / sizes, None)
    else:
        classical = f_value(means, variances / sizes, sizes)
    return GroupDraws(deviations, groups.variances(own), classical)


@dataclass(frozen=True, slots=True, eq=False)
class GroupInference:
    """F with its p-value, and how far simultaneous intervals of the means extend either way."""

    statistic: float
    pvalue: float
    lower: Floats
    upper: Floats


def infer_groups(
    groups: GroupMeans, *, alpha: float, calibration: Calibration, n_bootstrap: int, seed: int
) -> GroupInference:
    """Test whether all groups have the same mean.

    Notes
    -----
    **Sensitivity** None: this uses released values only.

    **Privacy** Post-processing.
    """
    variances = groups.variances(groups.own)
    sizes = None if groups.equal else groups.sizes
    observed, errors = float(f_value(groups.means, variances, sizes)), np.sqrt(variances)
    if calibration == "any":
        ends = [contrast_reach(one, "two-sided", alpha / len(errors)) for one in groups.each]
        lower, upper = (np.array(side) for side in zip(*ends, strict=True))
        return GroupInference(observed, _pairs_pvalue(groups, alpha), lower, upper)
    pvalue, point = 0.0, 0.0
    for scenario in scenarios(groups):
        drawn = _replicate(groups, scenario, n_bootstrap, seed)
        null = NullDraws(
            f_value(drawn.deviations, drawn.variances, sizes), drawn.classical, groups.survival
        )
        pvalue = max(pvalue, null.pvalue(observed))
        largest = np.max(np.abs(drawn.deviations) / np.sqrt(drawn.variances), axis=1)
        point = max(point, upper_point(largest, alpha))
    return GroupInference(observed, pvalue, point * errors, point * errors)


def _pairs_pvalue(groups: GroupMeans, alpha: float) -> float:
    """Return Bonferroni's p-value of the differences of all pairs, valid for any law."""
    pairs = list(combinations(groups.samples, 2))
    level = alpha / len(pairs)
    smallest = min(
        contrast_pvalue(pair, float(pair.value[0]), "two-sided", level)
        for pair in (Contrast(each, (0.5, 0.5), 1.0, False) for each in pairs)
    )
    return min(1.0, len(pairs) * smallest)


@dataclass(frozen=True, slots=True, eq=False)
class GroupIntervals:
    """From a level to simultaneous intervals of the means; released and public numbers only."""

    groups: GroupMeans
    box: Box
    seed: int
    n_bootstrap: int
    calibration: Calibration

    def __call__(self, level: float) -> Interval:
        """Return the intervals, an array of them."""
        from scipy.special import stdtrit  # noqa: PLC0415

        if level > HIGHEST_LEVEL:
            raise ParameterError(f"confidence_level must be at most {HIGHEST_LEVEL}.")
        alpha, groups, half = 1 - level, self.groups, float(self.box.half[0])
        count = max(self.n_bootstrap, math.ceil(1 / alpha))
        inference = infer_groups(
            groups, alpha=alpha, calibration=self.calibration, n_bootstrap=count, seed=self.seed
        )
        low, high = self.ends(inference)
        sizes, freedom = groups.sizes, groups.freedom
        spread = (groups.own * (sizes - 1)).sum() / freedom if groups.equal else groups.own
        quantile = stdtrit(freedom, 1 - alpha / (2 * len(sizes)))
        without_noise = 2 * half * quantile * np.sqrt(spread / sizes)
        return Interval.around(low, high, level, without_noise)

    def ends(self, inference: GroupInference) -> tuple[Floats, Floats]:
        """Return the ends in the units of the data, cut at the public bounds."""
        means = self.groups.means
        low, high = (
            np.clip(end, -1.0, 1.0) for end in (means - inference.lower, means + inference.upper)
        )
        return in_units(self.box, low), in_units(self.box, high)


@declare_level("measured", valid="calibration='any'")
def f_oneway(
    *samples: Any,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    equal_var: bool = True,
    calibration: Offered[Calibration] = "classical",
    n_bootstrap: int = 19_999,
    adjacency: PublicGroups | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether several groups have the same mean (one-way analysis of variance).

    Parameters
    ----------
    *samples : array, series or table of one column
        Two groups or more, or one frame that ``group`` splits; their sizes are public.
    group, groups, columns
        How a frame is split and which column is compared, as in :func:`privatest.mmd_test`.
    bounds : pair or Schema
        Public bounds; values outside are clipped. Tighter bounds need less noise.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision; the simultaneous intervals have level 1 - alpha.
    equal_var : bool
        Whether to assume equal variances, and pool them; False is Welch's test, which weighs each
        mean by its own.
    calibration : {"classical", "any"}
        As in :func:`privatest.ttest_ind`; "any" compares all pairs, by Bonferroni.
    n_bootstrap, rng, noise
        As in :func:`privatest.hotelling_test`.
    adjacency : {"one", "both"}, optional
        What is hidden: one record within its group, or one in each group; each of k groups then
        gets a k-th of the budget. By default "one"; for a frame it must be passed, or be what
        the schema says.

    Returns
    -------
    Outcome
        With the private F and, in ``estimates``, the private ``mean`` of each group with
        simultaneous intervals ``lower`` to ``upper``; both are cut to the bounds.

    Notes
    -----
    F weighs each mean by its variance with the noise on it. Without noise it is SciPy's F, pooled
    or Welch's; for two groups it is the square of t.

    **Sensitivity** With the bounds mapped to [-1, 1], a replaced record moves the mean of its
    group by at most 2/n and the mean square by 1/n, times the rows per person. Proof:
    docs/proofs/means.md.

    **Privacy** Mean and mean square of each group are released at (epsilon, delta); everything
    else is computed from them. A record is in one group, so each gets the whole budget. The level
    of ``calibration="classical"`` was measured, that of "any" is proved.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups = [rng.uniform(shift, 8 + shift, size=1000) for shift in (0, 0.5, 2)]
    >>> f_oneway(*groups, bounds=(0, 10), epsilon=1, rng=0).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = checked_calibration(alpha, calibration, rng) | checked_bootstrap(
        alpha, n_bootstrap, rng
    )
    boolean("equal_var", equal_var)
    layout = resolve_samples(
        samples,
        bounds,
        adjacency,
        several=True,
        public_groups=BY_SIZES,
        group=group,
        groups=groups,
        columns=columns,
    )
    if layout.count < 2:
        raise ParameterError("f_oneway must have two samples or more.")
    each = sample_budget(budget, layout.adjacency, groups=layout.count)
    source = noise_source(noise)
    data, described = layout.read(samples)
    encoded = numeric_groups(data, described, layout.adjacency)
    check_one_column(encoded[0], "each sample")
    sizes = [len(sample) for sample in encoded]
    if min(sizes) < 2:
        raise DataError("each sample must have at least 2 rows.")
    freedom = sum(sizes) - len(sizes)
    weights = tuple((size - 1) / freedom for size in sizes)
    means = release_rows(encoded, each, source)
    released = GroupMeans(means, weights, float(min(sizes)), equal_var)
    inference = infer_groups(released, **options)
    calibration, box = options["calibration"], encoded[0].box
    intervals = GroupIntervals(released, box, options["seed"], n_bootstrap, calibration)
    low, high = intervals.ends(inference)
    shown = {
        "group_names": group_names(len(data), bounds, adjacency, group, groups),
        "equal_var": equal_var,
        "calibration": calibration,
    }
    if calibration == "classical":
        shown["n_bootstrap"] = n_bootstrap
    null = "all groups have the same mean"
    named = calibrated("one-way analysis of variance", calibration)
    return Outcome(
        reject=inference.pvalue <= options["alpha"],
        alpha=options["alpha"],
        spent=budget,
        simulated=source.simulated,
        pvalue=inference.pvalue,
        statistic=inference.statistic,
        estimated="mean",
        estimates={
            "mean": in_units(box, np.clip(released.means, -1.0, 1.0)),
            "lower": low,
            "upper": high,
        },
        intervals=intervals,
        **group_facts(encoded, layout.adjacency, named["method"], null, shown) | named,
    )


DESCRIPTORS = (
    Method(
        name="anova",
        question="two-sample",
        function=f_oneway,
        about="means of several groups",
        aliases=("f_oneway",),
        public_groups=NEEDS_SIZES,
        columns="one numeric",
        gaussian=True,
        sentence=f"We compared means of groups by a private analysis of variance, {FROM_MOMENTS}",
        papers=("swanberg2019", "dunsche2022"),
    ),
)
