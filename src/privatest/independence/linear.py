"""Do two bounded columns lie about a line? Pearson's correlation and the slope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.bounds import Bounds
from privatest.data.samples import TwoSamples, encode_pairs
from privatest.independence.line import CorrelationInterval, Line, SlopeInterval, line_pvalue
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.mechanisms.additive import linf_mean, linf_scale
from privatest.statistics.linear import line_moments, line_sensitivity

__all__ = ["linregress", "pearsonr"]

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
    covariance is known. The interval is Fisher's with the noise, for rows that are roughly
    normal after clipping; for heavy tails it is too short, as Fisher's is. Use
    :func:`privatest.spearmanr` or :func:`privatest.kendalltau` there.

    **Sensitivity** 2/n in each of the five moments x, y, 2x² - 1, xy, 2y² - 1 of columns mapped to
    [-1, 1], times the rows of a person. Proof: docs/proofs/correlation.md.

    **Privacy** The moments are released together at (epsilon, delta) with l-infinity noise;
    the rest follows from them.

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
    line = asked.release(sides)
    interval = CorrelationInterval(line, alternative)
    low, high = interval(1 - asked.alpha)
    estimates = {"correlation": line.correlation, "lower": low, "upper": high}
    facts = asked.facts(sides, line, "Pearson's correlation")
    return Outcome(
        statistic=line.correlation, estimates=estimates, intervals=interval, **facts
    )


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
        The statistic is the private slope; ``estimates`` have "slope", "intercept" and "rvalue", and
        the interval "lower" to "upper" of the slope in the data's own units. Its ends are infinite
        where noise hides the variance of x.

    Notes
    -----
    The interval is Fieller's with the noise: slopes b for which x and y - b x may be uncorrelated.
    It is for errors that do not depend on x, of any law; errors that grow with x can make
    it too short, as the classical one. Clipping bends a line: bounds should hold the data.

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
    line = asked.release(sides)
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

    def release(self, sides: TwoSamples) -> Line:
        """Release the five moments: the only step that looks at data."""
        n = len(sides.x)
        sensitivity = line_sensitivity(n, sides.rows_per_person)
        epsilon = self.budget.pure_epsilon
        x, y = (2 * side.values - 1 for side in sides)
        released = linf_mean(
            line_moments(x, y), sensitivity=sensitivity, epsilon=epsilon, noise=self.noise
        )
        return Line.of(n, released, linf_scale(sensitivity, epsilon))

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
