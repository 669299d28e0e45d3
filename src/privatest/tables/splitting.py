"""A budget in even parts."""

from __future__ import annotations

from decimal import Decimal

from privatest.core.privacy import MINIMUM_EPSILON, Budget
from privatest.core.validation import reject

__all__ = ["split_evenly"]

_STEP = Decimal("1e-18")  # a budget is rounded up to this: take it off


def split_evenly(budget: Budget, parts: int) -> Budget:
    """Return what each of some releases may spend; together they stay within the budget."""
    if budget.epsilon < MINIMUM_EPSILON * parts + _STEP * parts:
        reject("epsilon", f"at least {parts}e-6 for adjacency='both'", float(budget.epsilon))
    epsilon, delta = budget.epsilon / parts, budget.delta / parts
    return Budget(epsilon - epsilon % _STEP, delta - delta % _STEP)
