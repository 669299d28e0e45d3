"""What was spent of a budget over time, from a ledger's history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError
from privatest.ledger.state import Entry
from privatest.plots.style import colours, figure, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_budget"]


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
    axes = figure(6.4, 3.2).subplots() if axes is None else axes
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
