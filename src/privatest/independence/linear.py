"""Do two bounded columns lie about a line? Pearson's correlation and the slope."""

from __future__ import annotations

from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Amount
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, public_generator
from privatest.data.bounds import Bounds
from privatest.data.samples import TwoSamples
from privatest.independence.asked import Asked, numeric_pairs
from privatest.independence.line import (
    CorrelationInterval,
    SlopeInterval,
    correlation_products,
    slope_products,
)
from privatest.independence.line_release import LineRelease, release_line
from privatest.laws.law import Alternative

__all__ = ["linregress", "pearsonr"]


@declare_level("measured")
def pearsonr(
    x: Any,
    y: Any,
    *,
    bounds_x: Bounds,
    bounds_y: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    n_simulations: int = 9999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two columns are independent, by their correlation; and estimate it.

    Parameters
    ----------
    x, y : array, series or table of one column
        Row i of ``x`` and row i of ``y`` belong to one record.
    bounds_x, bounds_y : pair or Schema
        Public bounds of each column; values outside are clipped. Close ones need less noise.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision, and of the interval: 1 - alpha.
    alternative : {"two-sided", "greater", "less"}
        "greater": y rises with x.
    n_simulations : int
        Draws of the noise behind the p-value, which is at least 1/(n_simulations + 1).
    rng : None, int or Generator
        Public randomness, for these draws.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the private correlation; ``estimates`` have it as "correlation", with its
        interval "lower" to "upper".

    Notes
    -----
    The p-value needs no normal rows: if the columns are independent, the variance of their
    covariance is known. A covariance has much noise, that of the whole bounds, so below n epsilon²
    = 1,000,000 a tenth to a half of epsilon (the more the fewer rows) asks Kendall's score as well,
    whose p-value is exact. The p-value is then the smaller of that of the ranks over .85 and that
    of the covariance over .15. From there on it is that of the covariance, SciPy's with the noise.
    :func:`privatest.kendalltau` spends all on ranks.

    The interval is Fisher's with the noise. Its sampling variance is that of normal rows if n
    epsilon is below 1000; from there on a tenth of epsilon buys it, which heavy tails need. Where
    those are heavy :func:`privatest.kendalltau` is the better estimate. The interval may hold 0
    where the p-value is small: it knows nothing of the ranks.

    **Sensitivity** 2/n in each of the five moments x, y, 2x² - 1, xy, 2y² - 1 of columns mapped to
    [-1, 1], and 2 (n - 1) in Kendall's score, times the rows of a person. Proof:
    docs/proofs/correlation.md.

    **Privacy** Kendall's score is released with Tulap or Laplace noise, the moments together with
    l-infinity noise, and after them, if n epsilon is at least 1000, the mean of a bounded function
    that they choose: together at (epsilon, delta). The rest follows from these.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 10, size=2000)
    >>> y = 10 - x
    >>> pearsonr(x, y, bounds_x=(0, 10), bounds_y=(0, 10), epsilon=1, rng=0).reject
    True
    """
    asked = Asked.checked(epsilon, delta, alpha, alternative, noise)
    simulations = integer_at_least("n_simulations", n_simulations, 19)
    generator = public_generator(rng)
    sides = _columns(x, y, bounds_x, bounds_y)
    found = release_line(
        sides, asked.budget.pure_epsilon, alternative, correlation_products, asked.noise
    )
    line = found.line
    interval = CorrelationInterval(line, alternative)
    low, high = interval(1 - asked.alpha)
    estimates = {"correlation": line.correlation, "lower": low, "upper": high}
    facts = _facts(asked, sides, found, simulations, generator, "Pearson's correlation")
    return Outcome(
        statistic=line.correlation,
        estimates=estimates,
        estimated="correlation",
        intervals=interval,
        **facts,
    )


@declare_level("measured")
def linregress(
    x: Any,
    y: Any,
    *,
    bounds_x: Bounds,
    bounds_y: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    n_simulations: int = 9999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Estimate privately the slope of y on x, and test whether it is 0.

    Parameters
    ----------
    x, y : array, series or table of one column
        What explains, and what is explained; row i of both belongs to one record.
    bounds_x, bounds_y, epsilon, delta, alpha, alternative, n_simulations, rng, noise
        As in :func:`pearsonr`.

    Returns
    -------
    Outcome
        The statistic is the private slope; ``estimates`` have "slope", "intercept" and "rvalue",
        and the interval "lower" to "upper" of the slope in the data's own units. Its ends are
        infinite where noise hides the variance of x.

    Notes
    -----
    The interval is Fieller's with the noise: slopes b for which x and y - b x may be uncorrelated.
    It is for errors of any law that do not depend on x if n epsilon is below 1000; from there on a
    tenth of epsilon buys the sampling variance, and errors may grow with x. Clipping bends a line:
    bounds should hold the data.

    **Sensitivity** As in :func:`pearsonr`.

    **Privacy** As in :func:`pearsonr`.

    References
    ----------
    Alabi, McMillan, Sarathy, Smith and Vadhan (2022), Differentially private simple linear
    regression; Alabi and Vadhan (2022), Hypothesis testing for differentially private linear
    regression. The noisy moments and the redrawing are theirs, the noise and the interval are not.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 10, size=2000)
    >>> y = 1 + 2 * x
    >>> found = linregress(x, y, bounds_x=(0, 10), bounds_y=(0, 21), epsilon=1, rng=0)
    >>> bool(1 < found.estimates["slope"] < 3)
    True
    """
    asked = Asked.checked(epsilon, delta, alpha, alternative, noise)
    simulations = integer_at_least("n_simulations", n_simulations, 19)
    generator = public_generator(rng)
    sides = _columns(x, y, bounds_x, bounds_y)
    found = release_line(sides, asked.budget.pure_epsilon, alternative, slope_products, asked.noise)
    line = found.line
    (half_x, half_y), boxes = (float(side.box.half[0]) for side in sides), [s.box for s in sides]
    unit = half_y / half_x
    means = [
        float(box.lower[0] + (1 + centre) * box.half[0])
        for box, centre in zip(boxes, line.centre, strict=True)
    ]
    interval = SlopeInterval(line, unit, alternative)
    low, high = interval(1 - asked.alpha)
    slope = unit * line.slope
    estimates = {
        "slope": slope,
        "intercept": means[1] - slope * means[0],
        "rvalue": line.correlation,
        "lower": low,
        "upper": high,
    }
    facts = _facts(asked, sides, found, simulations, generator, "linear regression")
    return Outcome(
        statistic=slope, estimates=estimates, estimated="slope", intervals=interval, **facts
    )


def _facts(
    asked: Asked, sides: TwoSamples, found: LineRelease, simulations: int, rng: Any, method: str
) -> dict[str, Any]:
    """Return the p-value and the public fields of a result."""
    pvalue = found.pvalue(asked.alternative, simulations, rng)
    return {
        "pvalue": pvalue,
        "reject": pvalue <= asked.alpha,
        "alpha": asked.alpha,
        "spent": asked.budget,
        "simulated": asked.noise.simulated,
        **asked.facts(sides, method, n_simulations=simulations),
    }


def _columns(x: Any, y: Any, bounds_x: Bounds, bounds_y: Bounds) -> TwoSamples:
    """Read two bounded columns."""
    for name, bounds in (("bounds_x", bounds_x), ("bounds_y", bounds_y)):
        if bounds is None:
            raise ParameterError(f"{name} must be given: found from the data they would leak it.")
    return numeric_pairs(x, y, bounds_x, bounds_y, rows=4)
