"""Private quantiles of one numeric column, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.estimate_table import EstimateTable
from privatest.core.intervals import Interval, confidence
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import PrivateEstimate, known_values
from privatest.core.validation import number, printable
from privatest.data.bounds import Bounds
from privatest.data.limits import rows_of_a_person
from privatest.laws.counts import binomial_law
from privatest.quantiles.counting import Below, Target, count_below, count_below_all
from privatest.quantiles.curve import Curve
from privatest.quantiles.grids import FINE_CELLS, Grid, checked_cells, grid_of, one_numeric_column
from privatest.statistics.cumulative import cell_counts

__all__ = ["QuantileEstimate", "private_median", "private_quantile"]


@dataclass(frozen=True, slots=True, eq=False)
class QuantileEstimate(PrivateEstimate):
    """A private quantile, with a confidence interval for that of the population.

    Attributes
    ----------
    quantile : float
        The private quantile.
    lower, upper : float
        The interval at level ``confidence``.
    q : float
        Which quantile: the share of the population below it.
    confidence : float
        Level of the interval from ``lower`` to ``upper``.
    spent : Budget
        What releasing this cost.
    n : int
        Public number of rows.
    column : str or None
        Name of the column.
    rows_per_person : int
        The most rows that one person has; the guarantee hides all of them.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    curve : Curve or None
        The released counts below the edges of a public grid, from which all quantiles and
        intervals follow. It is not part of the JSON document.
    """

    quantile: float
    lower: float
    upper: float
    q: float
    confidence: float
    spent: Budget
    n: int
    column: str | None = None
    rows_per_person: int = 1
    simulated: bool = False
    curve: Curve | None = field(default=None, repr=False, compare=False)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return an interval for the population's quantile at any level; it costs nothing more.

        Notes
        -----
        **Privacy** Post-processing: computed from what was released and public numbers.
        """
        level = confidence(confidence_level)
        if self.curve is not None:
            return self.curve.interval(level, binomial_law(self.n, self.q))
        if abs(level - self.confidence) > 1e-12:
            raise ParameterError(
                f"confidence_level must be {self.confidence:g}: a result that was read from a "
                f"record has the interval of that level only."
            )
        return Interval(self.lower, self.upper, level)

    def at(self, q: float) -> QuantileEstimate:
        """Return another quantile from the same release; it costs nothing more.

        Each interval has its own level: several of them together cover less often.
        """
        share = number("q", q, above=0, below=1)
        if self.curve is None:
            raise ParameterError("a result that was read from a record has one quantile only.")
        interval = self.curve.interval(self.confidence, binomial_law(self.n, share))
        low, high = float(interval.low), float(interval.high)
        place = min(max(self.curve.place_of(share * self.n), low), high)
        return replace(self, quantile=place, lower=low, upper=high, q=share)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], spent: Budget) -> QuantileEstimate:
        """Read what :meth:`to_dict` wrote; of the cost it has only rounded numbers."""
        return cls(**known_values(cls, values), spent=spent)

    @property
    def method_id(self) -> str:
        """The function that made the result."""
        return "private_quantile"

    @property
    def heading(self) -> str:
        """What was estimated, from how many rows."""
        what = "median" if self.q == 0.5 else f"{self.q:g} quantile"
        level = f"{100 * self.confidence:.4g}%"
        return f"Private {what} of {self.n:,} rows, with its {level} interval"

    def estimate_table(self) -> EstimateTable:
        """Return the name, the quantile and its interval, as text."""
        name = "column 1" if self.column is None else printable(self.column)
        row = (name, f"{self.quantile:.6g}", f"({self.lower:.6g} to {self.upper:.6g})")
        return EstimateTable(self.heading, (row,))


def private_quantile(
    x: Any,
    q: float = 0.5,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    cells: int | None = None,
    noise: NoiseSource | None = None,
) -> QuantileEstimate:
    """Estimate a quantile of one column privately, with a confidence interval.

    Parameters
    ----------
    x : array, series or table of one column
        The sample.
    q : float
        Which quantile, above 0 and below 1; 0.5 is the median.
    bounds : pair, mapping of the name to a pair, or Schema
        Public bounds; values outside are clipped. The grid spans them. If a schema says that the
        column holds integers, and there are at most 65,536 of them, the grid is those.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        One minus the confidence of ``lower`` and ``upper``; other levels are free afterwards.
    cells : int, optional
        By default the rows are counted below few edges near the quantile, chosen privately. With a
        number, 2 to 8,192, they are counted below all edges of so many equal cells: more noise,
        and the same for ``at`` any other quantile.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    QuantileEstimate
        The quantile and its interval; ``confidence_interval(level)`` gives other levels, and
        ``at(q)`` other quantiles of the same release.

    Notes
    -----
    The interval covers with probability at least 1 - alpha for every population, atoms and ties
    included: the number of rows below the population's quantile is binomial, and the law of the
    noise is known. Where noise drowns the data the interval is that of the bounds.

    Where n epsilon is at least 150, a fourth of the budget chooses a window around the quantile by
    the exponential mechanism, and the rest counts rows in 20 or more cells, most of them within the
    window. Below that the rows are counted in up to 32 equal cells between the bounds.

    **Sensitivity** A replaced row moves the count below an edge by 1, and two counts of cells by 1
    on each level of a tree over them, times the rows of a person. Proof: docs/proofs/quantiles.md.

    **Privacy** The window and the counts together are (epsilon, delta)-private: an exponential
    mechanism on integers, and discrete Laplace noise. Everything else is computed from them.

    References
    ----------
    Drechsler, Globus-Harris, McMillan, Sarathy and Smith (2021), Nonparametric differentially
    private confidence intervals for the median.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=5000)
    >>> low, high = private_quantile(x, bounds=(0, 10), epsilon=1).confidence_interval(0.95)
    >>> bool(3 < low < high < 5)
    True
    """
    budget, level = Budget(epsilon, delta), 1 - number("alpha", alpha, above=0, below=1)
    share = number("q", q, above=0, below=1)
    checked_cells(cells)
    source = noise_source(noise)
    sample = one_numeric_column(x, bounds)
    if len(sample) < 2:
        raise DataError("x must have at least 2 rows.")
    n, moved = len(sample), rows_of_a_person(sample)
    grid = grid_of(sample, FINE_CELLS if cells is None else cells)
    (fine,) = cell_counts(sample, edges=grid.edges)
    if cells is None:
        target = Target(n, n * share, math.sqrt(n * share * (1 - share)), moved)
        below = count_below(fine, target, budget, source)
    else:
        below = count_below_all(fine, moved, budget, source)
    whole = QuantileEstimate(
        quantile=0.0,
        lower=0.0,
        upper=0.0,
        q=share,
        confidence=level,
        spent=budget,
        n=n,
        column=None if sample.names is None else sample.names[0],
        rows_per_person=sample.rows_per_person,
        simulated=source.simulated,
        curve=_curve(below, grid),
    )
    return whole.at(share)


def _curve(below: Below, grid: Grid) -> Curve:
    """Return the released counts, with the cells between edges: those that are not empty."""
    under = np.flatnonzero(np.diff(below.edges))
    first, last = below.edges[under], below.edges[under + 1]
    if grid.values is None:
        ends = grid.edges[first], grid.edges[last]
    else:
        ends = grid.values[first], grid.values[last - 1]
    noisy = below.counts, below.ones, below.halves, below.scale
    places, whole = grid.edges[below.edges], grid.values is not None
    return Curve(*noisy, places, *ends, under, under + 1, whole)


def private_median(
    x: Any,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    cells: int | None = None,
    noise: NoiseSource | None = None,
) -> QuantileEstimate:
    """Estimate the median of one column privately, with a confidence interval.

    Parameters
    ----------
    x, bounds, epsilon, delta, alpha, cells, noise
        As in :func:`privatest.private_quantile`.

    Returns
    -------
    QuantileEstimate
        As there, with q = 0.5.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.private_quantile`.

    **Privacy** As there.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).exponential(2.0, size=5000)
    >>> estimate = private_median(x, bounds=(0, 20), epsilon=1)
    >>> bool(abs(estimate.quantile - 2 * np.log(2)) < 0.5)
    True
    """
    return private_quantile(
        x,
        0.5,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        cells=cells,
        noise=noise,
    )
