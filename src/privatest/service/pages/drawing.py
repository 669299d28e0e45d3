"""Small pictures that a page draws itself: numbers for SVG; a style has the colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

__all__ = ["Line", "pvalue_scale", "spending_line"]

_LEAST = 1e-4  # smaller p-values are drawn at the end of the scale
_WIDE, _HIGH = 600.0, 160.0
Line = dict[str, Any]


def pvalue_scale(pvalue: float | None, alpha: float | None) -> Line | None:
    """Return where a p-value and its level are on a logarithmic scale, from 0 to 1."""
    if pvalue is None or alpha is None:
        return None

    def place(value: float) -> float:
        return round(1 - math.log(max(value, _LEAST)) / math.log(_LEAST), 4)

    ticks = [(f"{value:g}", 20 + 560 * place(value)) for value in (1e-4, 1e-3, 0.01, 0.1, 1)]
    return {
        "pvalue": 20 + 560 * place(pvalue),
        "alpha": 20 + 560 * place(alpha),
        "ticks": ticks,
        "words": f"p-value {pvalue:.3g}, level {alpha:g}, on a logarithmic scale",
    }


def spending_line(charges: Sequence[tuple[str, float]], total: float) -> Line | None:
    """Return the steps of a sum over time, and where the whole budget would be.

    Parameters
    ----------
    charges : sequence of (time, epsilon)
        What was charged, oldest first; times as ISO text.
    total : float
        The whole budget.
    """
    if not charges or total <= 0:
        return None
    times = [datetime.fromisoformat(time).timestamp() for time, _ in charges]
    first = times[0]
    span, top = max(times[-1] - first, 1.0), 1.1 * max(total, sum(cost for _, cost in charges))

    def height(value: float) -> float:
        return round(_HIGH * (1 - value / top), 2)

    spent, points = 0.0, [f"0,{_HIGH:g}"]
    for time, (_, cost) in zip(times, charges, strict=True):
        across = round(_WIDE * (0.02 + 0.94 * (time - first) / span), 2)
        points.append(f"{across:g},{height(spent):g}")
        spent += cost
        points.append(f"{across:g},{height(spent):g}")
    points.append(f"{_WIDE:g},{height(spent):g}")
    return {
        "points": " ".join(points),
        "limit": height(total),
        "first": charges[0][0][:10],
        "last": charges[-1][0][:10],
        "words": f"{len(charges)} charges, epsilon {spent:.4g} of {total:.4g}",
    }
