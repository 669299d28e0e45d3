"""What an event costs, what a list of events costs, and which sums may grant a request.

Events are kept as exact decimals, rounded once and conservatively: prices up, noise scales down.

An analyst chooses each request, and its price, after reading the answers so far. Plain addition
and zCDP remain valid then (Rogers et al. 2016; Whitehouse et al. 2023, theorem 1) and may grant
requests one by one: ``zcdp_price`` and ``largest_rho``. The tighter bounds of ``compose`` hold
only for lists that do not depend on answers, or if all requests have the same price:
docs/accounting.md has a counterexample.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from numbers import Integral
from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.privacy import Amount, Budget, gaussian_delta, gaussian_scale
from privatest.core.validation import integer_at_least, reject

__all__ = [
    "Approximate",
    "Event",
    "Gaussian",
    "Laplace",
    "Pure",
    "compose",
    "covers",
    "event_from_dict",
    "event_of",
    "event_to_dict",
    "fits",
    "gaussian_epsilon",
    "largest_rho",
    "most_repeats",
    "price",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_price",
]

UP = Context(prec=60, rounding=ROUND_CEILING)
"""Arithmetic of prices: exact for sums of budgets, rounded up for everything else."""

INFINITE = Decimal("Infinity")
_DOWN = Context(prec=60, rounding=ROUND_FLOOR)
_RESOLUTION = Decimal("1e-18")
_LONGEST_PART = 200
_MOST_GROUPS = 48  # distinct events in one privacy-loss distribution: 10 ms each
_SMALLEST_PLD_DELTA = 1e-9  # below it, rounding errors of the Fourier transform would matter
_PLD_SLACK = 1e-10  # a bound on those errors, subtracted from delta
_MOST_LOSS = 50  # beyond it the distributions get long, and there is no privacy anyway


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


# --- sums by which requests may be granted: valid however adaptively requests are chosen ---------


def zcdp_price(event: Event) -> tuple[Decimal, Decimal]:
    """Return rho and delta for which an event is delta-approximately rho-zCDP.

    mu²/2 for Gaussian noise; epsilon²/2 for an (epsilon, delta)-private event (Bun and
    Steinke 2016, propositions 1.4 and 1.6).
    """
    if isinstance(event, Gaussian):
        return UP.multiply(UP.multiply(event.mu, event.mu), Decimal("0.5")), Decimal(0)
    known = price(event)
    return UP.multiply(UP.multiply(known.epsilon, known.epsilon), Decimal("0.5")), known.delta


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return the delta at which rho-zCDP implies epsilon, rounded up.

    Canonne, Kamath and Steinke (2020), proposition 12: the infimum over orders a > 1 of
    exp((a-1)(a rho - epsilon)) / (a-1) (1 - 1/a)^a. Every order gives a valid bound, so a
    search that stops early only loses a little.
    """
    if rho <= 0:
        return 0.0

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)  # the order minus 1
        order = 1 + excess
        rest = order * (log_excess - math.log1p(excess))  # a log(1 - 1/a)
        return excess * (order * rho - epsilon) - log_excess + rest

    low, high = math.log(1e-6), math.log(1e9)
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-9:  # golden sections; log_delta falls and then rises
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if log_delta(left) <= log_delta(right) else (left, high)
    return min(1.0, math.exp(min(0.0, log_delta(0.5 * (low + high)))) * (1 + 1e-9))


def zcdp_epsilon(rho: Decimal, delta: Decimal) -> Decimal:
    """Return the epsilon that rho-zCDP implies at a delta, rounded up to nine decimals."""
    rho_, target = float(rho) * (1 + 1e-14), float(delta) * (1 - 1e-14)
    low, high = 0.0, 1.0
    while zcdp_delta(rho_, high) > target:
        low, high = high, 2 * high
    while high - low > 1e-11 * max(1.0, high):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if zcdp_delta(rho_, middle) > target else (low, middle)
    return Decimal(high * (1 + 1e-12)).quantize(Decimal("1e-9"), context=UP).normalize()


def largest_rho(total: Budget) -> Decimal:
    """Return the rho that an (epsilon, delta) budget allows, using half of its delta.

    The other half is for the deltas of the requests. The halves are fixed in advance: a split
    chosen by what was spent would depend on answers.

    Examples
    --------
    >>> round(largest_rho(Budget(3, "1e-6")), 4)
    Decimal('0.1757')
    """
    epsilon, delta = total.as_floats
    low, high = 0.0, epsilon  # rho-zCDP with rho = epsilon never gives a small delta
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if zcdp_delta(middle, epsilon) <= delta / 2 else (low, middle)
    return Decimal(low).quantize(Decimal("1e-15"), rounding=ROUND_FLOOR).normalize()


# --- the cost of a list of events that does not depend on any answer ------------------------------


def compose(events: Iterable[Event] | Mapping[Event, int], *, delta: Amount = 0) -> Decimal:
    """Return the smallest epsilon that is proved for all events together, at this delta.

    Parameters
    ----------
    events : iterable of Event, or mapping of Event to int
        What happens, or how often each event happens. The list must not depend on answers.
    delta : float, int, str or Decimal
        In [0, 1).

    Returns
    -------
    Decimal
        Rounded up; infinite if no epsilon suffices (Gaussian noise without delta).

    Notes
    -----
    The smallest of three bounds: plain addition, with all Gaussian noise combined into one
    (sqrt(mu1² + mu2²)); zCDP; and privacy-loss distributions. Of the parts of a public
    partition only the most expensive counts, together with events on the whole data.

    Examples
    --------
    >>> compose([Pure("0.1"), Pure("0.2")])
    Decimal('0.3')
    >>> compose({Pure("0.05"): 100}, delta="1e-6") < Decimal("2.25")
    True
    """
    at = Budget(1, delta).delta
    counts = _counted(events)
    parts = {event.part for event in counts} - {None}
    whole = {event: n for event, n in counts.items() if event.part is None}
    return max(
        (
            _compose(whole | {e: n for e, n in counts.items() if e.part == part}, at)
            for part in parts or {None}
        ),
        default=Decimal(0),
    )


def fits(
    events: Iterable[Event] | Mapping[Event, int], new: Event | Iterable[Event], total: Budget
) -> bool:
    """Return whether a fixed list of events, plus one or more new ones, stays within a budget."""
    counts = _counted(events)
    counts.update(_counted([new] if isinstance(new, Event) else new))
    return compose(counts, delta=total.delta) <= total.epsilon


def most_repeats(event: Event, total: Budget, *, at_most: int = 1_000_000) -> int:
    """Return how often an event may happen within a budget; 0 if not even once.

    Examples
    --------
    >>> most_repeats(Pure("0.1"), Budget(3))
    30
    """

    def fit(count: int) -> bool:
        return compose({event: count}, delta=total.delta) <= total.epsilon

    integer_at_least("at_most", at_most, 1)
    low, high = 0, 1
    while high <= at_most and fit(high):
        low, high = high, 2 * high
    high = min(high, at_most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(middle) else (low, middle)
    return low


def _counted(events: Iterable[Event] | Mapping[Event, int]) -> Counter[Event]:
    if isinstance(events, Mapping):
        counts = Counter({e: integer_at_least("count", n, 0) for e, n in events.items() if n})
    else:
        counts = Counter(events)
    for event in counts:
        if not isinstance(event, Event):
            reject("events", "Pure, Approximate, Gaussian or Laplace events", event)
    return counts


def _compose(counts: Mapping[Event, int], delta: Decimal) -> Decimal:
    if not counts:
        return Decimal(0)
    best = min(_by_addition(counts, delta), _by_zcdp(counts, delta))
    # the price of a single event, or of Gaussian noise alone, is exact already
    alone = sum(counts.values()) == 1 or all(isinstance(event, Gaussian) for event in counts)
    if alone or float(delta) < _SMALLEST_PLD_DELTA or not best < _MOST_LOSS:
        return best
    return min(best, _by_loss_distribution(counts, delta, float(best)))


def _by_addition(counts: Mapping[Event, int], delta: Decimal) -> Decimal:
    """Add epsilons and deltas; all Gaussian noise is one Gaussian at the remaining delta."""
    epsilon = square = Decimal(0)
    for event, count in counts.items():
        if isinstance(event, Gaussian):
            square = UP.fma(UP.multiply(event.mu, event.mu), Decimal(count), square)
        else:
            epsilon = UP.fma(price(event).epsilon, Decimal(count), epsilon)
    left = _delta_left(counts, delta)
    if left < 0 or (square > 0 and left == 0):
        return INFINITE
    return UP.add(epsilon, gaussian_epsilon(UP.sqrt(square), left)) if square > 0 else epsilon


def _by_zcdp(counts: Mapping[Event, int], delta: Decimal) -> Decimal:
    rho = Decimal(0)
    for event, count in counts.items():
        rho = UP.fma(zcdp_price(event)[0], Decimal(count), rho)
    left = _delta_left(counts, delta)
    return zcdp_epsilon(rho, left) if left > 0 else INFINITE


def _delta_left(counts: Mapping[Event, int], delta: Decimal) -> Decimal:
    used = Decimal(0)
    for event, count in counts.items():
        if isinstance(event, Approximate):
            used = UP.fma(event.delta, Decimal(count), used)
    return delta - used


def _by_loss_distribution(counts: Mapping[Event, int], delta: Decimal, size: float) -> Decimal:
    """Compose pessimistic privacy-loss distributions; ``size`` is a guess of the result."""
    counts = _coarse(counts)
    # Each event is rounded up by a step. All steps together should be small compared with the
    # result, but not so small that the distributions get long.
    step = min(1e-4, max(1e-2 * size / sum(counts.values()), 1e-5 * size))
    if len(counts) == 1 and not isinstance(only := next(iter(counts)), Gaussian):
        epsilon = float(price(only).epsilon) * (1 + 1e-13)
        step = epsilon / math.ceil(epsilon / step)  # then nothing is rounded
    composed: Any = None
    for event, count in counts.items():
        one = _loss_distribution(event, step)
        many = one.self_compose(count) if count > 1 else one
        composed = many if composed is None else composed.compose(many)
    answer = composed.get_epsilon_for_delta(float(delta) * (1 - 1e-9) - _PLD_SLACK)
    return rounded_up(answer) if math.isfinite(answer) else INFINITE


def _loss_distribution(event: Event, step: float) -> Any:
    from dp_accounting.pld import common  # noqa: PLC0415  (1 s)
    from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: PLC0415

    if isinstance(event, Gaussian):
        return pld.from_gaussian_mechanism(
            float(1 / event.mu) * (1 - 1e-14), value_discretization_interval=step
        )
    if isinstance(event, Laplace):
        return pld.from_laplace_mechanism(
            float(event.scale) * (1 - 1e-14), value_discretization_interval=step
        )
    known = price(event)
    return pld.from_privacy_parameters(
        common.DifferentialPrivacyParameters(
            float(known.epsilon) * (1 + 1e-14), float(known.delta) * (1 + 1e-14)
        ),
        value_discretization_interval=step,
    )


def _coarse(counts: Mapping[Event, int]) -> Mapping[Event, int]:
    """Merge nearly equal events into the more expensive one, until few enough are left."""
    for digits in (16, 3, 2, 1):
        if len(counts) <= _MOST_GROUPS:
            break
        up = Context(prec=digits, rounding=ROUND_CEILING)
        down = Context(prec=digits, rounding=ROUND_FLOOR)
        merged: Counter[Event] = Counter()
        for event, count in counts.items():
            merged[_dearer(event, up, down)] += count
        counts = merged
    return counts


def _dearer(event: Event, up: Context, down: Context) -> Event:
    """Round an event up in cost, to fewer digits; the part no longer matters."""
    if isinstance(event, Gaussian):
        return Gaussian(up.plus(event.mu))
    if isinstance(event, Laplace):
        return Laplace(down.plus(event.scale))
    if isinstance(event, Approximate):
        return Approximate(up.plus(event.epsilon), min(up.plus(event.delta), Decimal("0.99")))
    return Pure(up.plus(event.epsilon))
