"""Private t-tests: Hotelling's test for one column, with one-sided alternatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Interval, Outcome, PrivateEstimate, declare_level, known_values
from privatest.core.results import confidence as checked_level
from privatest.core.text import EstimateTable, numbered
from privatest.core.validation import Rng, number, one_of, printable, public_generator
from privatest.data.encoding import Sample
from privatest.data.reading import resolve_samples
from privatest.data.schema import Bounds, Box, Category
from privatest.methods.descriptor import FROM_MOMENTS, NEEDS_SIZES, Method, Offered
from privatest.methods.mean_inference import (
    BY_SIZES,
    Calibration,
    Contrast,
    Finding,
    MeanIntervals,
    TIntervals,
    check_one_column,
    checked_bootstrap,
    checked_calibration,
    compare_two,
    covariance_in_units,
    difference_sample,
    estimates,
    in_units,
    infer,
    infer_one_column,
    look_at_one,
    numeric_sample,
    numeric_samples,
    outcome,
    replicate_covariances,
    sample_budget,
    upper_point,
)
from privatest.numerics.laws import ALTERNATIVES, Alternative

_TWO_MEANS = {
    "two-sided": "the two samples have the same mean",
    "greater": "the mean of the first sample is at most that of the second",
    "less": "the mean of the first sample is at least that of the second",
}
_SHOWN = ("mean_x", "mean_y", "mean", "difference", "lower", "upper")
_ONE_MEAN = {"two-sided": "", "greater": "at most ", "less": "at least "}


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
    layout = resolve_samples(
        (x, y),
        bounds,
        adjacency,
        public_groups=BY_SIZES,
        group=group,
        groups=groups,
        columns=columns,
    )
    adjacency = layout.adjacency
    each = sample_budget(budget, adjacency)
    source = noise_source(noise)
    data, bounds = layout.read((x, y))
    samples = numeric_samples(data[0], data[1], bounds, adjacency)
    check_one_column(samples.x, "x and y")
    contrast = compare_two(samples, each, source, equal_covariance=equal_var)
    facts: dict[str, Any] = {
        "spent": budget,
        "adjacency": adjacency,
        "method": "two-sample t-test" if equal_var else "two-sample t-test (unequal variances)",
        "null_hypothesis": _TWO_MEANS[alternative],
        "sizes": {"n": len(samples.x), "m": len(samples.y)},
        "rows_per_person": samples.rows_per_person,
        "simulated": source.simulated,
    }
    return _outcome(contrast, 0.0, samples.x, alternative, options, facts)


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
    source = noise_source(noise)
    value = number("popmean", popmean)
    sample = numeric_sample(x, bounds)
    check_one_column(sample, "x")
    contrast = look_at_one(sample, budget, source)
    facts: dict[str, Any] = {
        "spent": budget,
        "adjacency": "one",
        "method": "one-sample t-test",
        "null_hypothesis": f"the mean is {_ONE_MEAN[alternative]}{value:g}",
        "sizes": {"n": len(sample)},
        "rows_per_person": sample.rows_per_person,
        "simulated": source.simulated,
    }
    hypothesis = float((value - sample.box.centre[0]) / sample.box.half[0])
    return _outcome(contrast, hypothesis, sample, alternative, options, facts)


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
    contrast = look_at_one(sample, budget, source)
    facts: dict[str, Any] = {
        "spent": budget,
        "adjacency": "one",
        "method": "paired t-test",
        "null_hypothesis": f"the mean of the differences is {_ONE_MEAN[alternative]}0",
        "sizes": {"n": len(sample)},
        "rows_per_person": sample.rows_per_person,
        "simulated": source.simulated,
    }
    hypothesis = float(-sample.box.centre[0] / sample.box.half[0])
    return _outcome(contrast, hypothesis, sample, alternative, options, facts, paired=True)


def _outcome(
    contrast: Contrast,
    hypothesis: float,
    sample: Sample,
    alternative: Alternative,
    options: dict[str, Any],
    facts: dict[str, Any],
    **shown: object,
) -> Outcome:
    found = infer_one_column(contrast, hypothesis, alternative=alternative, **options)
    released = one_column_estimates(contrast, sample, found)
    intervals = TIntervals(contrast, sample.box, options["calibration"], alternative)
    shown |= {"alternative": alternative}
    return outcome(found, released, sample, options, facts, intervals, **shown)


def one_column_estimates(contrast: Contrast, sample: Sample, found: Finding) -> dict[str, Any]:
    """Return the released estimates of one column as numbers, in the units of the data."""
    vectors = estimates(contrast, sample.box, found)
    released = {name: float(vectors[name][0]) for name in _SHOWN if name in vectors}
    released["standard_error"] = math.sqrt(vectors["region_shape"][0, 0])
    released["variance"] = float(vectors["covariance"][0, 0])
    return released


# Are two means practically equal? Two one-sided t-tests from one release (TOST).


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
    options = _options(alpha, calibration, rng)
    ends = _limits(low, high)
    each = sample_budget(budget, adjacency)
    source = noise_source(noise)
    samples = numeric_samples(x, y, bounds, adjacency)
    check_one_column(samples.x, "x and y")
    contrast = compare_two(samples, each, source, equal_covariance=equal_var)
    facts = {
        "spent": budget,
        "adjacency": adjacency,
        "method": "equivalence of two means (two one-sided t-tests)",
        "sizes": {"n": len(samples.x), "m": len(samples.y)},
        "rows_per_person": samples.rows_per_person,
        "simulated": source.simulated,
    }
    return _equivalence_outcome(contrast, ends, 0.0, samples.x, options, facts)


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
    options = _options(alpha, calibration, rng)
    ends = _limits(low, high)
    source = noise_source(noise)
    sample = difference_sample(x, y, bounds)
    contrast = look_at_one(sample, budget, source)
    facts = {
        "spent": budget,
        "adjacency": "one",
        "method": "equivalence of paired means (two one-sided t-tests)",
        "sizes": {"n": len(sample)},
        "rows_per_person": sample.rows_per_person,
        "simulated": source.simulated,
    }
    return _equivalence_outcome(
        contrast, ends, float(sample.box.centre[0]), sample, options, facts, paired=True
    )


def _options(alpha: float, calibration: Calibration, rng: Rng) -> dict[str, Any]:
    number("alpha", alpha, above=0, below=0.5)  # the interval has level 1 - 2 alpha
    return checked_calibration(alpha, calibration, rng)


def _limits(low: float, high: float) -> tuple[float, float]:
    ends = number("low", low), number("high", high)
    if not ends[0] < ends[1]:
        raise ParameterError("low must be below high: the difference should lie between the two.")
    return ends


def _equivalence_outcome(
    contrast: Contrast,
    ends: tuple[float, float],
    centre: float,
    sample: Sample,
    options: dict[str, Any],
    facts: dict[str, Any],
    **shown: object,
) -> Outcome:
    """Test both sides; ``centre`` is that of the differences, in the units of the data."""
    low, high = ((end - centre) / float(sample.box.half[0]) for end in ends)
    above = infer_one_column(contrast, low, alternative="greater", **options)
    below = infer_one_column(contrast, high, alternative="less", **options)
    worse = max(above, below, key=lambda each: each.pvalue)
    found = Finding(worse.statistic, worse.pvalue, worse.radius, above.lower, below.upper)
    released = one_column_estimates(contrast, sample, found)
    intervals = TIntervals(
        contrast, sample.box, options["calibration"], "two-sided", equal_tails=True
    )
    facts["null_hypothesis"] = (
        f"the difference of means is at most {ends[0]:g} or at least {ends[1]:g}"
    )
    shown |= {"low": ends[0], "high": ends[1], "interval_level": 1 - 2 * options["alpha"]}
    return outcome(found, released, sample, options, facts, intervals, **shown)


# Private means and covariances with confidence regions: the functions, and what they return.


_COVARIANCE_SHARE = 0.3  # of epsilon, for the mean that a covariance is centred at

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeanEstimate(PrivateEstimate):
    """A private mean, with a confidence region for the population mean.

    Attributes
    ----------
    mean : ndarray
        The private mean of each column, cut to the public bounds.
    lower, upper : ndarray
        Simultaneous confidence intervals: all of them cover with probability ``confidence``.
    covariance : ndarray
        The private covariance of the rows.
    region_shape, region_radius : ndarray, float
        The region is all θ with (c - θ)' region_shape^-1 (c - θ) at most the radius.
    region_centre : ndarray or None
        c: the private mean before it was cut; None where the estimate is the mean itself.
    estimated : {"mean", "share"}
        What the means are, for a reader.
    confidence : float
        Level of the region, and of the intervals.
    spent : Budget
        What releasing this cost.
    n : int
        Public number of rows.
    columns : tuple of str or None
        Names of the columns.
    rows_per_person : int
        The most rows that one person has; the guarantee hides all of them.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    intervals : callable or None
        From a level to intervals of that level, computed from released numbers alone; not part
        of the JSON document.
    """

    mean: Floats
    lower: Floats
    upper: Floats
    covariance: Floats
    region_shape: Floats
    region_radius: float
    confidence: float
    spent: Budget
    n: int
    columns: tuple[str, ...] | None = None
    rows_per_person: int = 1
    simulated: bool = False
    region_centre: Floats | None = None
    estimated: str = "mean"
    intervals: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return simultaneous intervals of another level; they cost nothing more.

        Parameters
        ----------
        confidence_level : float
            How often such intervals cover, all of them at once.

        Notes
        -----
        **Privacy** Post-processing: computed from what was released and public numbers.
        """
        level = checked_level(confidence_level)
        if self.intervals is not None:
            return self.intervals(level)
        if abs(level - self.confidence) > 1e-12:
            raise ParameterError(
                f"confidence_level must be {self.confidence:g}: an estimate that was read from a "
                f"record has its own intervals only."
            )
        return Interval(self.lower, self.upper, level)

    @property
    def method_id(self) -> str:
        """The function that made the result."""
        return f"private_{self.estimated}"

    @property
    def heading(self) -> str:
        """What was estimated, from how many rows."""
        level = f"{100 * self.confidence:.4g}%"
        if len(self.mean) == 1:
            return f"Private {self.estimated} of {self.n:,} rows, with its {level} interval"
        return f"Private means of {self.n:,} rows, with simultaneous {level} intervals"

    def estimate_table(self) -> EstimateTable:
        """Return name, mean and interval of each column, as text."""
        values = zip(_names(self), self.mean, self.lower, self.upper, strict=True)
        rows = (
            (name, f"{mean:.6g}", f"({low:.6g} to {high:.6g})") for name, mean, low, high in values
        )
        return EstimateTable(self.heading, tuple(rows))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], spent: Budget) -> MeanEstimate:
        """Read what :meth:`to_dict` wrote; of the cost it has only rounded numbers."""
        known = known_values(cls, values) | {"spent": spent}
        if known["columns"] is not None:
            known["columns"] = tuple(known["columns"])
        for name in ("mean", "lower", "upper", "covariance", "region_shape", "region_centre"):
            if known.get(name) is not None:
                known[name] = np.asarray(known[name], dtype=np.float64)
        return cls(**known)


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
        names = _names(self)
        rows = (
            (name, *(f"{value:>11.6g}" for value in row))
            for name, row in zip(names, self.covariance, strict=True)
        )
        return EstimateTable(self.heading, tuple(rows), ("", *names))


def _names(estimate: MeanEstimate | CovarianceEstimate) -> list[str]:
    names = estimate.columns
    return numbered(len(estimate.mean)) if names is None else [printable(name) for name in names]


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
    contrast, box, facts, options = _release(
        x, bounds, Budget(epsilon, delta), alpha, n_bootstrap, rng, noise
    )
    found = infer(contrast, np.zeros(len(box.half)), **options)
    rest = {name: value for name, value in options.items() if name != "alpha"}
    intervals = MeanIntervals(contrast, box, **rest)
    return MeanEstimate(**estimates(contrast, box, found), **facts, intervals=intervals)


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
    contrast, box, facts, options = _release(
        x, bounds, Budget(epsilon, delta), alpha, n_bootstrap, rng, noise, _COVARIANCE_SHARE
    )
    (sample,) = contrast.samples
    drawn = (
        replicate_covariances(sample, n_bootstrap, public_generator(options["seed"]))
        - sample.covariance
    )
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


def _release(
    x: Any,
    bounds: Bounds,
    budget: Budget,
    alpha: float,
    n_bootstrap: int,
    rng: Rng,
    noise: NoiseSource | None,
    mean_share: float | None = None,
) -> tuple[Contrast, Box, dict[str, Any], dict[str, Any]]:
    """Check the arguments and release; return the contrast, its box, the facts, the options."""
    options = checked_bootstrap(alpha, n_bootstrap, rng)
    source = noise_source(noise)
    sample = numeric_sample(x, bounds)
    share = {} if mean_share is None else {"mean_share": mean_share}
    contrast = look_at_one(sample, budget, source, **share)
    facts = {
        "confidence": 1 - options["alpha"],
        "spent": budget,
        "n": len(sample),
        "columns": sample.names,
        "rows_per_person": sample.rows_per_person,
        "simulated": source.simulated,
    }
    return contrast, sample.box, facts, options


# Hotelling's t² test for the means of several columns.


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
    layout = resolve_samples(
        (x, y),
        bounds,
        adjacency,
        public_groups=BY_SIZES,
        group=group,
        groups=groups,
        columns=columns,
    )
    adjacency = layout.adjacency
    each = sample_budget(budget, adjacency)
    source = noise_source(noise)
    data, bounds = layout.read((x, y))
    samples = numeric_samples(data[0], data[1], bounds, adjacency)
    contrast = compare_two(samples, each, source, equal_covariance=equal_covariance)
    facts: dict[str, Any] = {
        "spent": budget,
        "adjacency": adjacency,
        "method": "two-sample Hotelling test",
        "null_hypothesis": "the two samples have the same means",
        "sizes": {"n": len(samples.x), "m": len(samples.y)},
        "rows_per_person": samples.rows_per_person,
        "simulated": source.simulated,
    }
    found = infer(contrast, np.zeros(samples.domain.dimension), **options)
    return _hotelling_outcome(
        contrast, found, samples.x, options, facts, equal_covariance=equal_covariance
    )


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
    contrast = look_at_one(sample, budget, source)
    facts: dict[str, Any] = {
        "spent": budget,
        "adjacency": "one",
        "method": "one-sample Hotelling test",
        "null_hypothesis": "the means are the given ones",
        "sizes": {"n": len(sample)},
        "rows_per_person": sample.rows_per_person,
        "simulated": source.simulated,
    }
    found = infer(contrast, hypothesis, **options)
    return _hotelling_outcome(contrast, found, sample, options, facts)


def _hotelling_outcome(
    contrast: Contrast,
    found: Finding,
    sample: Sample,
    options: dict[str, Any],
    facts: dict[str, Any],
    **shown: object,
) -> Outcome:
    released = estimates(contrast, sample.box, found)
    rest = {name: value for name, value in options.items() if name != "alpha"}
    intervals = MeanIntervals(contrast, sample.box, **rest)
    return outcome(found, released, sample, options, facts, intervals, **shown)


def _public_means(mean: ArrayLike, dimension: int) -> NDArray[np.float64]:
    problem = f"mean must be a finite number, or one for each of the {dimension} columns."
    try:
        means = np.asarray(mean, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(problem) from None
    if means.shape not in {(), (dimension,)} or not np.isfinite(means).all():
        raise ParameterError(problem)
    return np.broadcast_to(means, (dimension,))


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
