"""The size, effect or epsilon that has a wanted power, found by simulating few studies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privatest.simulation.running import Power

__all__ = ["Found", "find", "solve"]

Measure = Callable[[float, int, int], Power]  # from a value, runs and a round
_ROUNDS = (0.5, 1.0)  # shares of the runs: the first to come near, the last to be sure
_STEP = 1.5  # from one value to the next, until the target is between two


@dataclass(frozen=True, slots=True)
class Found:
    """A value, what was measured there, and all points; ``value`` is None if none has the power."""

    value: float | None
    last: Power
    seen: tuple[tuple[float, Power], ...]

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Values and powers, in order."""
        return tuple((value, found.rate) for value, found in self._ordered)

    @property
    def band(self) -> tuple[tuple[float, float], ...]:
        """The interval of the power at each point."""
        return tuple((found.low, found.high) for _, found in self._ordered)

    @property
    def _ordered(self) -> list[tuple[float, Power]]:
        return sorted(self.seen, key=lambda each: (each[0], each[1].rate))


def solve(power: Callable[[float], float], target: float, low: float, high: float) -> float | None:
    """Return the least value between two at which an increasing curve has the power."""
    if power(high) < target:
        return None
    if power(low) >= target:
        return low
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if power(middle) >= target else (middle, high)
        if high / low < 1 + 1e-6:
            break
    return high


def find(
    measure: Measure, target: float, start: float, low: float, high: float, runs: int
) -> Found:
    """Return where a test has the wanted power: a bracket by few runs, then more near it.

    Power is taken to be a probit curve in the logarithm of the value, which it is nearly where it
    is not far from the target.
    """
    points: list[tuple[float, int, int]] = []
    seen: list[tuple[float, Power]] = []

    def look(value: float, runs: int) -> Power:
        found = measure(value, runs, len(points))
        seen.append((float(value), found))
        points.append((value, found.rejections, found.runs))
        return found

    value, few = min(max(start, low), high), max(runs // 8, 20)
    for _ in range(40):  # until the target is between two values
        rates = [(at, hits / count) for at, hits, count in points]
        below = max((at for at, rate in rates if rate < target), default=0.0)
        above = min((at for at, rate in rates if rate >= target), default=math.inf)
        if (below and math.isfinite(above)) or below >= high or above <= low:
            break
        if points:
            value = min(_STEP * below, high) if below else max(above / _STEP, low)
        last = look(value, few)
    if below >= high:
        best = look(high, runs)
        if best.rate < target:
            return Found(None, best, tuple(seen))
    for share in _ROUNDS:
        value = min(max(_crossing(points, target), low), high)
        last = look(value, max(math.ceil(share * runs), few))
    value = min(max(_crossing(points, target), low), high)
    return Found(value, last, tuple(seen))


def _crossing(points: list[tuple[float, int, int]], target: float) -> float:
    """Return where a probit curve through the points crosses the target."""
    from scipy.optimize import minimize  # noqa: PLC0415
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    values, hits, counts = np.array(points, dtype=np.float64).T
    logs = np.log(values)
    # points near the target decide: the curve is no straight line far from it
    rates = (hits + 0.5) / (counts + 1)
    weights = np.exp(-0.5 * ((ndtri(rates) - ndtri(target)) / 1.2) ** 2)
    middle = float(np.average(logs, weights=weights))

    def loss(line: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        power = np.clip(ndtr(line[0] + np.exp(line[1]) * (logs - middle)), 1e-6, 1 - 1e-6)
        own = weights * (hits * np.log(power) + (counts - hits) * np.log(1 - power))
        return 0.5 * float((line[1] - 0.5) / 0.5) ** 2 - float(own.sum())

    wanted = float(ndtri(target))
    level, slope = minimize(loss, np.array([wanted, 0.5]), method="Nelder-Mead").x
    step = (wanted - float(level)) / math.exp(slope)
    return math.exp(middle + min(max(step, -1.5), 1.5))
