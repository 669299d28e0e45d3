"""Tests and estimates of means: t-tests, equivalence, Hotelling's test, means and covariances.

All of it follows from released means and covariances: :mod:`privatest.methods.mean_inference`.
Proof: docs/proofs/means.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Outcome, PrivateEstimate, declare_level
from privatest.core.text import EstimateTable
from privatest.core.validation import Rng, boolean, number, one_of, public_generator
from privatest.data.encoding import Sample, TwoSamples
from privatest.data.reading import resolve_samples
from privatest.data.schema import Bounds, Box, Category
from privatest.methods.descriptor import FROM_MOMENTS, NEEDS_SIZES, Method, Offered
from privatest.methods.mean_inference import (
    BY_SIZES,
    Calibration,
    Contrast,
    MeanEstimate,
    MeanInference,
    MeanIntervals,
    TIntervals,
    check_one_column,
    checked_bootstrap,
    checked_calibration,
    column_titles,
    covariance_in_units,
    difference_sample,
    estimates,
    in_units,
    infer,
    infer_one_column,
    numeric_groups,
    numeric_sample,
    one_sample_contrast,
    outcome,
    replicate_covariances,
    sample_budget,
    two_sample_contrast,
    upper_point,
)
from privatest.numerics.laws import ALTERNATIVES, Alternative

Floats = NDArray[np.float64]
_COVARIANCE_SHARE = 0.3  # of epsilon, for the mean that a covariance is centred at
_TWO_MEANS = {
    "two-sided": "the two samples have the same mean",
    "greater": "the mean of the first sample is at most that of the second",
    "less": "the mean of the first sample is at least that of the second",
}
_ONE_MEAN = {"two-sided": "", "greater": "at most ", "less": "at least "}


@dataclass(frozen=True, slots=True, eq=False)
class CovarianceEstimate(PrivateEstimate):
    """A private covariance, with confidence intervals for that of the population.

    Attributes
    ----------
    covariance : ndarray
        The private covariance; it is positive semidefinite.
    lower, upper : ndarray
        Simultaneous intervals for its entries, assuming roughly normal rows.
    mean : ndarray
        The private mean about which it is centred.
    confidence, spent, n, columns, rows_per_person, simulated
        As in :class:`MeanEstimate`.
    """

    covariance: Floats
    lower: Floats
    upper: Floats
    mean: Floats
    confidence: float
    spent: Budget
    n: int
    columns: tuple[str, ...] | None = None
    rows_per_person: int = 1
    simulated: bool = False

    @property
    def method_id(self) -> str:
        """The function that made the result."""
        return "private_covariance"

    @property
    def heading(self) -> str:
        """What was estimated, from how many rows."""
        return f"Private covariance of {self.n:,} rows"

    def estimate_table(self) -> EstimateTable:
        """Return the rows of the matrix, as text."""
        names = column_titles(self.columns, len(self.mean))
        rows = (
            (name, *(f"{value:>11.6g}" for value in row))
            for name, row in zip(names, self.covariance, strict=True)
        )
        return EstimateTable(self.heading, tuple(rows), ("", *names))


# --- t-tests ---


@declare_level("measured", valid="calibration='any'")
def ttest_ind(
    x: Any,
    y: Any = None,
    *,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    equal_var: bool = True,
    alternative: Offered[Alternative] = "two-sided",
    calibration: Offered[Calibration] = "classical",
    adjacency: Adjacency | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples of one variable have the same mean.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
    group, groups, columns
        Where x is one frame, how it is split and compared: as in :func:`privatest.mmd_test`.
    bounds : pair or Schema
        Public bounds; values outside are clipped. Tighter bounds need less noise.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision; the confidence interval has level 1 - alpha.
    equal_var : bool
        Whether to assume equal variances; False gives Welch's form.
    alternative : {"two-sided", "greater", "less"}
        greater: the mean of x is larger.
    calibration : {"classical", "any"}
        How the p-value is computed. "classical" is the t-test that SciPy has, plus the noise that
        was added: for roughly normal rows or large samples; as epsilon grows the p-value becomes
        SciPy's. "any" is valid for every law within the bounds and every size, and needs a larger
        effect; its p-value is at least a tenth of ``alpha``.
    adjacency, noise
        As in :func:`privatest.hotelling_test`.
    rng : None, int or Generator
        Accepted as by every test; a t-test draws nothing public.

    Returns
    -------
    Outcome
        With the private t and, in ``estimates``, both means, their ``difference`` (x - y) with its
        confidence interval ``lower`` to ``upper`` (a one-sided one extends to the bounds),
        its ``standard_error`` including the noise, and the pooled ``variance``. Each estimate is
        cut to what the bounds allow: where noise is large, the difference of the cut means may be
        another one.

    Notes
    -----
    **Sensitivity** With the bounds mapped to [-1, 1], a replaced record moves the mean by at most
    2/n and the mean square by 1/n, times the rows per person. Proof: docs/proofs/means.md.

    **Privacy** Means and mean squares of both samples are released at (epsilon, delta); everything
    else is computed from them. A record is in one sample, so each sample gets the whole budget.
    The level of ``calibration="classical"`` was measured, that of "any" is proved.

    References
    ----------
    Dunsche, Kutta and Dette (2022), example 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(0, 8, size=2000), rng.uniform(1, 9, size=1500)
    >>> ttest_ind(x, y, bounds=(0, 10), epsilon=1, alternative="less").reject
    True
    """
    budget = Budget(epsilon, delta)
    options = checked_calibration(alpha, calibration, rng)
    one_of("alternative", alternative, ALTERNATIVES)
    boolean("equal_var", equal_var)
    split: dict[str, Any] = {"group": group, "groups": groups, "columns": columns}
    contrast, samples, facts = _release_groups(
        x, y, bounds, adjacency, budget, noise, equal_var, one_column=True, **split
    )
    facts["method"] = "two-sample t-test" + ("" if equal_var else " (unequal variances)")
    facts["null_hypothesis"] = _TWO_MEANS[alternative]
    return _t_outcome(contrast, 0.0, samples.x, alternative, options, facts)


@declare_level("measured", valid="calibration='any'")
def ttest_1samp(
    x: Any,
    popmean: float,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    calibration: Calibration = "classical",
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a sample of one variable has a given mean.

    Parameters
    ----------
    x : array, series or table of one column
        The sample.
    popmean : float
        The hypothesised mean, which is public.
    bounds, epsilon, delta, alpha, alternative, calibration, rng, noise
        As in :func:`privatest.ttest_ind`; greater: the mean of x is larger than ``popmean``.

    Returns
    -------
    Outcome
        With the private t and, in ``estimates``, the private ``mean`` with its confidence
        interval, ``standard_error`` and ``variance``.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.ttest_ind`.

    **Privacy** Mean and mean square are released at (epsilon, delta); everything else is computed
    from them.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=2000)
    >>> ttest_1samp(x, 5, bounds=(0, 10), epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = checked_calibration(alpha, calibration, rng)
    one_of("alternative", alternative, ALTERNATIVES)
    value = number("popmean", popmean)
    source = noise_source(noise)
    sample = numeric_sample(x, bounds)
    check_one_column(sample, "x")
    contrast = one_sample_contrast(sample, budget, source)
    facts = _facts(sample, budget, source) | {
        "method": "one-sample t-test",
        "null_hypothesis": f"the mean is {_ONE_MEAN[alternative]}{value:g}",
    }
    hypothesis = float((value - sample.box.centre[0]) / sample.box.half[0])
    return _t_outcome(contrast, hypothesis, sample, alternative, options, facts)


@declare_level("measured", valid="calibration='any'")
def ttest_rel(
    x: Any,
    y: Any,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Offered[Alternative] = "two-sided",
    calibration: Offered[Calibration] = "classical",
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two measurements of the same rows have the same mean (paired t).

    Parameters
    ----------
    x, y : array, series or table of one column
        The two measurements; row i of ``x`` belongs to row i of ``y``. The differences are
        x - y, as in SciPy: a rise is ``(after, before)``.
    bounds : pair, a pair for x and one for y, mapping of names to pairs, or Schema
        Public bounds; values outside are clipped. Those of the differences follow from them.
    epsilon, delta, alpha, alternative, calibration, rng, noise
        As in :func:`privatest.ttest_ind`; greater: the mean of x is larger.

    Returns
    -------
    Outcome
        With the private t and, in ``estimates``, the private ``mean`` of the differences with
        its confidence interval, ``standard_error`` and ``variance``.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.ttest_ind`, for the differences: a pair is one record.

    **Privacy** Mean and mean square of the differences are released at (epsilon, delta);
    everything else is computed from them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> before = rng.uniform(2, 6, size=2000)
    >>> after = before + rng.uniform(0, 2, size=2000)
    >>> ttest_rel(after, before, bounds=(0, 10), epsilon=1, alternative="greater").reject
    True
    """
    budget = Budget(epsilon, delta)
    options = checked_calibration(alpha, calibration, rng)
    one_of("alternative", alternative, ALTERNATIVES)
    source = noise_source(noise)
    sample = difference_sample(x, y, bounds)
    contrast = one_sample_contrast(sample, budget, source)
    facts = _facts(sample, budget, source) | {
        "method": "paired t-test",
        "null_hypothesis": f"the mean of the differences is {_ONE_MEAN[alternative]}0",
    }
    hypothesis = float(-sample.box.centre[0] / sample.box.half[0])
    return _t_outcome(contrast, hypothesis, sample, alternative, options, facts, paired=True)


@declare_level("measured", valid="calibration='any'")
def tost_ind(
    x: Any,
    y: Any,
    low: Offered[float],
    high: Offered[float],
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    equal_var: bool = True,
    calibration: Offered[Calibration] = "classical",
    adjacency: Adjacency = "one",
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether the means of two samples are practically equal (equivalence).

    The null hypothesis is that they are not: the difference of means, x - y, is at most ``low`` or
    at least ``high``. Rejecting it shows that the difference lies between the two.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
    low, high : float
        Differences that would matter, in the units of the data; public.
    bounds, epsilon, delta, equal_var, calibration, adjacency, rng, noise
        As in :func:`privatest.ttest_ind`.
    alpha : float
        Level of the decision, below 0.5; the interval has level 1 - 2 alpha, as is usual, and
        lies within (low, high) exactly if the test rejects.

    Returns
    -------
    Outcome
        With the larger of the two p-values and its t, and the ``estimates`` of
        :func:`privatest.ttest_ind`.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.ttest_ind`.

    **Privacy** What :func:`privatest.ttest_ind` releases; both one-sided tests are computed from
    it. If one of them holds its level at its boundary, so does their maximum.

    References
    ----------
    Schuirmann (1987), "A comparison of the two one-sided tests procedure and the power approach".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(0, 8, size=20_000), rng.uniform(0, 8, size=20_000)
    >>> tost_ind(x, y, -0.5, 0.5, bounds=(0, 10), epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = _tost_options(alpha, calibration, rng)
    limits = _limits(low, high)
    boolean("equal_var", equal_var)
    contrast, samples, facts = _release_groups(
        x, y, bounds, adjacency, budget, noise, equal_var, one_column=True
    )
    facts["method"] = "equivalence of two means (two one-sided t-tests)"
    return _tost_outcome(contrast, limits, 0.0, samples.x, options, facts)


@declare_level("measured", valid="calibration='any'")
def tost_rel(
    x: Any,
    y: Any,
    low: Offered[float],
    high: Offered[float],
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    calibration: Offered[Calibration] = "classical",
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether paired measurements have practically equal means (equivalence).

    Parameters
    ----------
    x, y, bounds
        As in :func:`privatest.ttest_rel`: the differences are x - y.
    low, high, alpha
        As in :func:`privatest.tost_ind`.
    epsilon, delta, calibration, rng, noise
        As in :func:`privatest.ttest_ind`.

    Returns
    -------
    Outcome
        With the larger of the two p-values and its t, and the ``estimates`` of
        :func:`privatest.ttest_rel`.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.ttest_rel`.

    **Privacy** What :func:`privatest.ttest_rel` releases; both one-sided tests are computed from
    it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(2, 8, size=20_000)
    >>> y = x + rng.uniform(-1, 1, size=20_000)
    >>> tost_rel(x, y, -0.5, 0.5, bounds=(0, 10), epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = _tost_options(alpha, calibration, rng)
    limits = _limits(low, high)
    source = noise_source(noise)
    sample = difference_sample(x, y, bounds)
    contrast = one_sample_contrast(sample, budget, source)
    facts = _facts(sample, budget, source)
    facts["method"] = "equivalence of paired means (two one-sided t-tests)"
    centre = float(sample.box.centre[0])
    return _tost_outcome(contrast, limits, centre, sample, options, facts, paired=True)


# --- several columns ---


@declare_level("measured")
def hotelling_test(
    x: Any,
    y: Any = None,
    *,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    equal_covariance: bool = True,
    n_bootstrap: int = 999,
    adjacency: Adjacency | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples have the same mean in every column.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; a row is a record, a 1-D array is one column.
    group, groups, columns
        Where x is one frame, how it is split and compared: as in :func:`privatest.mmd_test`.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns; values outside are clipped. Tighter bounds need less noise.
    epsilon, delta : float, int, str or Decimal
        The privacy budget. delta > 0 selects one Gaussian mechanism for mean and covariance,
        which is better in many dimensions (about 30).
    alpha : float
        Level of the decision; the confidence region has level 1 - alpha.
    equal_covariance : bool
        Whether to assume that both samples have the same covariance, and pool it.
    n_bootstrap : int
        Number of bootstrap replicates, at least 1/alpha - 1; one column needs none.
    adjacency : {"one", "both"}, optional
        What is hidden: one record within its group, or one in each group; each sample then gets
        half of the budget. Group sizes are public. By default "one"; for a frame it must be
        passed, or be what the schema says.
    rng : None, int or Generator
        Public randomness for the bootstrap.
    noise : NoiseSource, optional
        Secret randomness; omit it except in simulations.

    Returns
    -------
    Outcome
        With the private t² and, in ``estimates``, the private means, their difference (x - y)
        with simultaneous intervals ``lower`` and ``upper``, and the private covariance. The
        confidence region is all θ with (c - θ)' region_shape^-1 (c - θ) at most region_radius,
        with c = region_centre; it excludes 0 exactly if the test rejects. The means and their
        difference are cut to what the bounds allow, the centre is not.

    Notes
    -----
    **Sensitivity** With the bounds mapped to [-1, 1]^d, a replaced record moves the mean of its
    sample by at most 2/n in every entry. With two or three columns it moves a mean of squares by
    at most 1/n and one of products by 2/n; with more it raises eigenvalues of Σ x x'/d by at most
    1 together, lowers others by at most 1 together, and moves the log density of the axes by d
    times their concentration; all times the rows per person. Proofs: docs/proofs/means.md,
    docs/proofs/covariance.md; for delta > 0 docs/proofs/moments.md.

    **Privacy** Means and covariances of both samples are released at (epsilon, delta); everything
    else is computed from them. A record is in one sample, so each sample gets the whole budget. If
    delta = 0, 0.7 epsilon goes to the mean (l-infinity mechanism) and 0.3 epsilon to the second
    moment (its entries, or eigenvalues and axes). The level is that of a parametric bootstrap: it
    was measured, not proved.

    References
    ----------
    Dunsche, Kutta and Dette (2022), "Multivariate mean comparison under differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(0, 8, size=(2000, 3)), rng.uniform(1, 9, size=(1500, 3))
    >>> outcome = hotelling_test(x, y, bounds=(0, 10), epsilon=1, rng=0)
    >>> outcome.reject, outcome.estimates["difference"].shape
    (True, (3,))
    """
    budget = Budget(epsilon, delta)
    options = checked_bootstrap(alpha, n_bootstrap, rng)
    boolean("equal_covariance", equal_covariance)
    split: dict[str, Any] = {"group": group, "groups": groups, "columns": columns}
    contrast, samples, facts = _release_groups(
        x, y, bounds, adjacency, budget, noise, equal_covariance, **split
    )
    facts["method"] = "two-sample Hotelling test"
    facts["null_hypothesis"] = "the two samples have the same means"
    hypothesis = np.zeros(samples.domain.dimension)
    shown = {"equal_covariance": equal_covariance}
    return _hotelling_outcome(contrast, hypothesis, samples.x, options, facts, **shown)


@declare_level("measured")
def hotelling_1samp(
    x: Any,
    mean: ArrayLike,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a sample has given means.

    Parameters
    ----------
    x : array, data frame or Arrow table
        The sample.
    mean : float or sequence of float
        The hypothesised means, which are public: one for all columns or one for each.
    bounds, epsilon, delta, alpha, n_bootstrap, rng, noise
        As in :func:`hotelling_test`.

    Returns
    -------
    Outcome
        With the private t² and, in ``estimates``, the private mean with simultaneous intervals,
        the private covariance and the confidence region, as in :func:`hotelling_test`.

    Notes
    -----
    **Sensitivity** As in :func:`hotelling_test`.

    **Privacy** Mean and covariance of the sample are released at (epsilon, delta); everything
    else is computed from them.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=(2000, 2))
    >>> hotelling_1samp(x, [4, 5], bounds=(0, 10), epsilon=1, rng=0).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = checked_bootstrap(alpha, n_bootstrap, rng)
    source = noise_source(noise)
    sample = numeric_sample(x, bounds)
    box = sample.box
    hypothesis = (_public_means(mean, sample.domain.dimension) - box.centre) / box.half
    contrast = one_sample_contrast(sample, budget, source)
    facts = _facts(sample, budget, source) | {
        "method": "one-sample Hotelling test",
        "null_hypothesis": "the means are the given ones",
    }
    return _hotelling_outcome(contrast, hypothesis, sample, options, facts)


def private_mean(
    x: Any,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> MeanEstimate:
    """Estimate the mean of each column privately, with a confidence region.

    Parameters
    ----------
    x : array, data frame or Arrow table
        The sample.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns; values outside are clipped.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        One minus the confidence.
    n_bootstrap, rng, noise
        As in :func:`privatest.hotelling_test`.

    Returns
    -------
    MeanEstimate
        The mean, its confidence region, and the covariance behind it.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.hotelling_test`.

    **Privacy** Mean and covariance are released at (epsilon, delta), 0.7 and 0.3 of epsilon if
    delta = 0; the region follows from them.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=(2000, 2))
    >>> estimate = private_mean(x, bounds=(0, 10), epsilon=1, rng=0)
    >>> bool(np.all(estimate.upper - estimate.lower < 1))
    True
    """
    budget = Budget(epsilon, delta)
    contrast, box, facts, options = _release(x, bounds, budget, alpha, n_bootstrap, rng, noise)
    inference = infer(contrast, np.zeros(len(box.half)), **options)
    intervals = MeanIntervals(contrast, box, options["seed"], n_bootstrap)
    return MeanEstimate(**estimates(contrast, box, inference), **facts, intervals=intervals)


def private_covariance(
    x: Any,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> CovarianceEstimate:
    """Estimate the covariance of the columns privately, with intervals for its entries.

    Parameters
    ----------
    x, bounds, epsilon, delta, alpha, n_bootstrap, rng, noise
        As in :func:`privatest.private_mean`.

    Returns
    -------
    CovarianceEstimate
        The covariance, and simultaneous intervals for its entries.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.hotelling_test`.

    **Privacy** Mean and second moment are released at (epsilon, delta), 0.3 and 0.7 of epsilon
    if delta = 0. The intervals are a parametric bootstrap from these, with normal rows; for
    heavy-tailed rows they are too short.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=(5000, 2))
    >>> private_covariance(x, bounds=(0, 10), epsilon=1, rng=0).covariance.shape
    (2, 2)
    """
    budget = Budget(epsilon, delta)
    contrast, box, facts, options = _release(
        x, bounds, budget, alpha, n_bootstrap, rng, noise, mean_share=_COVARIANCE_SHARE
    )
    (sample,) = contrast.samples
    generator = public_generator(options["seed"])
    drawn = replicate_covariances(sample, n_bootstrap, generator) - sample.covariance
    deviations = np.sqrt(np.mean(drawn**2, axis=0)) + np.finfo(np.float64).tiny
    largest = np.max(np.abs(drawn) / deviations, axis=(1, 2))
    reach = covariance_in_units(box, upper_point(largest, options["alpha"]) * deviations)
    covariance = covariance_in_units(box, sample.covariance)
    return CovarianceEstimate(
        covariance=covariance,
        lower=covariance - reach,
        upper=covariance + reach,
        mean=in_units(box, sample.mean),
        **facts,
    )


# --- what they share ---


def _limits(low: float, high: float) -> tuple[float, float]:
    limits = number("low", low), number("high", high)
    if not limits[0] < limits[1]:
        raise ParameterError("low must be below high: the difference should lie between the two.")
    return limits


def _tost_options(alpha: float, calibration: Calibration, rng: Rng) -> dict[str, Any]:
    number("alpha", alpha, above=0, below=0.5)  # the interval has level 1 - 2 alpha
    return checked_calibration(alpha, calibration, rng)


def _public_means(mean: ArrayLike, dimension: int) -> Floats:
    problem = f"mean must be a finite number, or one for each of the {dimension} columns."
    try:
        means = np.asarray(mean, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(problem) from None
    if means.shape not in {(), (dimension,)} or not np.isfinite(means).all():
        raise ParameterError(problem)
    return np.broadcast_to(means, (dimension,))


def _release_groups(
    x: Any,
    y: Any,
    bounds: Bounds,
    adjacency: Adjacency | None,
    budget: Budget,
    noise: NoiseSource | None,
    equal: bool,
    *,
    one_column: bool = False,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
) -> tuple[Contrast, TwoSamples, dict[str, Any]]:
    """Release two samples; return their contrast, the samples and the facts of a result."""
    split: dict[str, Any] = {"group": group, "groups": groups, "columns": columns}
    layout = resolve_samples((x, y), bounds, adjacency, public_groups=BY_SIZES, **split)
    each = sample_budget(budget, layout.adjacency)
    source = noise_source(noise)
    data, bounds = layout.read((x, y))
    samples = TwoSamples(*numeric_groups(data, bounds, layout.adjacency))
    if one_column:
        check_one_column(samples.x, "x and y")
    contrast = two_sample_contrast(samples, each, source, equal=equal)
    return contrast, samples, _facts(samples, budget, source, layout.adjacency)


def _release(
    x: Any,
    bounds: Bounds,
    budget: Budget,
    alpha: float,
    n_bootstrap: int,
    rng: Rng,
    noise: NoiseSource | None,
    **share: float,
) -> tuple[Contrast, Box, dict[str, Any], dict[str, Any]]:
    """Check the arguments and release; return the contrast, its box, the facts, the options."""
    options = checked_bootstrap(alpha, n_bootstrap, rng)
    source = noise_source(noise)
    sample = numeric_sample(x, bounds)
    contrast = one_sample_contrast(sample, budget, source, **share)
    facts = {
        "confidence": 1 - options["alpha"],
        "spent": budget,
        "n": len(sample),
        "columns": sample.names,
        "rows_per_person": sample.rows_per_person,
        "simulated": source.simulated,
    }
    return contrast, sample.box, facts, options


def _facts(
    samples: Sample | TwoSamples,
    budget: Budget,
    source: NoiseSource,
    adjacency: Adjacency = "one",
) -> dict[str, Any]:
    """Return the public fields that all results of these tests have."""
    sizes = [len(samples)] if isinstance(samples, Sample) else list(map(len, samples))
    return {
        "spent": budget,
        "adjacency": adjacency,
        "sizes": dict(zip("nm", sizes, strict=False)),
        "rows_per_person": samples.rows_per_person,
        "simulated": source.simulated,
    }


def _t_outcome(
    contrast: Contrast,
    hypothesis: float,
    sample: Sample,
    alternative: Alternative,
    options: dict[str, Any],
    facts: dict[str, Any],
    **shown: object,
) -> Outcome:
    inference = infer_one_column(contrast, hypothesis, alternative=alternative, **options)
    released = one_column_estimates(contrast, sample, inference)
    intervals = TIntervals(contrast, sample.box, options["calibration"], alternative)
    shown |= {"alternative": alternative}
    return outcome(inference, released, sample, options, facts, intervals, **shown)


def _tost_outcome(
    contrast: Contrast,
    limits: tuple[float, float],
    centre: float,
    sample: Sample,
    options: dict[str, Any],
    facts: dict[str, Any],
    **shown: object,
) -> Outcome:
    """Test both sides; ``centre`` is that of the differences, in the units of the data."""
    low, high = ((end - centre) / float(sample.box.half[0]) for end in limits)
    above = infer_one_column(contrast, low, alternative="greater", **options)
    below = infer_one_column(contrast, high, alternative="less", **options)
    worse = max(above, below, key=lambda each: each.pvalue)
    inference = replace(worse, lower=above.lower, upper=below.upper)
    released = one_column_estimates(contrast, sample, inference)
    calibration = options["calibration"]
    intervals = TIntervals(contrast, sample.box, calibration, "two-sided", equal_tails=True)
    low, high = limits
    facts["null_hypothesis"] = f"the difference of means is at most {low:g} or at least {high:g}"
    shown |= {"low": low, "high": high, "interval_level": 1 - 2 * options["alpha"]}
    return outcome(inference, released, sample, options, facts, intervals, **shown)


def one_column_estimates(
    contrast: Contrast, sample: Sample, inference: MeanInference
) -> dict[str, Any]:
    """Return the released estimates of one column as numbers, in the units of the data."""
    vectors = estimates(contrast, sample.box, inference)
    names = ("mean_x", "mean_y", "mean", "difference", "lower", "upper")
    released = {name: float(vectors[name][0]) for name in names if name in vectors}
    released["standard_error"] = math.sqrt(vectors["region_shape"][0, 0])
    released["variance"] = float(vectors["covariance"][0, 0])
    return released


def _hotelling_outcome(
    contrast: Contrast,
    hypothesis: Floats,
    sample: Sample,
    options: dict[str, Any],
    facts: dict[str, Any],
    **shown: object,
) -> Outcome:
    inference = infer(contrast, hypothesis, **options)
    released = estimates(contrast, sample.box, inference)
    intervals = MeanIntervals(contrast, sample.box, options["seed"], options["n_bootstrap"])
    return outcome(inference, released, sample, options, facts, intervals, **shown)


DESCRIPTORS = (
    Method(
        name="hotelling",
        question="two-sample",
        function=hotelling_test,
        also=("hotelling_1samp",),
        about="means",
        public_groups=NEEDS_SIZES,
        caution="the time to draw the axes of a covariance depends on values",
        gaussian=True,
        sentence=f"We compared mean vectors by a private Hotelling test, {FROM_MOMENTS}",
        papers=("dunsche2022", "amin2019"),
    ),
    Method(
        name="ttest",
        question="two-sample",
        function=ttest_ind,
        also=("ttest_1samp",),
        about="one mean",
        aliases=("t-test", "ttest_ind"),
        public_groups=NEEDS_SIZES,
        columns="one numeric",
        gaussian=True,
        sentence=f"We compared means by a private t-test, {FROM_MOMENTS}",
        papers=("dunsche2022",),
    ),
    Method(
        name="tost",
        question="two-sample",
        function=tost_ind,
        about="equivalence of one mean",
        aliases=("tost_ind",),
        public_groups=NEEDS_SIZES,
        columns="one numeric",
        gaussian=True,
        sentence=f"We tested equivalence of means by two one-sided private t-tests, {FROM_MOMENTS}",
        papers=("schuirmann1987", "dunsche2022"),
    ),
    Method(
        name="ttest",
        question="paired",
        function=ttest_rel,
        about="the mean; needs bounds",
        aliases=("t-test", "ttest_rel"),
        gaussian=True,
        sentence=f"We tested the mean of differences by a private paired t-test, {FROM_MOMENTS}",
        papers=("dunsche2022",),
    ),
    Method(
        name="tost",
        question="paired",
        function=tost_rel,
        about="equivalence of the mean; needs bounds",
        aliases=("tost_rel",),
        gaussian=True,
        sentence=(
            "We tested equivalence of paired means by two one-sided private t-tests, "
            f"{FROM_MOMENTS}"
        ),
        papers=("schuirmann1987", "dunsche2022"),
    ),
    Method(
        name="moments",
        question="mean",
        function=private_mean,
        also=("private_covariance",),
        about="means of numeric columns",
        caution="the time to draw the axes of a covariance depends on values",
        gaussian=True,
        sentence=f"We estimated means {FROM_MOMENTS}",
        papers=("dunsche2022", "amin2019"),
    ),
)
