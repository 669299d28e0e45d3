"""Pictures of plans: power against what was asked for, and a ranking of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privatest.core.errors import ParameterError
from privatest.planning.answers import Plan, Recommendation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_plan", "plot_recommendation"]

# Okabe and Ito's colours: told apart by the colour-blind, on white and on black, and in print.
_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#808080"
_LABELS = {
    "n": "people (in each group, or in all)",
    "power": "people (in each group, or in all)",
    "effect": "effect",
    "epsilon": "epsilon",
}


def plot_plan(plan: Plan, *, axes: Axes | None = None) -> Axes:
    """Draw power against what was asked for: people, effect or epsilon.

    Parameters
    ----------
    plan : Plan
        Of :mod:`privatest.planning`.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    if not plan.curve:
        raise ParameterError("plan has no curve to draw: a single power was simulated.")
    axes = _figure(3.6).subplots() if axes is None else axes
    values, powers = zip(*plan.curve, strict=True)
    simulated = not plan.source.startswith("tables")
    style = {"marker": "o", "linestyle": ":"} if simulated else {}
    axes.plot(values, powers, color=_BLUE, linewidth=2, label=plan.test, **style)  # type: ignore[arg-type]
    answer = {"n": plan.n[0], "power": plan.n[0], "effect": plan.effect, "epsilon": plan.epsilon}
    at = answer[plan.wanted]
    axes.plot([at], [plan.power], marker="D", color=_ORANGE, linestyle="none", label="the answer")
    if plan.low is not None and plan.high is not None:
        axes.vlines(at, plan.low, plan.high, color=_ORANGE, linewidth=2)
    if plan.curve_without_noise:
        bare = zip(*plan.curve_without_noise, strict=True)
        axes.plot(*bare, color=_GREY, linestyle="--", linewidth=2, label="without noise", zorder=1)
    if plan.target is not None:
        axes.axhline(plan.target, color=_GREY, linewidth=0.8)
    if plan.wanted != "effect":
        _plain_logarithms(axes)
    axes.set(xlabel=_LABELS[plan.wanted], ylabel="power", ylim=(0, 1.02), title=plan.sentence)
    axes.title.set_fontsize(9)
    axes.title.set_wrap(True)
    axes.legend(frameon=False)
    return axes


def plot_recommendation(ranking: Recommendation, *, axes: Axes | None = None) -> Axes:
    """Draw the power to expect of each test, the best at the top."""
    known = [(c.method, c.power) for c in ranking.choices if c.power is not None]
    if not known:
        raise ParameterError("ranking has no powers to draw: the tables do not have these tests.")
    axes = _figure(1.2 + 0.3 * len(known)).subplots() if axes is None else axes
    names, powers = zip(*known, strict=True)
    colours = [_ORANGE] + [_BLUE] * (len(known) - 1)
    axes.barh(range(len(known)), powers, color=colours)
    axes.set_yticks(range(len(known)), names)
    axes.invert_yaxis()
    for place, power in enumerate(powers):
        axes.text(power + 0.01, place, f"{power:.2f}", va="center")
    what = ranking.looking_for.replace("_", " ")
    much = "" if ranking.effect is None else f" of {ranking.effect:.3g}"
    title = f"{what}{much}, n = {ranking.sizes[0]:,}, epsilon {ranking.epsilon:g}"
    axes.set(xlim=(0, 1.1), xlabel="expected power", title=title)
    return axes


def _plain_logarithms(axes: Axes) -> None:
    """Draw on a logarithmic axis, with numbers as people write them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def _figure(height: float) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(6, height), layout="constrained")
