"""Pictures of plans: power against what was asked for, a ranking of tests, what privacy costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from privatest.core.errors import ParameterError
from privatest.core.validation import one_of
from privatest.planning.plans import Plan, Prices, Recommendation
from privatest.planning.simulation import Power
from privatest.plots.style import MARKERS, colours, figure, finish, plain_logarithms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_plan", "plot_power", "plot_prices", "plot_recommendation"]

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
    axes = figure(6.4, 3.6).subplots() if axes is None else axes
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
    axes = figure(6.4, 3.6).subplots() if axes is None else axes
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
    axes = figure(6.4, 3.6).subplots() if axes is None else axes
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
    axes = figure(6.4, 1.2 + 0.3 * len(known)).subplots() if axes is None else axes
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
