"""Location-scale families by the quantile function of their standard member.

Quantiles are needed on a grid: q(m / total) for integers m. What the fits rely on is stated and
proved in docs/proofs/location-scale.md: computed quantiles lie within one grid step of a
nondecreasing function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError

__all__ = ["BUILT_IN", "Family", "family_named", "plain_name"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Family:
    """Distributions F((x - m)/s) for all m and all s > 0.

    Parameters
    ----------
    name : str
        SciPy's name.
    ppf : callable
        Quantile function of the standard member on (0, 1).
    lower, upper : float
        Ends of its support.
    """

    name: str
    ppf: Callable[[Floats], Floats]
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def least(self) -> tuple[int, int]:
        """Smallest levels (c1, c2) in grid steps: 0 needs a finite end to put a record at."""
        return int(math.isinf(self.upper)), int(math.isinf(self.lower))

    def lower_limits(self, m: Integers, total: int) -> Floats:
        """Return the smallest z with F(z) >= m/total."""
        return self._quantiles(m, total, -math.inf, self.upper)

    def upper_limits(self, m: Integers, total: int) -> Floats:
        """Return the largest z with F(z) <= m/total."""
        return self._quantiles(m, total, self.lower, math.inf)

    def _quantiles(self, m: Integers, total: int, below: float, above: float) -> Floats:
        inside = (m > 0) & (m < total)
        if inside.all():
            return self.ppf(m / total)
        values = np.where(m <= 0, below, above)
        values[inside] = self.ppf(m[inside] / total)
        return values

    def sample(self, uniforms: Floats) -> Floats:
        """Return draws from the standard member, by inversion."""
        return self.ppf(uniforms)


def _normal(p: Floats) -> Floats:
    from scipy.special import ndtri  # noqa: PLC0415 - only when it is needed

    return np.asarray(ndtri(p), dtype=np.float64)


def _laplace(p: Floats) -> Floats:
    # the smaller tail, without a rounding error of 1 - p where it matters
    tail = np.log(2 * np.minimum(p, 1 - p))
    values: Floats = np.where(p < 0.5, tail, -tail)
    return values


def _cauchy(p: Floats) -> Floats:
    # tan has a pole: in the tails 1/tan of the small angle is accurate
    tail = np.minimum(p, 1 - p)
    size = np.where(tail < 0.25, 1 / np.tan(np.pi * tail), np.tan(np.pi * (0.5 - tail)))
    return np.where(p < 0.5, -size, size)


def _logistic(p: Floats) -> Floats:
    values: Floats = np.log(p) - np.log1p(-p)
    return values


def _gumbel(p: Floats) -> Floats:
    return -np.log(-np.log(p))


def _exponential(p: Floats) -> Floats:
    return -np.log1p(-p)


BUILT_IN = {
    "norm": Family("norm", _normal),
    "laplace": Family("laplace", _laplace),
    "cauchy": Family("cauchy", _cauchy),
    "logistic": Family("logistic", _logistic),
    "gumbel_r": Family("gumbel_r", _gumbel),
    "expon": Family("expon", _exponential, lower=0.0),
    "uniform": Family("uniform", lambda p: np.asarray(p, dtype=np.float64), lower=0.0, upper=1.0),
}
_OTHER_NAMES = {
    "normal": "norm",
    "gaussian": "norm",
    "gumbel": "gumbel_r",
    "exponential": "expon",
}


def plain_name(name: str) -> str:
    """Return SciPy's name for a name that people use."""
    return _OTHER_NAMES.get(name, name)


def family_named(name: object) -> Family:
    """Return a family by SciPy's name, or by its plain name.

    Any continuous distribution of ``scipy.stats`` without shape parameters is a
    location-scale family.

    Examples
    --------
    >>> family_named("normal").name
    'norm'
    """
    if not isinstance(name, str):
        raise ParameterError(f"family must be a name: {_known()}.")
    plain = plain_name(name)
    return BUILT_IN[plain] if plain in BUILT_IN else _of_scipy(plain)


@lru_cache(maxsize=64)
def _of_scipy(name: str) -> Family:
    from scipy import stats  # noqa: PLC0415 - slow to import

    found: Any = getattr(stats, name, None)
    if not isinstance(found, stats.rv_continuous) or found.numargs:
        raise ParameterError(f"family must be one of {_known()}; got {name!r}.")
    lower, upper = (float(end) for end in found.support())
    family = Family(name, lambda p: np.asarray(found.ppf(p), dtype=np.float64), lower, upper)
    _check(family, found)
    return family


def _known() -> str:
    """List the families; only for an error message, so the slow import is acceptable."""
    from scipy import stats  # noqa: PLC0415

    others = sorted(
        name
        for name, item in vars(stats).items()
        if isinstance(item, stats.rv_continuous) and not item.numargs and name not in BUILT_IN
    )
    return ", ".join([*BUILT_IN, *others])


def _check(family: Family, distribution: Any) -> None:
    """Refuse a quantile function that is not one, on a public grid."""
    p = np.arange(1, 1024) / 1024
    values = family.ppf(p)
    if (
        not np.isfinite(values).all()
        or (np.diff(values) <= 0).any()
        or np.abs(distribution.cdf(values) - p).max() > 1e-9
    ):
        raise ParameterError(f"family {family.name!r} has no usable quantile function in SciPy.")
