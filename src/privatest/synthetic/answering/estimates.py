"""Estimates from weighted rows: means and quantiles, with their error bars.

Post-processing of what was released: none of this sees private rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.equality import EqualByValue
from privatest.core.errors import DataError
from privatest.core.privacy import Budget
from privatest.core.results import privacy_sentence, read_only
from privatest.data.schema import Schema
from privatest.kernels.kernels import Kernel

__all__ = [
    "Estimate",
    "Facts",
    "Weighting",
    "beyond",
    "check_total",
    "mean_estimate",
    "quantile_estimate",
    "root_mean_square",
    "unseen",
]

_MOST = 0.95  # fraction of an error bar: the misfit is then three times the noise
_SMALLEST_TOTAL = 0.1  # sum of the weights below which a mean would be a quotient of noise
_ROUNDING = 1e-9  # error of a sum of weights
_EXPLAINED = 2.0  # standard errors that a difference may have by noise alone

Progress = Callable[[float], None]
"""Called with the fraction of the work that is done, from 0 to 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate(EqualByValue):
    """An estimate with its error bar, or without one and the reason why.

    Attributes
    ----------
    value : float
        The estimate.
    error : float
        One standard deviation of the error due to privacy noise, a little more where the rows
        leave something open: value ± 1.96 error covers the private rows' own value with
        probability .95. NaN if there is no such bar.
    misfit : float
        Error because the rows represent the data badly: a bound on it where coefficients were
        measured, else as far as the release itself shows it.
    sampling : float
        One standard deviation of the error because the private rows are a sample: not part of
        ``error``. About the population, add both in quadrature.
    limits : (float, float) or None
        If there is no bar: the value lies between these with probability .95 or more, whatever
        the data; often much more.
    reason : str
        If there is no bar: why.
    """

    value: float
    error: float
    misfit: float = 0.0
    sampling: float = math.nan
    limits: tuple[float, float] | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        """Give a reason where there is no bar and none was given."""
        if math.isnan(self.error) and not self.reason:
            object.__setattr__(self, "reason", "nothing was measured that tells how exact this is")

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    @property
    def poor(self) -> bool:
        """Whether most of the bar is misfit: the rows cannot represent the data."""
        return self.misfit > _MOST * self.error

    @property
    def total(self) -> float:
        """One standard deviation about the population: noise and sampling error together."""
        return math.hypot(self.error, self.sampling)

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as JSON has them; what is missing is None."""
        return {
            "value": _finite(self.value),
            "error": _finite(self.error),
            "sampling": _finite(self.sampling),
            "limits": None if self.limits is None else list(self.limits),
            "reason": self.reason or None,
            "misfit": _finite(self.misfit),
            "poor": bool(self.poor),
        }

    def __str__(self) -> str:
        """Return the value with its error, both to the significant digits."""
        if self.limits is not None:
            low, high = self.limits
            digits = _digits((high - low) / 4)
            text = f"{self.value:.{digits}f} (no bar; between {low:.{digits}f} and "
            return f"{text}{high:.{digits}f})"
        if self.reason:
            return f"{self.value:.3g} (no bar)"
        warning = " (poorly represented)" * self.poor
        if self.error <= 0 or not math.isfinite(self.error):
            return f"{self.value:.6g} ± {self.error:g}{warning}"
        digits = _digits(self.error)
        text = f"{self.value:.{digits}f} ± {self.error:.{digits}f}{warning}"
        if math.isfinite(self.sampling):
            text += f" (sampling ± {self.sampling:.2g})"
        return text


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _digits(error: float) -> int:
    """Return how many decimals two digits of an error need."""
    return max(0, 1 - math.floor(math.log10(error))) if error > 0 else 6


@dataclass(frozen=True, slots=True)
class Facts:
    """What is public about a release.

    Attributes
    ----------
    n : int
        Number of private rows.
    spent : Budget
        What the release cost.
    method : str
        The algorithm and the kernel, in words.
    kernel : Kernel or None
        The kernel on encoded rows; None after :meth:`SyntheticData.transform`.
    schema : Schema or None
        The description of the columns; None for numbers without bounds.
    unit : str
        What is hidden: a row, or a person with at most k rows.
    sigma : float
        Standard deviation of the noise in each coefficient.
    parameters : mapping
        Other public parameters.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    starts : mapping of str to tuple of float
        Where cells begin, of columns whose bins were bought with a share of the budget.
    """

    n: int
    spent: Budget
    method: str
    kernel: Kernel | None
    schema: Schema | None = None
    unit: str = "row"
    sigma: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    simulated: bool = False
    starts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        return privacy_sentence(self.spent, self.unit, self.simulated, what="release")


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """Weights of the rows, and simulated draws of them (rows × draws)."""

    weights: NDArray[np.float64]
    draws: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Freeze copies."""
        for name in ("weights", "draws"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, read_only(array))

    @property
    def fits(self) -> bool:
        """Whether the shapes agree and all values are finite."""
        finite = np.isfinite(self.weights).all() and np.isfinite(self.draws).all()
        return bool(self.draws.shape[:1] == self.weights.shape and finite)


def check_total(weights: NDArray[np.float64]) -> None:
    """Refuse weights that nearly cancel."""
    if float(weights.sum()) < _SMALLEST_TOTAL:
        raise DataError(
            "the weights nearly cancel: there is more noise than signal. Use nonnegative(), "
            "or release with fewer points, more rows or a larger epsilon."
        )


def mean_estimate(
    values: NDArray[np.float64],
    used: Weighting,
    before: Weighting | None = None,
    reach: float | None = None,
) -> Estimate:
    """Return the weighted mean of one value per row.

    The noise is that of the mean of (values - estimate): to first order this is the quotient,
    and no draw is divided by its own sum, which may be near 0. ``before`` are signed weights of
    the same rows, if ``used`` are not signed; ``reach`` is the range that values could have, by
    default that of the given ones.
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
    """Return the ``q`` quantile: the smallest value with a cumulative weight of at least ``q``.

    The bar also covers the gap to the next rows with weight: the quantile may be anywhere in it.
    ``step`` is the spacing of the possible values, 1 for integers.
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
    away = max(abs(other - value) - gap, 0.0)  # within the gap the two agree
    return _estimate(value, noise, beyond(away, free_noise), lost)


def unseen(free: Weighting) -> float:
    """Return by how much the sum of signed weights misses 1, beyond what noise explains.

    The mean of the constant function 1 is known to be 1. The points may miss the same fraction
    of any function's range.
    """
    away = float(free.weights.sum()) - 1
    over = beyond(away, root_mean_square(free.draws.sum(axis=0) - 1 - away))
    return over if over > _ROUNDING else 0.0


def beyond(away: float, noise: float) -> float:
    """Return the part of a difference that noise (two standard errors) does not explain."""
    noise = 0.0 if math.isnan(noise) else noise
    return max(abs(away) - _EXPLAINED * noise, 0.0)


def _estimate(value: float, noise: float, *misfits: float) -> Estimate:
    misfit = math.hypot(*misfits)
    return Estimate(value, math.hypot(noise, misfit), misfit)


def root_mean_square(moved: NDArray[np.float64]) -> float:
    """Return the root mean square; NaN if there are no draws."""
    return math.sqrt(float(np.mean(moved**2))) if moved.size else math.nan


def _quantile(
    values: NDArray[np.float64], order: NDArray[np.intp], q: float, used: Weighting
) -> tuple[float, float]:
    """Return the quantile and its standard deviation under noise."""
    ordered = values[order]
    shares = np.cumsum(np.column_stack([used.weights, used.draws])[order], axis=0)
    found = np.array([ordered[_place(column, q)] for column in shares.T])
    return float(found[0]), root_mean_square(found[1:] - found[0])


def _gap(values: NDArray[np.float64], value: float) -> float:
    """Return the larger of the distances to the next smaller and the next larger value."""
    apart = values - value
    ways = (-apart[apart < 0], apart[apart > 0])
    return max((float(way.min()) for way in ways if way.size), default=0.0)


def _place(shares: NDArray[np.float64], q: float) -> int:
    """Return where cumulative weights reach a fraction q of their total.

    With signed weights they may fall again. The nearest non-decreasing curve then replaces them:
    the first crossing would come too early.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415

    rising = shares if np.all(np.diff(shares) >= 0) else isotonic_regression(shares).x
    slack = 1e-12 * max(abs(float(shares[-1])), 1.0)
    place = int(np.searchsorted(rising, q * shares[-1] - slack))
    return min(place, len(shares) - 1)
