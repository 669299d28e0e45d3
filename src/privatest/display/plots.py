"""Pictures of results, plans and budgets, drawn with matplotlib (extra "plot").

Only released and public numbers are drawn: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.results import Decision, Outcome
from privatest.core.text import ESTIMATES, numbered
from privatest.core.validation import integer_at_least, one_of, printable
from privatest.display.release_plots import plot_marginals
from privatest.display.style import (
    MARKERS,
    colours,
    figure,
    finish,
    need_matplotlib,
    plain_logarithms,
)
from privatest.ledger.state import Entry
from privatest.mechanisms.lattice import Mechanism, PublicNull, noise_law
from privatest.methods.ks import one_sample_null, two_sample_null
from privatest.methods.locations import distinguishing_features
from privatest.methods.mean_inference import MeanEstimate
from privatest.methods.quantiles import QuantileEstimate
from privatest.methods.ranks import mann_whitney_null, median_null
from privatest.methods.signs import PairedShares, sign_null, signed_rank_null, symmetry_null
from privatest.numerics.laws import Alternative, LatticeTulap
from privatest.planning.plans import Plan, Prices, Recommendation
from privatest.planning.simulation import Power
from privatest.requests.results import ColumnResults
from privatest.synthetic import SyntheticData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_axes(width: float, height: float) -> Axes:
    """Return axes on a new figure, in inches."""
    axes: Axes = figure(width, height).subplots()
    return axes


def plot_intervals(outcome: Outcome, *, axes: Axes | None = None) -> Axes:
    """Draw each private estimate of a test with its interval.

    Parameters
    ----------
    outcome : Outcome
        Of a test that estimates something: a correlation, shares, means of groups, a shift.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    rows = outcome.estimate_rows
    if not rows:
        raise ParameterError("outcome must have estimates with intervals.")
    kind = ESTIMATES[outcome.estimated]
    names = [row.name or outcome.estimated.replace("_", " ") for row in rows]
    axes = axes or new_axes(6.4, 1.5 + 0.36 * len(rows))
    null = outcome.parameters.get("p") if outcome.estimated == "proportion" else kind.null
    draw_intervals(axes, names, *estimate_columns(outcome), zero=null)
    several, plural = ("simultaneous ", "s") if len(rows) > 1 else ("", "")
    level = f"{100 * outcome.interval_level:.4g}%"
    axes.set_xlabel(f"private {kind.what} ({several}{level} interval{plural})")
    axes.set_title(f"p-value {outcome.pvalue:.4g}")
    return finish(axes, grid="x")


def estimate_columns(outcome: Outcome) -> tuple[Any, Any, Any]:
    """Return the values and both ends of all estimates."""
    rows = outcome.estimate_rows
    columns = zip(*((row.value, *row.interval) for row in rows), strict=True)
    middle, lower, upper = map(np.array, columns)
    return middle, lower, upper


def plot_quantile(estimate: QuantileEstimate, *, axes: Axes | None = None) -> Axes:
    """Draw a private quantile with its interval."""
    axes = axes or new_axes(6.4, 1.7)
    name = estimate.column or "quantile"
    values = (np.array([each]) for each in (estimate.quantile, estimate.lower, estimate.upper))
    draw_intervals(axes, [name], *values)
    which = "median" if estimate.q == 0.5 else f"{estimate.q:g}-quantile"
    axes.set_xlabel(f"private {which} ({100 * estimate.confidence:.4g}% interval)")
    return finish(axes, grid="x")


def draw_intervals(
    axes: Axes, names: Any, middle: Any, lower: Any, upper: Any, *, zero: float | None = None
) -> None:
    """Draw a row for each estimate: a point and a bar, an arrow where the bar does not end."""
    theme = colours()
    places = np.arange(len(middle))
    finite = np.concatenate([middle, lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    span = float(np.ptp(finite)) or max(abs(float(finite[0])), 1.0)
    left, right = float(finite.min()) - 0.15 * span, float(finite.max()) + 0.15 * span
    if zero is not None:
        clear = (lower > zero) | (upper < zero)
        axes.axvline(zero, color=theme.soft, linewidth=1, linestyle=":")
        left, right = min(left, zero - 0.05 * span), max(right, zero + 0.05 * span)
    else:
        clear = np.zeros(len(middle), dtype=bool)
    for place, value, low, high, away in zip(places, middle, lower, upper, clear, strict=True):
        colour, marker = (theme.answer, "D") if away else (theme.main, "o")
        ends = max(low, left), min(high, right)
        axes.plot(ends, [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        for end, known, arrow in ((ends[0], low, "<"), (ends[1], high, ">")):
            axes.plot([end], [place], "|" if np.isfinite(known) else arrow, color=colour, ms=9)
        axes.plot([value], [place], marker, color=colour, ms=7)
    axes.set_yticks(places, [printable(str(name)) for name in names])
    axes.set_ylim(len(middle) - 0.4, -0.6)
    axes.set_xlim(left, right)


def plot_differences(outcome: Outcome, *, axes: Axes | None = None) -> Axes:
    """Draw the private difference of each column with its simultaneous interval.

    Parameters
    ----------
    outcome : Outcome
        Of :func:`privatest.hotelling_test` or :func:`privatest.ttest_ind`.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Differences are in private standard deviations, so that columns of all units fit; the
        numbers beside the names are in the units of the data.
    """
    released = outcome.estimates
    if outcome.estimated != "difference":
        raise ParameterError("outcome must come from hotelling_test or ttest_ind.")
    middle, lower, upper = estimate_columns(outcome)
    matrix = np.atleast_2d(released.get("covariance", released.get("variance")))
    variances = np.diagonal(matrix)
    # a column whose private variance is 0 is drawn in its own units
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    names = [row.name or "difference" for row in outcome.estimate_rows]
    axes = axes or new_axes(6.8, 1.5 + 0.36 * len(middle))
    labels = [f"{name}: {value:.3g}" for name, value in zip(names, middle, strict=True)]
    draw_intervals(axes, labels, middle / units, lower / units, upper / units, zero=0.0)
    confidence = f"{100 * outcome.interval_level:.4g}%"
    axes.set_xlabel(f"private difference of means, x - y, in standard deviations ({confidence})")
    axes.set_title(f"p-value {outcome.pvalue:.4g}")
    return finish(axes, grid="x")


def plot_region(result: Outcome | MeanEstimate, *, axes: Axes | None = None) -> Axes:
    """Draw the confidence region of two means, or of two differences of means: an ellipse.

    Parameters
    ----------
    result : Outcome or MeanEstimate
        Of :func:`privatest.hotelling_test` or :func:`privatest.private_mean`, of two columns.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The ellipse has the stated level; the box has the simultaneous intervals. Differences
        are tested against the point 0.
    """
    means = isinstance(result, MeanEstimate)
    if isinstance(result, MeanEstimate):
        middle, lower, upper = result.mean, result.lower, result.upper
        shape, radius, centre = result.region_shape, result.region_radius, result.region_centre
        level, names = result.confidence, result.columns
    else:
        released, level = result.estimates, result.interval_level
        shape = np.atleast_2d(released.get("region_shape", np.empty((0, 0))))
        radius, centre = released.get("region_radius", 0.0), released.get("region_centre")
        names = result.parameters.get("columns")
    if shape.shape != (2, 2):
        raise ParameterError("result must be about two columns: only their region is a picture.")
    if isinstance(result, Outcome):
        middle, lower, upper = estimate_columns(result)
    axes = axes or new_axes(5.2, 4.4)
    _ellipse(
        axes, middle if centre is None else centre, shape, radius, f"{100 * level:.4g}% region"
    )
    _box(axes, lower, upper)
    theme = colours()
    axes.plot(*middle, "D", color=theme.answer, ms=7, label="released")
    if not means:
        axes.plot(0, 0, "+", color=theme.ink, ms=12, mew=2, label="no difference")
    what = "private mean" if means else "private difference"
    first, second = names or numbered(2)
    axes.set(xlabel=f"{what} of {first}", ylabel=f"{what} of {second}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    return finish(axes, grid="both")


def _ellipse(axes: Axes, centre: Any, shape: Any, radius: float, words: str) -> None:
    values, vectors = np.linalg.eigh(np.asarray(shape, dtype=np.float64))
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = np.vstack([np.cos(turn), np.sin(turn)])
    axis = np.sqrt(np.clip(values, 0, None) * max(radius, 0.0))
    edge = np.asarray(centre)[:, None] + vectors @ (axis[:, None] * circle)
    theme = colours()
    axes.fill(edge[0], edge[1], facecolor=theme.fill, edgecolor=theme.main, lw=2, label=words)


def _box(axes: Axes, lower: Any, upper: Any) -> None:
    corners = [(lower[0], lower[1]), (upper[0], lower[1]), (upper[0], upper[1])]
    corners += [(lower[0], upper[1]), (lower[0], lower[1])]
    x, y = zip(*corners, strict=True)
    axes.plot(x, y, linestyle=":", color=colours().soft, label="simultaneous intervals")


def plot_means(estimate: MeanEstimate) -> Figure:
    """Draw each private mean with its simultaneous interval, every column in its own units."""
    count = len(estimate.mean)
    drawn = figure(6.8, 1.2 + 0.72 * count)
    all_axes: Any = np.atleast_1d(drawn.subplots(count))
    names: Sequence[str] = estimate.columns or numbered(count)
    for index, (axes, name) in enumerate(zip(all_axes, names, strict=True)):
        one = slice(index, index + 1)
        own = (np.asarray(each)[one] for each in (estimate.mean, estimate.lower, estimate.upper))
        draw_intervals(axes, [name], *own)
        finish(axes)
    several, plural = ("simultaneous ", "s") if count > 1 else ("", "")
    all_axes[-1].set_xlabel(
        f"private {estimate.estimated} ({several}{100 * estimate.confidence:.4g}% interval{plural})"
    )
    return drawn


_LONGEST_LABEL = 3  # coordinates that are written out


def plot_features(outcome: Outcome, *, most: int = 20, axes: Axes | None = None) -> Axes:
    """Draw the clearest differences of an embedding test, one row for each location.

    Parameters
    ----------
    outcome : Outcome
        Of :func:`me_test` or :func:`scf_test` with ``release="moments"``.
    most : int
        Locations to draw.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Points are private differences. The thick bar is two standard deviations of the privacy
        noise each way, the thin one of noise and sampling.
    """
    features = distinguishing_features(outcome)[: integer_at_least("most", most, 1)]
    axes = axes or new_axes(6.8, 1.2 + 0.3 * len(features))
    theme = colours()
    bar: dict[str, Any] = {"ecolor": theme.soft}
    places = range(len(features))
    differences = [feature.difference for feature in features]
    for width, bars in (
        (4.0, [2 * feature.noise for feature in features]),
        (1.0, [2 * feature.error for feature in features]),
    ):
        axes.errorbar(differences, places, xerr=bars, fmt="none", elinewidth=width, **bar)
    axes.plot(differences, places, "o", color=theme.main, ms=7)
    axes.axvline(0.0, color=theme.soft, linewidth=1, linestyle=":")
    axes.set_yticks(list(places), [_label(feature.place) for feature in features])
    axes.set_ylim(len(features) - 0.5, -0.5)
    axes.set_xlabel("private difference of means, x - y (thick: noise, thin: with sampling)")
    axes.set_title(f"p-value {outcome.pvalue:.4g}")
    return finish(axes, grid="x")


def _label(place: tuple[Any, ...]) -> str:
    shown = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in place]
    more = ", …" if len(shown) > _LONGEST_LABEL else ""
    return f"({', '.join(shown[:_LONGEST_LABEL])}{more})"


# Null distributions of noisy statistics. They follow from public sizes and the budget. The picture
# is checked: the area beyond the statistic must be the p-value that was released.


_BINS = 70
_AGREE = 1e-6


def _null_law(outcome: Outcome) -> PublicNull:
    """Return the null distribution of a test's statistic, from public numbers."""
    n, m = outcome.sizes["n"], outcome.sizes.get("m", 0)
    parameters, estimates, adjacency = outcome.parameters, outcome.estimates, outcome.adjacency
    counted = int(estimates.get("counted", n))
    one_sided = parameters.get("alternative", "two-sided") != "two-sided"
    match outcome.function:
        case "mannwhitneyu":
            return mann_whitney_null(n, m, adjacency)
        case "median_test":
            return median_null(n, m, adjacency)
        case "ks_2samp":
            return two_sample_null(n, m, parameters["statistic"], adjacency, one_sided=one_sided)
        case "ks_1samp":
            return one_sample_null(n, parameters["statistic"], one_sided=one_sided)
        case "symmetry_test":
            return symmetry_null(n, parameters["statistic"])
        case "sign_test":
            return sign_null(counted, int(estimates.get("nonzero", counted)))
        case _:
            return signed_rank_null(counted)


def _paired_shares(outcome: Outcome) -> PairedShares | None:
    """Return how the budget of a test of pairs was shared, where it counted them first."""
    if "counted" not in outcome.estimates:
        return None
    ranks = outcome.function == "wilcoxon"
    return PairedShares.of(outcome.sizes["n"], _rows(outcome), outcome.spent, ranks=ranks)


def _rows(outcome: Outcome) -> int:
    return min(outcome.rows_per_person, max(1, sum(outcome.sizes.values())))


_DISTANCES = {"ks_2samp", "ks_1samp", "symmetry_test"}  # released as they are, for all sides
_WITH_NULL_LAW = _DISTANCES | {"mannwhitneyu", "median_test", "sign_test", "wilcoxon"}


@dataclass(frozen=True, slots=True)
class NoisyNull:
    """The law of the noisy statistic, in the units of the integer that got the noise."""

    null: PublicNull
    noise: LatticeTulap
    alternative: Alternative
    noisy: float

    def survival(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(statistic + noise >= place) under the null hypothesis."""
        law = self.null.law
        return np.array([law.pvalue(float(z), self.noise, self.alternative) for z in places])

    def shown(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return places in the units of the released statistic."""
        return np.asarray(self.null.shown(places, self.alternative))


def has_null_law(outcome: Outcome) -> bool:
    """Return whether the statistic was released and its null distribution is public."""
    if outcome.function not in _WITH_NULL_LAW or outcome.statistic is None:
        return False
    shares = _paired_shares(outcome)
    if outcome.function == "wilcoxon" and shares is not None and shares.ties:
        return False  # its variance depends on the ties
    return "n_permutations" not in outcome.parameters


def null_of(outcome: Outcome) -> NoisyNull:
    """Return the law that the p-value comes from, from public numbers alone."""
    if not has_null_law(outcome):
        raise ParameterError(
            "outcome must be that of a test that releases a statistic whose law under the null "
            "hypothesis is public: by ranks, by signs, or of Kolmogorov–Smirnov type."
        )
    null = _null_law(outcome)
    # documents of earlier versions have no names, and distances instead of the smaller one
    null = replace(null, smaller=null.smaller and bool(outcome.statistic_name))
    distance = outcome.function in _DISTANCES
    side = "greater" if distance else outcome.parameters.get("alternative", "two-sided")
    alternative = cast(Alternative, side)
    scaled = cast(float, outcome.statistic) * null.unit
    if alternative == "two-sided":
        noisy = null.offset - scaled if null.smaller else scaled
    else:
        noisy = (-1 if alternative == "less" else 1) * (scaled - null.offset)
    rows, shares = _rows(outcome), _paired_shares(outcome)
    mechanisms: tuple[Mechanism, ...] = ("auto", "tulap", "laplace")  # the choice is not recorded
    for mechanism in mechanisms:
        if shares is None:
            noise = noise_law(null.width * rows, outcome.spent, mechanism, step=null.step)
        else:
            noise = shares.noise(null.width, null.step)
        for place in (noisy, noisy - 0.5):  # discrete Laplace noise is an integer
            found = NoisyNull(null, noise, alternative, place)
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
    if places[0] > places[-1]:  # "less": the p-value is the area on the left
        heights, places, edges = heights[::-1], places[::-1], edges[::-1]
    axes = axes or new_axes(6.4, 3.4)
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
    label = f"released: {'rejected' if outcome.reject else 'not rejected'}"
    axes.axvline(released, color=theme.answer, linewidth=2, linestyle="--", label=label)
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


# Plans: power curves, a ranking of tests, the price of privacy.


_PEOPLE = "people (in each group, or in all)"
_LABELS = {"n": _PEOPLE, "power": _PEOPLE, "effect": "effect", "epsilon": "epsilon"}


def plot_plan(plan: Plan, *, axes: Axes | None = None) -> Axes:
    """Draw power against what was asked for: people, effect or epsilon.

    Parameters
    ----------
    plan : Plan
        Of :mod:`privatest.planning`.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Where powers were simulated, the band is their 95% interval.
    """
    if not plan.curve:
        raise ParameterError("plan has no curve to draw: a single power was simulated.")
    axes = axes or new_axes(6.4, 3.6)
    theme = colours()
    values, powers = zip(*plan.curve, strict=True)
    simulated = not plan.source.startswith("tables")
    style = {"marker": "o", "linestyle": ":"} if simulated else {}
    axes.plot(values, powers, color=theme.main, linewidth=2, label=plan.test, **style)  # type: ignore[arg-type]
    if len(plan.band) == len(values):
        low, high = zip(*plan.band, strict=True)
        axes.fill_between(values, low, high, color=theme.main, alpha=0.18, linewidth=0)
    answer = {"n": plan.n[0], "power": plan.n[0], "effect": plan.effect, "epsilon": plan.epsilon}
    at = answer[plan.wanted]
    axes.plot([at], [plan.power], "D", color=theme.answer, ms=8, label="the answer", zorder=4)
    if plan.low is not None and plan.high is not None:
        axes.vlines(at, plan.low, plan.high, color=theme.answer, linewidth=2)
    if plan.curve_without_noise:
        bare = zip(*plan.curve_without_noise, strict=True)
        axes.plot(*bare, color=theme.soft, linestyle="--", lw=2, label="without noise", zorder=1)
    if plan.target is not None:
        axes.axhline(plan.target, color=theme.soft, linewidth=0.8)
    if plan.wanted != "effect":
        plain_logarithms(axes)
    axes.set(xlabel=_LABELS[plan.wanted], ylabel="power", ylim=(0, 1.02), title=plan.sentence)
    axes.title.set_wrap(True)
    axes.legend()
    finish(axes, grid="y")
    axes.title.set_fontsize(9)  # a whole sentence
    return axes


def plot_power(
    powers: Sequence[Power],
    against: Literal["n", "epsilon", "effect"] = "n",
    *,
    effects: Sequence[float] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw simulated powers with their intervals, a line for each test.

    Parameters
    ----------
    powers : sequence of Power
        Of :func:`privatest.simulation.power`, at several sizes, epsilons or effects.
    against : {"n", "epsilon", "effect"}
        What differs between them.
    effects : sequence of float, optional
        The effect of each; a power knows it only in words.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    one_of("against", against, ("n", "epsilon", "effect"))
    if not powers:
        raise ParameterError("powers must not be empty.")
    if (against == "effect") != (effects is not None) or len(effects or powers) != len(powers):
        raise ParameterError("effects must be given with against='effect', one for each power.")
    axes = axes or new_axes(6.4, 3.6)
    theme = colours()
    places = effects or [p.sizes[0] if against == "n" else p.epsilon for p in powers]
    tests = list(dict.fromkeys(power.test for power in powers))
    lines = ("-", "--", "-.", ":")
    shades = (theme.main, theme.answer, theme.third, theme.soft)
    for index, test in enumerate(tests):
        own = sorted(
            (place, power.rate, power.low, power.high)
            for place, power in zip(places, powers, strict=True)
            if power.test == test
        )
        x, rate, low, high = zip(*own, strict=True)
        colour, marker = shades[index % len(shades)], MARKERS[index % len(MARKERS)]
        style = lines[index % len(lines)]
        axes.plot(x, rate, linestyle=style, marker=marker, color=colour, label=test)
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    if against != "effect":
        plain_logarithms(axes)
    runs = sorted({power.runs for power in powers})
    counted = f"{runs[0]:,}" if len(runs) == 1 else f"{runs[0]:,} to {runs[-1]:,}"
    axes.set(xlabel=_LABELS[against], ylabel="power", ylim=(0, 1.02))
    axes.set_title(f"{counted} simulated studies at each point; bands: 95% intervals")
    axes.legend()
    return finish(axes, grid="y")


def plot_prices(prices: Prices, *, axes: Axes | None = None) -> Axes:
    """Draw the people that a test needs over epsilon, and those that it needs without noise.

    Parameters
    ----------
    prices : Prices
        Of :func:`privatest.planning.price_of_privacy`.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    axes = axes or new_axes(6.4, 3.6)
    theme = colours()
    epsilons, people = zip(*prices.points, strict=True)
    axes.plot(epsilons, people, "o-", color=theme.main, linewidth=2, label=prices.test)
    if prices.without_noise is not None:
        bare = prices.without_noise
        axes.axhline(bare, color=theme.soft, linestyle="--", label=f"without noise: {bare:,}")
        axes.fill_between(epsilons, bare, people, color=theme.fill, alpha=0.6, linewidth=0)
    plain_logarithms(axes, both=True)
    axes.set_ylim(min(people[-1], prices.without_noise or people[-1]) / 1.5, 1.5 * people[0])
    axes.set(xlabel="epsilon", ylabel=_PEOPLE, title=prices.sentence)
    axes.legend()
    finish(axes, grid="y")
    axes.title.set_fontsize(9)
    return axes


def plot_recommendation(ranking: Recommendation, *, axes: Axes | None = None) -> Axes:
    """Draw the power to expect of each test, the best at the top."""
    known = [(c.method, c.power) for c in ranking.choices if c.power is not None]
    if not known:
        raise ParameterError("ranking has no powers to draw: the tables do not have these tests.")
    axes = axes or new_axes(6.4, 1.2 + 0.3 * len(known))
    theme = colours()
    names, powers = zip(*known, strict=True)
    bars = axes.barh(range(len(known)), powers, color=theme.fill, edgecolor=theme.main)
    bars[0].set(facecolor=theme.answer, edgecolor=theme.answer)
    axes.set_yticks(range(len(known)), names)
    axes.invert_yaxis()
    for place, power in enumerate(powers):
        axes.text(power + 0.01, place, f"{power:.2f}", va="center", color=theme.ink, fontsize=9)
    what = ranking.looking_for.replace("_", " ")
    much = "" if ranking.effect is None else f" of {ranking.effect:.3g}"
    title = f"{what}{much}, n = {ranking.sizes[0]:,}, epsilon {ranking.epsilon:g}"
    axes.set(xlim=(0, 1.1), xlabel="expected power", title=title)
    return finish(axes)


_LEAST = 1e-4  # smaller ones are drawn at the end of the scale


def plot_pvalues(outcomes: Mapping[str, Outcome], *, axes: Axes | None = None) -> Axes:
    """Draw private p-values on a logarithmic scale, a row for each test.

    Parameters
    ----------
    outcomes : mapping of str to Outcome
        Results by their names; at the same level.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Left of the level the hypothesis is rejected.
    """
    alpha = next(iter(outcomes.values())).alpha
    least = min(_LEAST, alpha / 10)
    axes = axes or new_axes(6.4, 1.1 + 0.36 * len(outcomes))
    theme = colours()
    places = np.arange(len(outcomes))
    values = np.array([max(each.pvalue, least) for each in outcomes.values()])
    rejected = np.array([each.reject for each in outcomes.values()])
    axes.axvspan(least / 2, alpha, color=theme.fill, alpha=0.6, linewidth=0)
    axes.axvline(alpha, color=theme.ink, linewidth=1, linestyle="--", label=f"level {alpha:g}")
    for chosen, colour, marker, words in (
        (rejected, theme.answer, "D", "rejected"),
        (~rejected, theme.main, "o", "not rejected"),
    ):
        if chosen.any():
            axes.plot(values[chosen], places[chosen], marker, color=colour, ms=8, label=words)
    axes.set_xscale("log")
    axes.set_xlim(least / 2, 1.4)
    axes.set_ylim(len(outcomes) - 0.4, -0.6)
    axes.set_yticks(places, [printable(name) for name in outcomes])
    axes.set_xlabel("private p-value")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    return finish(axes)


def plot_budget(
    entries: Sequence[Entry], limit: float | None = None, *, axes: Axes | None = None
) -> Axes:
    """Draw the sum of epsilons over time; what failed is spent too, and is marked.

    Parameters
    ----------
    entries : sequence of Entry
        The history of one data set, as ``ledger.history(name, last=...)`` gives it.
    limit : float, optional
        The whole budget, drawn as a line.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The plain sum of epsilons. Where a ledger composes tightly, less than that is spent.
    """
    ends = {each.body["closes"]: each.kind for each in entries if "closes" in each.body}
    charges = sorted((e for e in entries if e.kind == "reserved"), key=lambda e: e.sequence)
    if not charges:
        raise ParameterError("entries must have a charge to draw: nothing was spent yet.")
    times: Any = [datetime.fromisoformat(each.time) for each in charges]
    sums: list[float] = []
    for each in charges:
        sums.append((sums[-1] if sums else 0.0) + float(each.body.get("epsilon") or 0))
    answered = [ends.get(each.body.get("opens")) == "committed" for each in charges]
    axes = axes or new_axes(6.4, 3.2)
    theme = colours()
    axes.step([times[0], *times], [0.0, *sums], where="post", color=theme.main, linewidth=2)
    for wanted, marker, colour, words in (
        (True, "o", theme.main, "answered"),
        (False, "X", theme.answer, "failed or unfinished"),
    ):
        chosen = [index for index, own in enumerate(answered) if own == wanted]
        if chosen:
            at: Any = [times[index] for index in chosen]
            axes.plot(at, [sums[i] for i in chosen], marker, color=colour, ms=7, label=words)
    if limit is not None:
        axes.axhline(limit, color=theme.ink, linestyle="--", linewidth=1, label="whole budget")
    # charges of one moment are drawn in the middle of a minute
    margin = max(0.05 * (times[-1] - times[0]), timedelta(seconds=30))
    axes.set_xlim(times[0] - margin, times[-1] + margin)
    axes.set_ylim(0, 1.1 * max(limit or 0.0, sums[-1]))
    axes.set(ylabel="epsilon, added up", title=f"{charges[0].dataset}: {len(charges)} requests")
    axes.legend()
    _dates(axes)
    return finish(axes, grid="y")


def _dates(axes: Axes) -> None:
    """Label times with no more words than they need."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415

    locator = AutoDateLocator(maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


# The plot of each kind of result.


def draw(result: Any, *, axes: Axes | None = None) -> Axes | Figure:
    """Draw a result by the plot of its kind, or say why it has none.

    Parameters
    ----------
    result : object
        A result of a test, an estimate, a release, a plan or a ranking.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    need_matplotlib()
    if isinstance(result, Decision) and not isinstance(result, Outcome):
        raise ParameterError(
            'There is nothing to draw: only a decision was released. release="pvalue" gives a '
            "p-value too, for a little more noise."
        )
    one_part = _picture_of(result) if isinstance(result, Outcome) else _ONE_PART.get(type(result))
    if one_part is not None:
        return one_part(result, axes=axes)
    several: Callable[..., Figure] | None = _SEVERAL_PARTS.get(type(result))
    if several is None:
        raise ParameterError(f"There is nothing to draw of {type(result).__name__}.")
    if axes is not None:
        raise ParameterError("axes must be left out: this picture has several parts.")
    return several(result)


def _picture_of(outcome: Outcome) -> Callable[..., Axes]:
    """Return what draws the outcome of a test: estimates, else its statistic, else its p-value."""
    if outcome.estimated == "feature_differences":
        return plot_features
    if outcome.estimated == "difference":
        two_columns = len(outcome.estimates.get("region_shape", ())) == 2
        return plot_region if two_columns else plot_differences
    if outcome.estimate_rows:
        return plot_intervals
    if has_null_law(outcome):
        return plot_null_law
    return lambda shown, axes: plot_pvalues({"this test": shown}, axes=axes)


_ONE_PART: dict[type, Callable[..., Axes]] = {
    Plan: plot_plan,
    Recommendation: plot_recommendation,
    Prices: plot_prices,
    QuantileEstimate: plot_quantile,
    Power: lambda shown, axes: plot_power([shown], axes=axes),
    ColumnResults: lambda shown, axes: plot_pvalues(shown.columns, axes=axes),
}
_SEVERAL_PARTS: dict[type, Callable[..., Figure]] = {
    MeanEstimate: plot_means,
    SyntheticData: plot_marginals,
}
