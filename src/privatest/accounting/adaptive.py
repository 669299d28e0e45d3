"""Sums by which requests may be granted: valid however adaptively requests are chosen.

An analyst picks each request, and its price, after reading the answers so far. Plain addition
and zCDP remain valid then (Rogers et al. 2016; Whitehouse et al. 2023, theorem 1). The tighter
bounds of privacy-loss distributions do not, unless all requests have the same price.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal

from privatest.accounting.events import UP, Event, Gaussian, price
from privatest.core.privacy import Budget

__all__ = ["largest_rho", "zcdp_delta", "zcdp_epsilon", "zcdp_price"]


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
