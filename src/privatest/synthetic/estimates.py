"""Answers from weights: means and quantiles, what noise does to them, and what weights hide."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.synthetic.facts import Estimate

__all__ = [
    "Weighting",
    "beyond",
    "check_total",
    "mean_estimate",
    "quantile_estimate",
    "root_mean_square",
    "unseen",
]

_SMALLEST_TOTAL = 0.1  # of the weights, below which a mean would be a quotient of noise
_ROUNDING = 1e-9  # of a sum of weights
_EXPLAINED = 2.0  # error bars that a difference may be long by noise alone


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """Weights of the rows, and draws of what they might have been (rows × draws)."""

    weights: NDArray[np.float64]
    draws: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Freeze copies."""
        for name in ("weights", "draws"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def fits(self) -> bool:
        """Whether the parts belong together."""
        finite = np.isfinite(self.weights).all() and np.isfinite(self.draws).all()
        return bool(self.draws.shape[:1] == self.weights.shape and finite)


def check_total(weights: NDArray[np.float64]) -> None:
    """Refuse weights that nearly cancel."""
    if float(weights.sum()) < _SMALLEST_TOTAL:
        raise DataError(
            "the weights nearly cancel: there is more noise than data. Use nonnegative(), "
            "or release with fewer points, more rows or a larger epsilon."
        )


def mean_estimate(
    values: NDArray[np.float64],
    used: Weighting,
    before: Weighting | None = None,
    reach: float | None = None,
) -> Estimate:
    """Return the weighted mean of a value of each row.

    Draws move it as they move the mean of (values - answer): to first order that is the
    quotient, and no draw is divided by a sum of its own that may be near 0. ``before`` are
    signed weights of the same rows, where ``used`` are not; ``reach`` is the range of values
    that rows might have, by default that of the given ones.
    """
    reach = float(np.ptp(values)) if reach is None else reach
    total = float(used.weights.sum())
    value = float(values @ used.weights) / total
    centred = values - value
    noise = root_mean_square(centred @ used.draws / total)
    lost = unseen(used if before is None else before) * reach
    if before is None:
        return _estimate(value, noise, lost)
    away = float(centred @ before.weights)
    free_noise = root_mean_square(centred @ before.draws - away)
    return _estimate(value, noise, beyond(away, free_noise), lost)


def quantile_estimate(
    values: NDArray[np.float64],
    q: float,
    used: Weighting,
    before: Weighting | None = None,
    step: float = 0.0,
) -> Estimate:
    """Return the smallest value that a share ``q`` does not exceed.

    The bar covers the gap to the next rows with weight, too: the answer may be anywhere in it.
    ``step`` is the distance of values between which there are none, 1 for integers.
    """
    order = np.argsort(values, kind="stable")
    value, noise = _quantile(values, order, q, used)
    gap = _gap(values[used.weights != 0], value)
    noise = math.hypot(noise, max(gap - step, 0.0) / math.sqrt(12))
    share = unseen(used if before is None else before)
    ends = [_quantile(values, order, end, used)[0] for end in (q - share, q + share)]
    lost = max(abs(end - value) for end in ends)
    if before is None:
        return _estimate(value, noise, lost)
    other, free_noise = _quantile(values, order, q, before)
    away = max(abs(other - value) - gap, 0.0)  # within the gap both say the same
    return _estimate(value, noise, beyond(away, free_noise), lost)


def unseen(free: Weighting) -> float:
    """Return by how much the sum of signed weights misses 1, beyond what noise explains.

    The mean of the constant 1 is known to be 1. What the points miss of it they may miss of any
    function's range.
    """
    away = float(free.weights.sum()) - 1
    over = beyond(away, root_mean_square(free.draws.sum(axis=0) - 1 - away))
    return over if over > _ROUNDING else 0.0


def beyond(away: float, noise: float) -> float:
    """Return the part of a difference that two error bars of noise do not explain."""
    noise = 0.0 if math.isnan(noise) else noise
    return max(abs(away) - _EXPLAINED * noise, 0.0)


def _estimate(value: float, noise: float, *misfits: float) -> Estimate:
    misfit = math.hypot(*misfits)
    return Estimate(value, math.hypot(noise, misfit), misfit)


def root_mean_square(moved: NDArray[np.float64]) -> float:
    """Return the length of an error bar; NaN where there is no draw."""
    return math.sqrt(float(np.mean(moved**2))) if moved.size else math.nan


def _quantile(
    values: NDArray[np.float64], order: NDArray[np.intp], q: float, used: Weighting
) -> tuple[float, float]:
    """Return the quantile and what noise does to it."""
    ordered = values[order]
    shares = np.cumsum(np.column_stack([used.weights, used.draws])[order], axis=0)
    found = np.array([ordered[_place(column, q)] for column in shares.T])
    return float(found[0]), root_mean_square(found[1:] - found[0])


def _gap(values: NDArray[np.float64], value: float) -> float:
    """Return the longer of the ways from a value to the next smaller and larger ones."""
    apart = values - value
    ways = (-apart[apart < 0], apart[apart > 0])
    return max((float(way.min()) for way in ways if way.size), default=0.0)


def _place(shares: NDArray[np.float64], q: float) -> int:
    """Return where rising shares reach q of their last; signed weights may go down again.

    The nearest rising curve then takes their place: the first crossing would come too early.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415

    rising = shares if np.all(np.diff(shares) >= 0) else isotonic_regression(shares).x
    slack = 1e-12 * max(abs(float(shares[-1])), 1.0)
    place = int(np.searchsorted(rising, q * shares[-1] - slack))
    return min(place, len(shares) - 1)
