"""An empirical lower bound on the epsilon of anything that can be run many times.

Run a mechanism on two neighbouring data sets; choose an event on half of the runs; bound its
two probabilities on the other half by Clopper and Pearson. The result exceeds the mechanism's
true epsilon with probability at most ``error``, so a private mechanism passes and a broken one
is caught where the runs suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

ERROR = 1e-6
"""How often an audit may call a private mechanism broken."""

PLANTED = 1e-3
"""How often one that has to find a planted mistake may find it by chance; three looks add 3%."""

_CUTS = 24
_LOOKS = (8, 4, 2)  # at this part of the runs, before all of them
_EARLY = 0.01  # of the error, for each of them


def audit(
    mechanism: Callable[[Any], float | bool],
    first: Any,
    second: Any,
    *,
    runs: int,
    delta: float = 0.0,
    error: float = ERROR,
) -> float:
    """Lower confidence bound on the epsilon that tells ``first`` from ``second``."""
    return epsilon_lower_bound(
        *released(mechanism, first, second, runs=runs), delta=delta, error=error
    )


def caught(
    mechanism: Callable[[Any], float | bool],
    first: Any,
    second: Any,
    *,
    above: float,
    runs: int,
    delta: float = 0.0,
    error: float = PLANTED,
) -> bool:
    """Whether :func:`audit` proves more than ``above``: a planted mistake, mostly found early.

    After all runs it is asked as ``audit`` asks, with all of ``error``: nothing is caught less
    often than by all runs at once. The looks before that only add to it, and to the error.
    """
    found: tuple[list[float], list[float]] = ([], [])
    for part in (*_LOOKS, 1):
        for data, values in zip((first, second), found, strict=True):
            values += [float(mechanism(data)) for _ in range(runs // part - len(values))]
        spent = error if part == 1 else _EARLY * error
        if epsilon_lower_bound(*map(np.array, found), delta=delta, error=spent) > above:
            return True
    return False


def once(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let a step that draws no noise be computed once for each data set, and not in every run."""
    known: dict[int, tuple[Any, Any]] = {}

    def remembered(data: Any) -> Any:
        if id(data) not in known:
            known[id(data)] = data, read(data)  # with the data, so that no other has its id
        return known[id(data)][1]

    return remembered


def audit_all(
    mechanism: Callable[[Any], Any],
    first: Any,
    second: Any,
    *scores: Callable[[Any], float],
    runs: int,
) -> float:
    """As :func:`audit`, for several numbers of the same runs; return the largest bound."""
    found = [[mechanism(data) for _ in range(runs)] for data in (first, second)]
    return max(
        epsilon_lower_bound(*(np.array([float(score(one)) for one in each]) for each in found))
        for score in scores
    )


def released(
    mechanism: Callable[[Any], float | bool], first: Any, second: Any, *, runs: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a mechanism releases when it is run many times on each of two data sets."""
    values = [np.array([float(mechanism(data)) for _ in range(runs)]) for data in (first, second)]
    return values[0], values[1]


def epsilon_lower_bound(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    delta: float = 0.0,
    error: float = ERROR,
) -> float:
    """As :func:`audit`, from released numbers of both data sets."""
    lows, highs = _events(np.concatenate([first[::2], second[::2]]))
    score = -math.inf
    chosen: tuple[NDArray[np.float64], NDArray[np.float64], float, float] | None = None
    for likely, unlikely in ((first, second), (second, first)):
        bounds = _log_ratio_bounds(likely[::2], unlikely[::2], lows, highs, delta, error)
        best = int(np.argmax(bounds))
        if bounds[best] > score:
            score = float(bounds[best])
            chosen = likely[1::2], unlikely[1::2], lows[best], highs[best]
    if chosen is None:
        return -math.inf
    likely, unlikely, low, high = chosen
    ends = np.array([low]), np.array([high])
    return float(_log_ratio_bounds(likely, unlikely, *ends, delta, error)[0])


def _events(pooled: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All intervals (low, high] between cuts of what was released."""
    levels = np.linspace(0, 1, _CUTS + 2)[1:-1]
    inner = np.unique(np.quantile(pooled, levels, method="lower"))
    cuts = np.concatenate([[-np.inf], inner, [np.inf]])
    first, last = np.triu_indices(len(cuts), k=1)
    return cuts[first], cuts[last]


def _log_ratio_bounds(
    likely: NDArray[np.float64],
    unlikely: NDArray[np.float64],
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
    delta: float,
    error: float,
) -> NDArray[np.float64]:
    """Lower bound on log((P(event | likely) - delta)/P(event | unlikely)) for each event."""
    inside = [
        np.searchsorted(values, highs, "right") - np.searchsorted(values, lows, "right")
        for values in (np.sort(likely), np.sort(unlikely))
    ]
    low = _lower(inside[0], len(likely), error / 2) - delta
    high = _upper(inside[1], len(unlikely), error / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: NDArray[np.float64] = np.where(low > 0, np.log(low) - np.log(high), -np.inf)
    return result


def _lower(successes: Any, runs: int, error: float) -> NDArray[np.float64]:
    """Clopper and Pearson: smallest probability that gives so many successes."""
    bound: NDArray[np.float64] = np.where(
        successes == 0, 0.0, betaincinv(np.maximum(successes, 1), runs - successes + 1, error)
    )
    return bound


def _upper(successes: Any, runs: int, error: float) -> NDArray[np.float64]:
    """Clopper and Pearson: largest probability that gives so few successes."""
    return 1 - _lower(runs - successes, runs, error)
