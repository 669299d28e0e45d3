"""Do two bounded columns lie about a line? Pearson's correlation and the slope."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.bounds import Bounds
from privatest.data.samples import TwoSamples, beside, encode_pairs
from privatest.independence.line import (
    CorrelationInterval,
    Line,
    SlopeInterval,
    correlation_products,
    line_pvalue,
    slope_products,
)
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.mechanisms.additive import linf_mean, linf_scale
from privatest.statistics.linear import (
    Products,
    line_moments,
    line_sensitivity,
    mean_square,
    mean_square_sensitivity,
)

__all__ = ["linregress", "pearsonr"]

_BELOW = 1 - 1e-12  # parts are rounded down, so that they never sum to more than epsilon
_SHARE = 0.1  # of epsilon, for the sampling variance behind an interval
_ROWS = 100.0  # n epsilon over this is where squares are cut off: their noise is about 1/7 then
_SMALLEST_LIMIT, _LARGEST_LIMIT = 10.0, 1000.0  # with a larger one noise would not fall any more
_LEAST = 0.2

_NULLS = {
    "two-sided": "the two columns are independent",
    "greater": "the two columns are independent or fall together",
    "less": "the two columns are independent or rise together",
}


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
        Draws behind the p-value, which is a multiple of 1/(n_simulations + 1).
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
    covariance is known. The interval is Fisher's with the noise. Its sampling variance is that of
    normal rows if n epsilon is below 1000; from there on a tenth of epsilon buys it, which heavy
    tails need. Where those are heavy :func:`privatest.kendalltau` is the better estimate.

    **Sensitivity** 2/n in each of the five moments x, y, 2x² - 1, xy, 2y² - 1 of columns mapped to
    [-1, 1], times the rows of a person. Proof: docs/proofs/correlation.md.

    **Privacy** The moments are released together with l-infinity noise, and after them, if n
    epsilon is at least 1000, the mean of a bounded function that they choose: together at (epsilon,
    delta). The rest follows from these.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 10, size=2000)
    >>> y = 10 - x
    >>> pearsonr(x, y, bounds_x=(0, 10), bounds_y=(0, 10), epsilon=1, rng=0).reject
    True
    """
    asked = _Asked.checked(epsilon, delta, alpha, alternative, n_simulations, rng, noise)
    sides = _columns(x, y, bounds_x, bounds_y)
    line = asked.release(sides, correlation_products)
    interval = CorrelationInterval(line, alternative)
    low, high = interval(1 - asked.alpha)
    estimates = {"correlation": line.correlation, "lower": low, "upper": high}
    facts = asked.facts(sides, line, "Pearson's correlation")
    return Outcome(statistic=line.correlation, estimates=estimates, intervals=interval, **facts)


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
    >>> bool(1.5 < found.estimates["slope"] < 2.5)
    True
    """
    asked = _Asked.checked(epsilon, delta, alpha, alternative, n_simulations, rng, noise)
    sides = _columns(x, y, bounds_x, bounds_y)
    line = asked.release(sides, slope_products)
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
    facts = asked.facts(sides, line, "linear regression")
    return Outcome(statistic=slope, estimates=estimates, intervals=interval, **facts)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The checked arguments that both functions share."""

    budget: Budget
    alpha: float
    alternative: Alternative
    n_simulations: int
    rng: np.random.Generator
    noise: NoiseSource

    @classmethod
    def checked(
        cls,
        epsilon: Amount,
        delta: Amount,
        alpha: object,
        alternative: Alternative,
        n_simulations: object,
        rng: Rng,
        noise: NoiseSource | None,
    ) -> _Asked:
        one_of("alternative", alternative, ALTERNATIVES)
        return cls(
            Budget(epsilon, delta),
            number("alpha", alpha, above=0, below=1),
            alternative,
            integer_at_least("n_simulations", n_simulations, 19),
            public_generator(rng),
            noise_source(noise),
        )

    def release(self, sides: TwoSamples, products: Callable[[Line, float], Products]) -> Line:
        """Release the moments, and then the sampling variance: all that looks at data."""
        n, people = len(sides.x), sides.rows_per_person
        epsilon = self.budget.pure_epsilon * _BELOW
        # public: it says whether a variance can be had
        limit = min(n * epsilon / _ROWS, _LARGEST_LIMIT * people)
        share = _SHARE if limit >= _SMALLEST_LIMIT * people else 0.0
        pairs = beside(*sides)
        sensitivity, spent = line_sensitivity(n, people), (1 - share) * epsilon
        moments = line_moments(pairs)
        released = linf_mean(moments, sensitivity=sensitivity, epsilon=spent, noise=self.noise)
        line = Line.of(n, released, linf_scale(sensitivity, spent))
        if not share:
            return line
        wanted = products(line, limit)
        square = np.array([mean_square(pairs, wanted)])
        moved, left = mean_square_sensitivity(n, people, limit), share * epsilon
        (noisy,) = linf_mean(square, sensitivity=moved, epsilon=left, noise=self.noise)
        error = math.sqrt(2) * linf_scale(moved, left)
        return replace(line, excess=max(float(noisy) + error, _LEAST) / _kept(limit))

    def facts(self, sides: TwoSamples, line: Line, method: str) -> dict[str, Any]:
        """Return the p-value and the public fields of a result."""
        pvalue = line_pvalue(line, self.alternative, self.n_simulations, self.rng)
        return {
            "pvalue": pvalue,
            "reject": pvalue <= self.alpha,
            "alpha": self.alpha,
            "spent": self.budget,
            "simulated": self.noise.simulated,
            "adjacency": "one",
            "method": method,
            "null_hypothesis": _NULLS[self.alternative],
            "sizes": {"n": line.n},
            "parameters": {
                "alternative": self.alternative,
                "n_simulations": self.n_simulations,
            },
            "unit": sides.unit,
        }


@lru_cache(maxsize=64)
def _kept(limit: float) -> float:
    """Return E min(p², limit) for the product p of two normals: what a limit leaves of 1."""
    from scipy.special import ndtri  # noqa: PLC0415

    squares = ndtri((np.arange(1000) + 0.5) / 1000) ** 2
    return float(np.minimum(np.outer(squares, squares), limit).mean())


def _columns(x: Any, y: Any, bounds_x: Bounds, bounds_y: Bounds) -> TwoSamples:
    """Read two bounded columns."""
    for name, bounds in (("bounds_x", bounds_x), ("bounds_y", bounds_y)):
        if bounds is None:
            raise ParameterError(f"{name} must be given: found from the data they would leak it.")
    sides = encode_pairs(x, y, bounds_x, bounds_y)
    if any(side.domain.levels != (0,) for side in sides):
        raise DataError("x and y must each be one numeric column; hsic_test takes several.")
    if len(sides.x) < 4:
        raise DataError("x and y must have at least 4 rows.")
    return sides
