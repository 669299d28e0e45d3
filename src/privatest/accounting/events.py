"""What happened to the data, in four kinds of events, and what an event costs by itself.

Values are exact decimals, rounded once and conservatively: prices up, noise scales down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from numbers import Integral
from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.privacy import Amount, Budget, gaussian_delta, gaussian_scale
from privatest.core.validation import reject

__all__ = [
    "Approximate",
    "Event",
    "Gaussian",
    "Laplace",
    "Pure",
    "covers",
    "event_from_dict",
    "event_of",
    "event_to_dict",
    "gaussian_epsilon",
    "price",
]

UP = Context(prec=60, rounding=ROUND_CEILING)
"""Arithmetic of prices: exact for sums of budgets, rounded up for everything else."""

INFINITE = Decimal("Infinity")
_DOWN = Context(prec=60, rounding=ROUND_FLOOR)
_RESOLUTION = Decimal("1e-18")
_LONGEST_PART = 200


@dataclass(frozen=True, slots=True)
class Pure:
    """A release known to be epsilon-private, and nothing more.

    Parameters
    ----------
    epsilon : float, int, str or Decimal
        At least 1e-6.
    part : str, optional
        The part of a declared public partition that it used; None is all of the data.
    """

    epsilon: Decimal
    part: str | None = None

    def __init__(self, epsilon: Amount, *, part: str | None = None) -> None:
        _fill(self, epsilon=Budget(epsilon).epsilon, part=_part(part))


@dataclass(frozen=True, slots=True)
class Approximate:
    """A release known to be (epsilon, delta)-private, and nothing more.

    Parameters
    ----------
    epsilon, delta : float, int, str or Decimal
        At least 1e-6; above 0 and below 1.
    part : str, optional
        The part of a declared public partition that it used.
    """

    epsilon: Decimal
    delta: Decimal
    part: str | None = None

    def __init__(self, epsilon: Amount, delta: Amount, *, part: str | None = None) -> None:
        budget = Budget(epsilon, delta)
        if budget.delta == 0:
            reject("delta", "above 0 (a release without delta is a Pure event)", delta)
        _fill(self, epsilon=budget.epsilon, delta=budget.delta, part=_part(part))


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Gaussian noise: what was released moves by at most ``mu`` standard deviations.

    Parameters
    ----------
    mu : float, int, str or Decimal
        The sensitivity over the standard deviation, rounded up by the caller.
    part : str, optional
        The part of a declared public partition that it used.
    """

    mu: Decimal
    part: str | None = None

    def __init__(self, mu: Amount, *, part: str | None = None) -> None:
        _fill(self, mu=_positive("mu", mu, UP), part=_part(part))


@dataclass(frozen=True, slots=True)
class Laplace:
    """Laplace noise on one value, its scale in units of the sensitivity.

    Parameters
    ----------
    scale : float, int, str or Decimal
        The scale of the noise over the sensitivity, rounded down by the caller.
    part : str, optional
        The part of a declared public partition that it used.
    """

    scale: Decimal
    part: str | None = None

    def __init__(self, scale: Amount, *, part: str | None = None) -> None:
        _fill(self, scale=_positive("scale", scale, _DOWN), part=_part(part))
        if self.scale > 1_000_000:
            reject("scale", "at most 1000000: budgets begin at epsilon 0.000001", scale)


Event = Pure | Approximate | Gaussian | Laplace
_KINDS: Mapping[str, type[Event]] = {
    "pure": Pure,
    "approximate": Approximate,
    "gaussian": Gaussian,
    "laplace": Laplace,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def event_to_dict(event: Event) -> dict[str, str]:
    """Write an event as plain strings, exactly.

    Examples
    --------
    >>> event_to_dict(Pure("0.10", part="north"))
    {'kind': 'pure', 'epsilon': '0.1', 'part': 'north'}
    """
    if type(event) not in _NAMES:
        reject("event", "a Pure, Approximate, Gaussian or Laplace event", event)
    numbers = {
        name: f"{value:f}"
        for name in ("epsilon", "delta", "mu", "scale")
        if (value := getattr(event, name, None)) is not None
    }
    part = {} if event.part is None else {"part": event.part}
    return {"kind": _NAMES[type(event)], **numbers, **part}


def event_from_dict(values: Mapping[str, Any]) -> Event:
    """Read what event_to_dict wrote; ParameterError for anything else."""
    arguments = dict(values)
    kind = _KINDS.get(str(arguments.pop("kind", None)))
    if kind is None:
        reject("kind", "one of " + ", ".join(map(repr, _KINDS)), values.get("kind"))
    try:
        return kind(**arguments)
    except TypeError:
        raise ParameterError(f"The fields of the {_NAMES[kind]} event are not known.") from None


def price(event: Event, *, delta: Amount = 0) -> Budget:
    """Return an (epsilon, delta) guarantee of a single event.

    Parameters
    ----------
    event : Event
        What happens.
    delta : float, int, str or Decimal
        For Gaussian noise, which has a price at every delta above 0; ignored by others.

    Examples
    --------
    >>> price(Laplace(2)).epsilon
    Decimal('0.5')
    >>> print(price(Gaussian("0.25"), delta="1e-6"))
    epsilon = 1.0607, delta = 1e-06
    """
    if isinstance(event, Gaussian):
        at = Budget(1, delta).delta
        if at == 0:
            reject("delta", "above 0: Gaussian noise has no price without it", delta)
        return Budget(gaussian_epsilon(event.mu, at), at)
    if isinstance(event, Laplace):
        return Budget(UP.divide(Decimal(1), event.scale))
    return Budget(event.epsilon, event.delta if isinstance(event, Approximate) else 0)


def gaussian_epsilon(mu: Decimal, delta: Decimal) -> Decimal:
    """Return the epsilon of Gaussian noise at a delta, rounded up to nine decimals."""
    scale, target = float(1 / mu) * (1 - 1e-14), float(delta) * (1 - 1e-14)
    low, high = 0.0, 1.0
    while gaussian_delta(scale, high) > target:
        low, high = high, 2 * high
        if high > 1e12:
            return INFINITE
    while high - low > 1e-11 * max(1.0, high):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(scale, middle) > target else (low, middle)
    return max(rounded_up(high), Decimal("1e-6"))


def rounded_up(value: float) -> Decimal:
    """Round up to nine decimals."""
    return Decimal(value * (1 + 1e-12)).quantize(Decimal("1e-9"), context=UP).normalize()


def covers(budget: Budget, event: Event) -> bool:
    """Return whether a single event satisfies an (epsilon, delta) guarantee."""
    if isinstance(event, Gaussian):
        if budget.delta == 0:
            return False
        epsilon, delta = budget.as_floats
        # mechanisms calibrate the scale to a relative 1e-9; this is far finer
        return gaussian_delta(float(1 / event.mu) * (1 - 1e-14), epsilon) <= delta
    alone = price(event)
    return alone.epsilon <= budget.epsilon and alone.delta <= budget.delta


def event_of(budget: Budget, *, gaussian: bool = False, part: str | None = None) -> Event:
    """Return the event of a release that was calibrated to a budget.

    ``gaussian`` says that it is one analytic Gaussian mechanism, which composes better than
    its (epsilon, delta) alone.

    Examples
    --------
    >>> event_of(Budget("0.5"))
    Pure(epsilon=Decimal('0.5'), part=None)
    """
    if not budget.delta:
        return Pure(budget.epsilon, part=part)
    if gaussian:
        return Gaussian(1 / gaussian_scale(1.0, budget), part=part)
    return Approximate(budget.epsilon, budget.delta, part=part)


def _fill(event: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(event, name, value)


def _part(part: object) -> str | None:
    if part is not None and not (isinstance(part, str) and 0 < len(part) <= _LONGEST_PART):
        reject("part", f"None or a name of at most {_LONGEST_PART} characters", part)
    return part


def _positive(name: str, value: object, context: Context) -> Decimal:
    """Read a positive number as a decimal with 18 places, rounded by the context."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = int(value)
    expected = "a number above 0 and at most 1000000000"
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        reject(name, expected, value)
    try:
        result = Decimal(repr(float(value)) if isinstance(value, float) else value)
    except InvalidOperation:
        reject(name, expected, value)
    if not result.is_finite() or not _RESOLUTION <= result <= 10**9:
        reject(name, expected, value)
    return result.quantize(_RESOLUTION, context=context).normalize(context)
