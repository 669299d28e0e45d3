"""What a release costs, what counts as a neighbour, and how far a statistic can move.

Numbers here are public. Everything is rounded so that the guarantee holds: budgets are
exact decimals, the epsilon given to a mechanism is rounded down, noise is rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from numbers import Integral
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import number, of_type, one_of, reject

__all__ = [
    "MINIMUM_EPSILON",
    "SMALLEST_SENSITIVITY",
    "Adjacency",
    "Amount",
    "Budget",
    "PermutationSensitivity",
    "Sensitivity",
    "gaussian_delta",
    "gaussian_scale",
    "privacy_unit",
]

Adjacency = Literal["one", "both", "row"]
"""Which data sets are neighbours; always by replacing records, never by adding or removing.

``"one"``
    One record's values are replaced within its own group. Group sizes are public.
``"both"``
    One record in each group is replaced (a person who contributes to both). Sizes are public.
``"row"``
    One record is replaced, values and group together. Only the total number is public.
"""

Amount = float | int | str | Decimal
"""A part of a budget, as a user may write it."""

ADJACENCIES: tuple[str, ...] = get_args(Adjacency)

# Below this a noise scale no longer fits the integer samplers, and no test has any power.
MINIMUM_EPSILON = Decimal("1e-6")
_RESOLUTION = Decimal("1e-18")  # budgets are kept to this many decimals, rounded up

# Sensitivities between these limits, divided by any epsilon, are normal floats, whose relative
# rounding errors are below 2^-53. A smaller one is raised, which is always private.
SMALLEST_SENSITIVITY, LARGEST_SENSITIVITY = 1e-290, 1e290
_FURTHEST = 40.0  # standard deviations: exp(-40²/2) is 0 as a float


def _decimal(name: str, value: object) -> Decimal:
    """Read a budget entry as a decimal: what the user typed, not its binary neighbour."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = int(value)  # NumPy's integers too
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        reject(name, "a number", value)
    try:
        result = Decimal(repr(float(value)) if isinstance(value, float) else value)
    except InvalidOperation:
        reject(name, "a number", value)
    if not result.is_finite() or result.adjusted() > 9:
        reject(name, "a finite number", value)
    if 0 < result < _RESOLUTION:  # it would be rounded up to more than was asked for
        reject(name, f"0 or at least {_RESOLUTION:g}", value)
    with localcontext() as context:
        context.prec = 60
        return result.quantize(_RESOLUTION, rounding=ROUND_CEILING).normalize()


def _largest_float_not_above(value: Decimal) -> float:
    result = float(value)
    return math.nextafter(result, -math.inf) if Decimal(result) > value else result


@dataclass(frozen=True, slots=True)
class Budget:
    """An (epsilon, delta) guarantee or its price, in exact decimals.

    Parameters
    ----------
    epsilon : float, int, str or Decimal
        At least 1e-6. ``0.1`` means one tenth, not the binary number next to it.
    delta : float, int, str or Decimal
        In [0, 1). 0 is pure differential privacy.
    """

    epsilon: Decimal
    delta: Decimal = Decimal(0)

    def __init__(self, epsilon: Amount, delta: Amount = 0) -> None:
        epsilon_, delta_ = _decimal("epsilon", epsilon), _decimal("delta", delta)
        if epsilon_ < MINIMUM_EPSILON:
            reject("epsilon", f"a number of at least {MINIMUM_EPSILON:f}", epsilon)
        if not 0 <= delta_ < 1:
            reject("delta", "a number of at least 0 and below 1", delta)
        object.__setattr__(self, "epsilon", epsilon_)
        object.__setattr__(self, "delta", delta_)

    def __add__(self, other: Budget) -> Budget:
        """Compose two releases by plain addition, which never understates the cost."""
        with localcontext() as context:
            context.prec = 60
            epsilon, delta = self.epsilon + other.epsilon, self.delta + other.delta
        if delta >= 1:
            raise ParameterError("delta of the two releases adds up to 1 or more: nothing is left.")
        return Budget(epsilon, delta)

    def divided(self, parts: int) -> Budget:
        """Return an equal share, rounded down: so many of them cost no more than this budget."""
        if self.epsilon < parts * MINIMUM_EPSILON:
            reject(
                "epsilon", f"at least {parts * MINIMUM_EPSILON:f} for {parts} parts", self.epsilon
            )
        with localcontext() as context:
            context.prec = 60
            epsilon, delta = (
                (whole / parts).quantize(_RESOLUTION, rounding=ROUND_FLOOR)
                for whole in (self.epsilon, self.delta)
            )
        return Budget(epsilon, delta)

    def __str__(self) -> str:
        """Write the budget for a reader: epsilon = 1, or epsilon = 1, delta = 1e-6."""
        text = f"epsilon = {float(self.epsilon):g}"
        return f"{text}, delta = {float(self.delta):g}" if self.delta else text

    @property
    def pure_epsilon(self) -> float:
        """The xi for which a xi-private mechanism keeps this budget; a float, rounded down.

        A xi-DP mechanism is (epsilon, delta)-DP for xi = log((e^epsilon + delta)/(1 - delta)).
        """
        epsilon = _largest_float_not_above(self.epsilon)
        delta = _largest_float_not_above(self.delta)
        if delta == 0.0:
            return epsilon
        # epsilon + log1p(delta e^-epsilon) - log1p(-delta), which cannot overflow
        xi = epsilon + math.log1p(delta * math.exp(-epsilon)) - math.log1p(-delta)
        return max(epsilon, xi * (1 - 1e-15))

    @property
    def as_floats(self) -> tuple[float, float]:
        """Epsilon and delta as floats, rounded down, for calibrating a mechanism."""
        return _largest_float_not_above(self.epsilon), _largest_float_not_above(self.delta)


def _usable(value: object) -> float:
    # a family of statistics has hundreds of bounds, nearly all of them plain
    if isinstance(value, float) and SMALLEST_SENSITIVITY <= value < LARGEST_SENSITIVITY:
        return float(value)
    value = number("sensitivity", value, above=0, below=LARGEST_SENSITIVITY)
    return max(value, SMALLEST_SENSITIVITY)


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The most that a statistic moves between neighbours.

    Parameters
    ----------
    value : float
        The bound; positive and below 1e290. Below 1e-290 it is raised to that.
    norm : {"absolute", "l1", "l2"}
        The distance it is measured in.
    adjacency : {"one", "both", "row"}
        Which data sets are neighbours.
    """

    value: float
    norm: Literal["absolute", "l1", "l2"] = "absolute"
    adjacency: Adjacency = "one"

    def __post_init__(self) -> None:
        """Refuse a bound that no mechanism could use, and raise a tiny one."""
        object.__setattr__(self, "value", _usable(self.value))
        one_of("norm", self.norm, ("absolute", "l1", "l2"))
        one_of("adjacency", self.adjacency, ADJACENCIES)


@dataclass(frozen=True, slots=True)
class PermutationSensitivity:
    """How far the statistic of a permutation test moves between neighbours.

    Permuting can separate what a person's row held together, so the permuted statistics may
    move further than the observed one; a private test has to cover both.

    Parameters
    ----------
    observed, permuted : float
        Bounds on the movement of the observed statistic and of every permuted one.
    """

    observed: float
    permuted: float

    def __post_init__(self) -> None:
        """Refuse bounds that no mechanism could use, and raise tiny ones."""
        observed = _usable(self.observed)
        if not (of_type(self.permuted, float) and self.permuted >= self.observed):
            number("sensitivity", self.permuted, at_least=self.observed)
        object.__setattr__(self, "observed", observed)
        object.__setattr__(self, "permuted", _usable(self.permuted))

    def __mul__(self, factor: float) -> PermutationSensitivity:
        """Scale both bounds."""
        return PermutationSensitivity(self.observed * factor, self.permuted * factor)

    def widened(self, slack: float) -> PermutationSensitivity:
        """Add a bound on rounding errors, once for each of the two neighbours."""
        return PermutationSensitivity(self.observed + 2 * slack, self.permuted + 2 * slack)


def privacy_unit(rows_per_person: int) -> str:
    """Return the unit of privacy in words: a row, or a person with at most k rows."""
    return "row" if rows_per_person == 1 else f"person with at most {rows_per_person} rows"


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def gaussian_delta(scale: float, epsilon: float) -> float:
    """Delta of the Gaussian mechanism with noise ``scale`` (in sensitivities), rounded up.

    Balle and Wang (2018), theorem 8: Phi(1/(2s) - es) - e^e Phi(-1/(2s) - es). For s > 1 the two
    nearly cancel; with M the Mills ratio they are phi(1/(2s) - es) times the integral of
    1 - y M(y) over es ± 1/(2s), in which nothing does. Proof: docs/proofs/noise.md.
    """
    half, middle = 0.5 / scale, epsilon * scale
    if scale > 1:
        density = math.exp(-0.5 * (middle - half) ** 2) / math.sqrt(2 * math.pi)
        return density * half * _mills_sum(middle, half) * (1 + 1e-11)
    first, tail = _normal_cdf(half - middle), _normal_cdf(-half - middle)
    # e^epsilon alone may overflow where the product does not; a tail below normal floats has few
    # digits, and without the second term delta is only larger
    second = math.exp(epsilon + math.log(tail)) if tail > 1e-290 else 0.0
    return max(first - second, 0.0) + 1e-11 * first


def _mills_sum(middle: float, half: float) -> float:
    """Integrate 1 - y M(y) over middle ± half, half <= 1/2, in units of half."""
    from scipy.special import erfcx  # noqa: PLC0415 -- not needed to import privatest

    if middle > _FURTHEST:  # the density before it is 0 as a float
        return 0.0
    nodes, weights = _legendre()
    y = middle + half * nodes
    mills = math.sqrt(math.pi / 2) * erfcx(y / math.sqrt(2))
    return float(weights @ (1 - y * mills))


@lru_cache(maxsize=1)
def _legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Gauss–Legendre nodes and weights: computing them takes longer than using them."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    return nodes, weights


def gaussian_scale(sensitivity: float, budget: Budget) -> float:
    """Smallest standard deviation that makes Gaussian noise (epsilon, delta)-private.

    The analytic Gaussian mechanism, rounded up.

    Examples
    --------
    >>> round(gaussian_scale(1.0, Budget(1, "1e-6")), 4)
    4.2247
    """
    epsilon, delta = budget.as_floats
    if delta <= 0:
        reject("delta", "above 0 for Gaussian noise", float(budget.delta))
    return sensitivity * _unit_gaussian_scale(epsilon, delta)


@lru_cache(maxsize=256)
def _unit_gaussian_scale(epsilon: float, delta: float) -> float:
    """Return the standard deviation for a sensitivity of 1; cached, as tests often repeat it."""
    low, high = 1e-8, 1.0
    while gaussian_delta(high, epsilon) > delta:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        if gaussian_delta(middle, epsilon) > delta:
            low = middle
        else:
            high = middle
    return high * (1 + 1e-9)
