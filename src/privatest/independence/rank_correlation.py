"""Do two columns rise together? Kendall's tau and Spearman's rho."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Amount
from privatest.core.results import Outcome
from privatest.data.bounds import Bounds
from privatest.data.samples import TwoSamples
from privatest.independence.asked import Asked, numeric_pairs
from privatest.independence.rank_intervals import Coefficient, RankInterval
from privatest.laws.law import Alternative, Law
from privatest.laws.rank_correlation import kendall_law, spearman_law
from privatest.laws.ties import (
    kendall_factor,
    spearman_factor,
    sure_ties,
    tie_miss,
    tie_reach,
    tied_pvalue,
)
from privatest.laws.tulap import LatticeTulap
from privatest.mechanisms.lattice import integers_scale, noisy_weighted_integers
from privatest.statistics.rank_correlation import TiedScore, kendall_ties, spearman_ties

__all__ = ["kendalltau", "spearmanr"]


@declare_level("measured")  # with ties; without them it is proved
def kendalltau(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    bounds_x: Bounds = None,
    bounds_y: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two columns are independent, by Kendall's tau; and estimate tau.

    Parameters
    ----------
    x, y : array, series or table of one column
        Row i of ``x`` and row i of ``y`` belong to one record.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision, and of the interval: 1 - alpha.
    alternative : {"two-sided", "greater", "less"}
        "greater": y rises with x. Named in advance it needs less data than "two-sided".
    bounds_x, bounds_y : None, pair or Schema
        Not needed. A schema checks and clips values and says how many rows a person may have.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the private tau-b, SciPy's, which noise may carry beyond 1; ``estimates``
        have it as "tau", cut to [-1, 1], with its interval "lower" to "upper", and the private
        shares of pairs that are tied in x and in y as "ties".

    Notes
    -----
    Without ties the p-value is exact for every n. With ties the score varies less. By how much is
    found from noisy numbers of ties, of which only so many count as the noise cannot explain: then
    the p-value is approximate, and as epsilon grows it becomes SciPy's asymptotic one.

    The interval takes the variance of tau from a Gaussian copula, a tenth wider, and more where
    there are ties. It covers with .93 to .99 for linear dependence with normal, skewed or heavy
    tails and for rounded values; for dependence that is not monotone (a cross, a circle) it can be
    too short.

    **Sensitivity** 2 (n - 1) of the score and its ties together, weighted so that the score has all
    of it, times the rows of a person: one row is in n - 1 pairs, and a pair that it ties moves the
    score by 1 and not by 2. Proof: docs/proofs/correlation.md.

    **Privacy** Concordant minus discordant pairs and four numbers of ties are released together
    with discrete Laplace noise, at (epsilon, delta); the rest follows from that.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> kendalltau(x, x + rng.normal(size=2000), epsilon=1).reject
    True
    """
    asked = Asked.checked(epsilon, delta, alpha, alternative, noise)
    # in their own units: values that differ keep their ranks
    sides = numeric_pairs(x, y, bounds_x, bounds_y, rows=2, units="own")
    found = _Released.of(kendall_ties(sides.x.values, sides.y.values), sides, asked)
    n, top = found.n, found.n * (found.n - 1) // 2
    pairs = [found.sure(1), found.sure(2)]
    # of sets of ties the sum of cubes is least if all are equal; no ties have none
    cubes = [
        max(found.sure(3 + side), (n + 2 * each) ** 2 / n - n) if each else 0.0
        for side, each in enumerate(pairs)
    ]
    factor = kendall_factor(n, _both(pairs), _both(cubes))
    untied = [_untied(top, found.ties[side], found.scales[1 + side]) for side in (0, 1)]
    products = [(1 - max(2 * found.ties[side] / n**2, 0.5)) / 2 for side in (0, 1)]
    rarities = _rarities(products, found, top)
    law = kendall_law(n)
    return _outcome(asked, found, law, top, untied, factor, factor, rarities, sides, "tau")


@declare_level("measured")  # with ties, and with more than 12 rows
def spearmanr(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    bounds_x: Bounds = None,
    bounds_y: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two columns are independent, by Spearman's rho; and estimate rho.

    Parameters
    ----------
    x, y, epsilon, delta, alpha, alternative, bounds_x, bounds_y, noise
        As in :func:`kendalltau`.

    Returns
    -------
    Outcome
        The statistic is the private rho of midranks, SciPy's, which noise may carry beyond 1;
        ``estimates`` have it as "rho", cut to [-1, 1], with its interval "lower" to "upper", and
        "ties": by which share ties lower the variances of the ranks of x and of y.

    Notes
    -----
    Without ties the p-value is exact up to 12 rows, and from there on too large by at most about
    1/n². With ties it is approximate, as in :func:`kendalltau`, and becomes SciPy's as epsilon
    grows.

    The interval is that of Bonett and Wright (2000) with the noise, and a little wider. It
    covers with .93 to .99 for linear dependence with normal, skewed or heavy tails and for
    rounded values; for dependence that is not monotone it can be too short.

    **Sensitivity** 2n (n - 1) + 1/2 of the score and its ties together, weighted so that the score
    has all of it: 6/(n + 1) of rho; times the rows of a person. Proof: docs/proofs/correlation.md.

    **Privacy** The centred sum of products of midranks and two numbers of ties are released
    together with discrete Laplace noise, at (epsilon, delta); the rest follows from that.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> spearmanr(x, x + rng.normal(size=2000), epsilon=1).reject
    True
    """
    asked = Asked.checked(epsilon, delta, alpha, alternative, noise)
    # in their own units: values that differ keep their ranks
    sides = numeric_pairs(x, y, bounds_x, bounds_y, rows=2, units="own")
    found = _Released.of(spearman_ties(sides.x.values, sides.y.values), sides, asked)
    n, whole = found.n, found.n**3 - found.n
    factor = spearman_factor(n, (found.sure(1), found.sure(2)))
    untied = [_untied(whole, found.ties[side], found.scales[1 + side]) for side in (0, 1)]
    # a correlation of 1 has the score (n³ - n)/3, and rho varies as much with ties as without
    law = spearman_law(n).scaled(2)
    spread = _middle(untied) / whole
    products = [(1 - max(found.ties[side] / whole, 0.25)) / 3 for side in (0, 1)]
    rarities = _rarities(products, found, whole)
    return _outcome(asked, found, law, whole / 3, untied, factor, spread, rarities, sides, "rho")


_METHODS = {"tau": "Kendall's rank correlation", "rho": "Spearman's rank correlation"}
_VISIBLE = 6.0  # scales of the noise from which on an estimate allows for ties
_ENDS = 2.5  # scales by which an interval allows for more and for fewer in both columns


@dataclass(frozen=True, slots=True)
class _Released:
    """The noisy score and ties.

    Attributes
    ----------
    score : int
        With noise.
    ties : tuple of float
        With noise.
    scales : tuple of float
        Of the noise of the score and of the ties.
    n : int
        Number of rows.
    reach : float
        Scales of their noise from which on ties are beyond doubt.
    """

    score: int
    ties: tuple[float, ...]
    scales: tuple[float, ...]
    n: int
    reach: float

    @classmethod
    def of(cls, tied: TiedScore, sides: TwoSamples, asked: Asked) -> _Released:
        """Release a score with its ties."""
        n, epsilon = len(sides.x), asked.budget.pure_epsilon
        sensitivity = tied.sensitivity * sides.rows_per_person
        score, *ties = noisy_weighted_integers(
            tied.values,
            weights=tied.weights,
            sensitivity=sensitivity,
            epsilon=epsilon,
            noise=asked.noise,
        )
        units = [1] * (len(ties) - 1) + [tied.unit] * 2  # pairs are counted, cubes rounded
        scale = math.nextafter(sensitivity / epsilon, math.inf)
        scales = [
            unit * integers_scale(weight, scale)
            for weight, unit in zip(tied.weights, units, strict=True)
        ]
        return cls(
            score,
            tuple(float(unit * each) for unit, each in zip(units[1:], ties, strict=True)),
            tuple(scales),
            n,
            tie_reach(n * epsilon / sides.rows_per_person),
        )

    @property
    def noise(self) -> LatticeTulap:
        """The law of the noise on the score."""
        return LatticeTulap(1, 1 / self.scales[0], blocks=2)

    def sure(self, place: int) -> float:
        """Return a number of ties that is hardly too large."""
        return sure_ties(self.ties[place - 1], self.scales[place], self.reach)


def _both(values: Any) -> tuple[float, float]:
    first, second = values
    return first, second


def _untied(top: float, ties: float, scale: float) -> tuple[float, float, float]:
    """Return how much is not tied: the least, the estimate and the most that noise allows.

    An estimate is not divided by what is less than some scales of its noise.
    """
    likely = max(top - ties, 3 * scale) if ties > _VISIBLE * scale else top
    ends = top - ties - _ENDS * scale, top - ties + _ENDS * scale
    low, high = (max(end, scale) for end in ends)
    return min(low, top), min(likely, top), min(high, top)


def _rarities(products: list[float], found: _Released, top: float) -> tuple[float, float]:
    """Return (1 - 2p)²/(p (1 - p)) for columns of two values, a share p of one, from p (1 - p).

    A value that most rows have makes a column look so; the product is taken as large as its noise.
    """
    noise = [found.scales[1 + side] / top for side in (0, 1)]
    return _both(
        max(1 - 4 * product, 0.0) / max(product, error, 1 / found.n)
        for product, error in zip(products, noise, strict=True)
    )


def _middle(untied: list[tuple[float, float, float]]) -> float:
    return math.sqrt(untied[0][1] * untied[1][1])


def _outcome(
    asked: Asked,
    found: _Released,
    law: Law,
    top: float,
    untied: list[tuple[float, float, float]],
    factor: float,
    spread: float,
    rarities: tuple[float, float],
    sides: TwoSamples,
    coefficient: Coefficient,
) -> Outcome:
    """Compute the p-value, the estimate and the interval from what was released.

    ``top`` is the score of a correlation of 1 without ties, ``factor`` the standard deviation of
    the score over that without ties where they are beyond doubt, ``spread`` its estimate.
    """
    alternative, noise = asked.alternative, found.noise
    two = alternative == "two-sided"
    side: Alternative = "greater" if two else alternative
    score = {"two-sided": abs(found.score), "greater": found.score, "less": -found.score}
    place = score[alternative] - 0.5
    miss = tie_miss(found.reach, 2)  # either column's
    one_sided = tied_pvalue(law, place, noise, side, factor=factor, miss=miss)
    pvalue = min(1.0, 2 * one_sided) if two else one_sided
    tops = [math.sqrt(first * second) for first, second in zip(*untied, strict=True)]
    scale = top / (found.n**3 - found.n if coefficient == "rho" else top) if found.n > 1 else 1.0
    low, middle, high = (scale * each for each in tops)
    interval = RankInterval(
        coefficient,
        float(found.score),
        (low, middle, high),
        found.n,
        noise,
        alternative,
        max(1.0, spread * top / middle),
        rarities,
    )
    lower, upper = interval(1 - asked.alpha)
    shares = [1 - each[1] / (top / scale) for each in untied]
    estimates = {coefficient: interval.estimate, "lower": lower, "upper": upper, "ties": shares}
    return Outcome(
        reject=pvalue <= asked.alpha,
        pvalue=pvalue,
        statistic=found.score / middle,
        estimates=estimates,
        estimated=coefficient,
        intervals=interval,
        alpha=asked.alpha,
        spent=asked.budget,
        simulated=asked.noise.simulated,
        **asked.facts(sides, _METHODS[coefficient]),
    )
