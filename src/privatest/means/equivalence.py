"""Are two means practically equal? Two one-sided t-tests from one release (TOST)."""

from __future__ import annotations

from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, number
from privatest.data.bounds import Bounds
from privatest.data.samples import Sample
from privatest.means.bootstrap import Contrast
from privatest.means.inference import (
    Calibration,
    Finding,
    checked_calibration,
    infer_one_column,
    outcome,
)
from privatest.means.intervals import TIntervals
from privatest.means.samples import (
    check_one_column,
    compare_two,
    difference_sample,
    look_at_one,
    numeric_samples,
    sample_budget,
)
from privatest.means.ttest import one_column_estimates

__all__ = ["tost_ind", "tost_rel"]


@declare_level("measured", valid="calibration='any'")
def tost_ind(
    x: Any,
    y: Any,
    low: float,
    high: float,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    equal_var: bool = True,
    calibration: Calibration = "classical",
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
    return _outcome(contrast, ends, 0.0, samples.x, options, facts)


@declare_level("measured", valid="calibration='any'")
def tost_rel(
    x: Any,
    y: Any,
    low: float,
    high: float,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    calibration: Calibration = "classical",
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
    return _outcome(
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


def _outcome(
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
