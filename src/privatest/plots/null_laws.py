"""A noisy statistic against its law under the null hypothesis; the p-value is an area.

The law is that of the statistic and of its noise, and follows from public sizes and the budget.
What is drawn is checked: the area has to be the p-value that was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.results import Outcome
from privatest.mechanisms.lattice import noise_law
from privatest.methods.ks import one_sample_law, two_sample_law
from privatest.methods.signs import PairedShares
from privatest.numerics.ecdf import LATTICE, one_sample_width, two_sample_width
from privatest.numerics.laws import (
    Alternative,
    LatticeTulap,
    Law,
    hypergeometric_law,
    mann_whitney_law,
    sign_law,
    symmetry_law,
    wilcoxon_law,
)
from privatest.numerics.order import (
    mann_whitney_width,
    median_width,
    sign_width,
    signed_rank_width,
    symmetry_width,
)
from privatest.plots.style import colours, figure, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["has_null_law", "null_of", "plot_null_law"]

_BINS = 70
_AGREE = 1e-6


@dataclass(frozen=True, slots=True)
class Null:
    """Law, noise and scale of a released statistic, as the test has them.

    Attributes
    ----------
    law : Law
        Of the integer statistic.
    width, step : int
        How far it moves between neighbours, and how far apart its values are.
    unit, offset : float
        The statistic that people know is (integer + offset) / unit.
    sided : bool
        Whether the alternative decides what gets the noise; a distance has one side only.
    smaller : bool
        Whether the two-sided statistic is the smaller of S and its mirror image, and not a
        distance.
    noise : LatticeTulap or None
        Where it is not that of the whole budget.
    """

    law: Law
    width: int
    step: int = 1
    unit: float = 1.0
    offset: int = 0
    sided: bool = True
    smaller: bool = False
    noise: LatticeTulap | None = None


def _two(outcome: Outcome) -> tuple[int, int]:
    return outcome.sizes["n"], outcome.sizes["m"]


def _mann_whitney(outcome: Outcome) -> Null:
    n, m = _two(outcome)
    width = mann_whitney_width(n, m, outcome.adjacency)
    return Null(mann_whitney_law(n, m), width, 2, 2, n * m, smaller=True)


def _median(outcome: Outcome) -> Null:
    n, m = _two(outcome)
    width, total = median_width(n, m, outcome.adjacency), n + m
    return Null(hypergeometric_law(n, m), width, total, total, n * (total - total // 2))


def _ks_two(outcome: Outcome) -> Null:
    n, m = _two(outcome)
    one_sided = outcome.parameters["alternative"] != "two-sided"
    law = two_sample_law(outcome.parameters["statistic"], n, m, one_sided=one_sided)
    width = two_sample_width(n, m, outcome.adjacency)
    return Null(law, width, math.gcd(n, m), n * m, sided=False)


def _ks_one(outcome: Outcome) -> Null:
    n = outcome.sizes["n"]
    one_sided = outcome.parameters["alternative"] != "two-sided"
    law = one_sample_law(outcome.parameters["statistic"], n, one_sided=one_sided)
    return Null(law.scaled(LATTICE), one_sample_width(n), unit=n * LATTICE, sided=False)


def _sign(outcome: Outcome) -> Null:
    n, noise = _counted(outcome), _paired_noise(outcome, sign_width(), 2, ranks=False)
    total = int(outcome.estimates.get("nonzero", n))
    return Null(sign_law(n), sign_width(), 2, 2, total, smaller=True, noise=noise)


def _wilcoxon(outcome: Outcome) -> Null:
    n = _counted(outcome)
    width = signed_rank_width(max(n, 1))
    noise = _paired_noise(outcome, width, 4, ranks=True)
    return Null(wilcoxon_law(n), width, 4, 4, n * (n + 1), smaller=True, noise=noise)


def _counted(outcome: Outcome) -> int:
    return int(outcome.estimates.get("counted", outcome.sizes["n"]))


def _paired_noise(outcome: Outcome, width: int, step: int, *, ranks: bool) -> LatticeTulap | None:
    if "counted" not in outcome.estimates:
        return None
    return _paired_shares(outcome, ranks=ranks).noise(width, step)


def _paired_shares(outcome: Outcome, *, ranks: bool) -> PairedShares:
    return PairedShares.of(outcome.sizes["n"], _rows(outcome), outcome.spent, ranks=ranks)


def _rows(outcome: Outcome) -> int:
    return min(outcome.rows_per_person, max(1, sum(outcome.sizes.values())))


def _symmetry(outcome: Outcome) -> Null:
    n = outcome.sizes["n"]
    law = symmetry_law(n, outcome.parameters["statistic"])
    return Null(law, symmetry_width(), unit=n, sided=False)


_NULLS: Mapping[str, Callable[[Outcome], Null]] = {
    "mannwhitneyu": _mann_whitney,
    "median_test": _median,
    "ks_2samp": _ks_two,
    "ks_1samp": _ks_one,
    "sign_test": _sign,
    "wilcoxon": _wilcoxon,
    "symmetry_test": _symmetry,
}


@dataclass(frozen=True, slots=True)
class NoisyNull:
    """The law of the noisy statistic, in the units of the integer that got the noise."""

    null: Null
    noise: LatticeTulap
    alternative: Alternative
    noisy: float
    mirrored: bool = False

    def survival(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(statistic + noise >= place) under the null hypothesis."""
        law = self.null.law
        return np.array([law.pvalue(float(z), self.noise, self.alternative) for z in places])

    def shown(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return places in the units of the released statistic."""
        if self.mirrored:
            return (self.null.offset - places) / self.null.unit
        if self.alternative == "two-sided" or not self.null.sided:
            return places / self.null.unit
        sign = -1 if self.alternative == "less" else 1
        return (sign * places + self.null.offset) / self.null.unit


def has_null_law(outcome: Outcome) -> bool:
    """Whether the statistic was released, and its law under the null hypothesis is public."""
    known = outcome.function in _NULLS
    if outcome.function == "wilcoxon" and "counted" in outcome.estimates:
        known = not _paired_shares(outcome, ranks=True).ties  # its variance depends on ties
    return known and outcome.statistic is not None and "n_permutations" not in outcome.parameters


def null_of(outcome: Outcome) -> NoisyNull:
    """Return the law that the p-value comes from, from public numbers alone."""
    if not has_null_law(outcome):
        raise ParameterError(
            "outcome must be that of a test that releases a statistic whose law under the null "
            "hypothesis is public: by ranks, by signs, or of Kolmogorov–Smirnov type."
        )
    null = _NULLS[outcome.function](outcome)
    width = null.width * _rows(outcome)
    given = str(outcome.parameters.get("alternative", "two-sided")) if null.sided else "greater"
    alternative = cast(Alternative, given)
    statistic = cast(float, outcome.statistic)
    # documents of earlier versions have no names, and distances
    mirrored = null.smaller and alternative == "two-sided" and bool(outcome.statistic_name)
    sign = -1 if alternative == "less" else 1
    shifted = 0 if alternative == "two-sided" or not null.sided else null.offset
    noisy = sign * (statistic * null.unit - shifted)
    if mirrored:
        noisy = null.offset - statistic * null.unit
    for mechanism in ("auto", "tulap", "laplace"):  # which one a caller chose is not recorded
        noise = null.noise or noise_law(width, outcome.spent, cast(Any, mechanism), step=null.step)
        for place in (noisy, noisy - 0.5):  # discrete Laplace noise is an integer
            found = NoisyNull(null, noise, alternative, place, mirrored)
            area = float(found.survival(np.array([place]))[0])
            if abs(area - outcome.pvalue) <= _AGREE + 1e-3 * outcome.pvalue:
                return found
    raise ParameterError("outcome cannot be drawn: its p-value is not that of a law known here.")


def plot_null_law(outcome: Outcome, *, axes: Axes | None = None) -> Axes:
    """Draw the released statistic against the law that it has if the null hypothesis is true.

    Parameters
    ----------
    outcome : Outcome
        Of a test by ranks, by signs, or of Kolmogorov–Smirnov type, with public groups.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The steps are exact probabilities of statistic and noise together; the filled area beyond
        the released value is the p-value.
    """
    found = null_of(outcome)
    edges = _edges(found)
    masses = np.clip(-np.diff(found.survival(edges)), 0, None)
    heights, places = masses / np.diff(edges), found.shown(edges)
    if places[0] > places[-1]:  # "less": what counts is on the left
        heights, places, edges = heights[::-1], places[::-1], edges[::-1]
    axes = figure(6.4, 3.4).subplots() if axes is None else axes
    theme = colours()
    beyond = np.minimum(edges[:-1], edges[1:]) >= found.noisy
    axes.stairs(heights, places, color=theme.main, lw=1.6, label="if the hypothesis is true")
    axes.stairs(
        np.where(beyond, heights, 0.0),
        places,
        fill=True,
        facecolor=theme.fill,
        edgecolor=theme.main,
        hatch="///",
        linewidth=0,
        label=f"p-value {outcome.pvalue:.3g}",
    )
    released = cast(float, outcome.statistic)
    word = "rejected" if outcome.reject else "not rejected"
    said = f"released: {word}"
    axes.axvline(released, color=theme.answer, linewidth=2, linestyle="--", label=said)
    axes.set_ylim(bottom=0)
    axes.set_yticks([])
    axes.set(xlabel="private statistic", ylabel="probability", title=outcome.method)
    axes.legend(loc="best")
    return finish(axes)


def _edges(found: NoisyNull) -> NDArray[np.float64]:
    """Return where the law has its mass, and the released value, in even steps."""
    law = found.null.law
    values = np.concatenate([law.low, law.values])
    weights = np.concatenate([law.masses, law.masses])
    if found.alternative == "two-sided":
        values = np.abs(values)
    elif found.alternative == "less":
        values = -values
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    low, high = values[order][np.searchsorted(below, [0.001, 0.999])]
    reach = abs(float(found.noise.quantile(0.001)))
    ends = min(low - reach, found.noisy), max(high + reach, found.noisy)
    # the released value is an edge: what is filled is the p-value, and nothing else
    step = (ends[1] - ends[0]) / _BINS
    below_it = math.ceil((found.noisy - ends[0]) / step) + 1
    above_it = math.ceil((ends[1] - found.noisy) / step) + 1
    return np.asarray(found.noisy + step * np.arange(-below_it, above_it + 1.0))
