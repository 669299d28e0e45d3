"""Private t-tests: Hotelling's test for one column, with one-sided alternatives."""

from __future__ import annotations

import math
from typing import Any

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, number, one_of
from privatest.data.bounds import Bounds
from privatest.data.samples import Sample
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.means.bootstrap import Contrast
from privatest.means.inference import (
    Calibration,
    checked_options,
    estimates,
    infer_one_column,
    outcome,
)
from privatest.means.samples import (
    compare_two,
    look_at_one,
    numeric_sample,
    numeric_samples,
    sample_budget,
)

__all__ = ["ttest_1samp", "ttest_ind"]

_TWO_MEANS = {
    "two-sided": "the two samples have the same mean",
    "greater": "the mean of the first sample is at most that of the second",
    "less": "the mean of the first sample is at least that of the second",
}
_SHOWN = ("mean_x", "mean_y", "mean", "difference", "lower", "upper")
_ONE_MEAN = {"two-sided": "", "greater": "at most ", "less": "at least "}


def ttest_ind(
    x: Any,
    y: Any,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    equal_var: bool = True,
    alternative: Alternative = "two-sided",
    calibration: Calibration = "bootstrap",
    n_bootstrap: int = 999,
    adjacency: Adjacency = "one",
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples of one variable have the same mean.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
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
    calibration, n_bootstrap, adjacency, rng, noise
        As in :func:`privatest.hotelling_test`.

    Returns
    -------
    Outcome
        With the private t and, in ``estimates``, both means, their ``difference`` (x - y) with its
        confidence interval ``lower`` to ``upper`` (a one-sided one extends to the bounds),
        its ``standard_error`` including the noise, and the pooled ``variance``.

    Notes
    -----
    **Sensitivity** With the bounds mapped to [-1, 1], a replaced record moves the mean by at most
    2/n and the mean square by 1/n, times the rows per person. Proof: docs/proofs/means.md.

    **Privacy** Means and mean squares of both samples are released at (epsilon, delta); everything
    else is computed from them. A record is in one sample, so each sample gets the whole budget.
    The level is that of a parametric bootstrap: it was measured, not proved.

    References
    ----------
    Dunsche, Kutta and Dette (2022), example 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(0, 8, size=2000), rng.uniform(1, 9, size=1500)
    >>> ttest_ind(x, y, bounds=(0, 10), epsilon=1, alternative="less", rng=0).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = checked_options(alpha, calibration, n_bootstrap, rng)
    one_of("alternative", alternative, ALTERNATIVES)
    each = sample_budget(budget, adjacency)
    source = noise_source(noise)
    samples = numeric_samples(x, y, bounds)
    _check_one_column(samples.x, "x and y")
    contrast = compare_two(samples, each, source, equal_covariance=equal_var)
    facts: dict[str, Any] = {
        "spent": budget,
        "adjacency": adjacency,
        "method": "two-sample t-test" if equal_var else "two-sample t-test (unequal variances)",
        "null_hypothesis": _TWO_MEANS[alternative],
        "sizes": {"n": len(samples.x), "m": len(samples.y)},
        "unit": samples.unit,
        "simulated": source.simulated,
    }
    return _outcome(contrast, 0.0, samples.x, alternative, options, facts)


def ttest_1samp(
    x: Any,
    mean: float,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    calibration: Calibration = "bootstrap",
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a sample of one variable has a given mean.

    Parameters
    ----------
    x : array, series or table of one column
        The sample.
    mean : float
        The hypothesised mean, which is public.
    bounds, epsilon, delta, alpha, alternative, calibration, n_bootstrap, rng, noise
        As in :func:`privatest.ttest_ind`; greater: the mean of x is larger than ``mean``.

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
    >>> ttest_1samp(x, 5, bounds=(0, 10), epsilon=1, rng=0).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = checked_options(alpha, calibration, n_bootstrap, rng)
    one_of("alternative", alternative, ALTERNATIVES)
    source = noise_source(noise)
    value = number("mean", mean)
    sample = numeric_sample(x, bounds)
    _check_one_column(sample, "x")
    contrast = look_at_one(sample, budget, source)
    facts: dict[str, Any] = {
        "spent": budget,
        "adjacency": "one",
        "method": "one-sample t-test",
        "null_hypothesis": f"the mean is {_ONE_MEAN[alternative]}{value:g}",
        "sizes": {"n": len(sample)},
        "unit": sample.unit,
        "simulated": source.simulated,
    }
    hypothesis = float((value - sample.box.centre[0]) / sample.box.half[0])
    return _outcome(contrast, hypothesis, sample, alternative, options, facts)


def _check_one_column(sample: Sample, name: str) -> None:
    if sample.domain.dimension != 1:
        raise DataError(f"{name} must have one column; for several use hotelling_test.")


def _outcome(
    contrast: Contrast,
    hypothesis: float,
    sample: Sample,
    alternative: Alternative,
    options: dict[str, Any],
    facts: dict[str, Any],
) -> Outcome:
    found = infer_one_column(contrast, hypothesis, alternative=alternative, **options)
    vectors = estimates(contrast, sample.box, found)
    released = {name: float(vectors[name][0]) for name in _SHOWN if name in vectors}
    released["standard_error"] = math.sqrt(vectors["region_shape"][0, 0])
    released["variance"] = float(vectors["covariance"][0, 0])
    return outcome(found, released, sample, options, facts, alternative=alternative)
