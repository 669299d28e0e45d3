"""Private t-tests: Hotelling's test for one column, with one-sided alternatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, number, one_of
from privatest.data.bounds import Bounds
from privatest.data.by_group import resolve_samples
from privatest.data.categories import Category
from privatest.data.samples import Sample
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.means.bootstrap import Contrast
from privatest.means.inference import (
    Calibration,
    Finding,
    checked_calibration,
    estimates,
    infer_one_column,
    outcome,
)
from privatest.means.intervals import TIntervals
from privatest.means.samples import (
    BY_SIZES,
    check_one_column,
    compare_two,
    difference_sample,
    look_at_one,
    numeric_sample,
    numeric_samples,
    sample_budget,
)

__all__ = ["one_column_estimates", "ttest_1samp", "ttest_ind", "ttest_rel"]

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
    alternative: Alternative = "two-sided",
    calibration: Calibration = "classical",
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
    alternative: Alternative = "two-sided",
    calibration: Calibration = "classical",
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
