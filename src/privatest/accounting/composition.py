"""The cost of a list of events that does not depend on any answer.

Each bound here is valid, so the smallest is too. None of them may be used to grant requests one
by one to analysts who choose the next request after reading the last answer: see
privatest.accounting.adaptive, and docs/accounting.md for a counterexample.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from privatest.accounting.adaptive import zcdp_epsilon, zcdp_price
from privatest.accounting.events import (
    INFINITE,
    UP,
    Approximate,
    Event,
    Gaussian,
    Laplace,
    Pure,
    gaussian_epsilon,
    price,
    rounded_up,
)
from privatest.core.privacy import Amount, Budget
from privatest.core.validation import integer_at_least, reject

__all__ = ["compose", "fits", "most_repeats"]

_MOST_GROUPS = 48  # distinct events in one privacy-loss distribution: 10 ms each
_SMALLEST_PLD_DELTA = 1e-9  # below it, rounding errors of the Fourier transform would matter
_PLD_SLACK = 1e-10  # a bound on those errors, subtracted from delta
_MOST_LOSS = 50  # beyond it the distributions get long, and there is no privacy anyway


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
