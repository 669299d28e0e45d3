"""The exact privacy loss of mechanisms on the numbers that met their noise.

Laws of noise are known, so what neighbours lose needs no runs: closed forms for noise on numbers,
and the 10,000 probabilities of a p-value. Losses of several mechanisms of one run add up.
What is said of the grids of floats is exact to a part of 2^-30.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from privatest.audit.permutation_law import Statistics, decision_loss, log_mass, pvalue_loss
from privatest.audit.telling import visible_loss
from privatest.core.noise import MechanismCall
from privatest.core.privacy import gaussian_delta
from privatest.mechanisms.additive import selection_weights
from privatest.mechanisms.permutation import (
    PVALUE_GRID,
    Release,
    on_steps,
    smoothed_decision,
    smoothed_pvalue,
)
from privatest.mechanisms.subsample import COIN

__all__ = ["exact_loss", "shown_loss"]

_CELLS = np.arange(1, PVALUE_GRID + 1, dtype=np.float64)
_ALL = np.array([np.inf])


def exact_loss(
    first: Sequence[MechanismCall], second: Sequence[MechanismCall], delta: float
) -> float:
    """Return the epsilon, at ``delta``, that the mechanisms of a run lose on neighbours.

    Axes of a covariance have no closed form, and are left out: the value is a lower bound then.
    """
    pure, squares, last = 0.0, 0.0, None
    for place, (a, b) in enumerate(zip(first, second, strict=True)):
        if a.mechanism.startswith("gaussian"):
            squares += float(((a.values - b.values) ** 2).sum()) / a.scale**2
        elif a.mechanism == "one draw":
            if a.repeat is None or a.repeat is not last:
                pure += _one_draw(a, second[place])
            last = a.repeat
        else:
            pure += _pure(a, b)
    return _at(pure, delta if not squares else 0.0) + _gaussian(math.sqrt(squares), delta)


def shown_loss(first: Sequence[MechanismCall], second: Sequence[MechanismCall]) -> float | None:
    """Return what draws would show of a smoothed p-value's loss; None for all else."""
    if len(first) != 1 or _function(first[0]) is not smoothed_pvalue:
        return None
    return visible_loss(_steps(first[0]), _steps(second[0]), first[0].scale)


def _pure(a: MechanismCall, b: MechanismCall) -> float:
    if a.mechanism == "Tulap":  # a shift passes that many of its blocks
        return math.ceil(a.ratio(b) - 1e-12) / a.scale
    if a.mechanism == "smoothed permutation":
        return _smoothed(a, b)
    if a.mechanism == "flipped coins":
        return _coins(a, b)
    if a.mechanism == "axes":
        return 0.0
    if a.mechanism == "exponential":
        return _selection(a, b)
    return a.ratio(b) * a.bounds[0] / a.scale


def _selection(a: MechanismCall, b: MechanismCall) -> float:
    """Return the loss of the choice of a candidate, by the weights that it is drawn with."""
    logs = []
    for call in (a, b):
        arguments = _arguments(call)
        epsilon, sensitivity = arguments["budget"].pure_epsilon, arguments["sensitivity"]
        scores = arguments["scores"]
        weights = selection_weights(scores, sensitivity=sensitivity, epsilon=epsilon)
        masses = weights.astype(np.float64) * arguments["multiplicities"]
        logs.append(np.log(masses / masses.sum()))
    return float(np.abs(logs[0] - logs[1]).max())


def _at(pure: float, delta: float) -> float:
    """Return the epsilon at delta of the worst law with that pure loss."""
    if not delta or not pure:
        return pure
    if pure > 700.0:
        return pure
    rest = math.exp(pure) - delta * (math.exp(pure) + 1)
    return max(0.0, math.log(rest)) if rest > 0 else 0.0


def _gaussian(mu: float, delta: float) -> float:
    """Return the least epsilon at delta of Gaussian noise, for a shift of mu deviations."""
    if mu == 0.0:
        return 0.0
    if delta == 0.0:
        return math.inf
    low, high = 0.0, 1.0
    if gaussian_delta(1 / mu, low) <= delta:
        return 0.0
    while gaussian_delta(1 / mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(1 / mu, middle) > delta else (low, middle)
    return high


def _function(call: MechanismCall) -> object:
    return None if call.repeat is None else call.repeat.func


def _arguments(call: MechanismCall) -> dict[str, Any]:
    if call.repeat is None:
        raise AssertionError("a mechanism can be called again")
    return call.repeat.keywords


def _steps(call: MechanismCall) -> Statistics:
    """Return statistics as the mechanism has them: whole steps of its lattice, less a shift."""
    release: Release = "decision" if _function(call) is smoothed_decision else "pvalue"
    arguments = _arguments(call)
    budget, sensitivity = arguments["budget"], arguments["sensitivity"]
    points, _ = on_steps(call.values, sensitivity, budget.pure_epsilon, release)
    return Statistics.from_list(np.array(points, dtype=np.float64))


def _smoothed(a: MechanismCall, b: MechanismCall) -> float:
    first, second = _steps(a), _steps(b)
    if _function(a) is smoothed_decision:
        return decision_loss(first, second, a.scale, float(_arguments(a)["alpha"]))
    with np.errstate(invalid="ignore"):
        return pvalue_loss(first, second, a.scale, PVALUE_GRID, _CELLS)


def _one_draw(a: MechanismCall, b: MechanismCall) -> float:
    """Return the loss of a decision: the draw is above the smallest threshold, or it is not."""
    edges = []
    for call in (a, b):
        arguments = _arguments(call)
        level, found = arguments["alpha"], []
        for test in arguments["tests"]:
            epsilon = arguments["budget"].pure_epsilon
            points, scale = on_steps(test.statistics, test.sensitivity, epsilon, "decision")
            own = Statistics.from_list(np.array(points, dtype=np.float64))
            share = float(test.share * Fraction(level))
            found.append((own.quantiles(np.array([share]), scale)[0] - own.observed) / scale)
        edges.append(np.array([min(found)]))
    sides = [(log_mass(edge, _ALL), log_mass(-_ALL, edge)) for edge in edges]
    return float(max(abs(x - y)[0] for x, y in zip(*sides, strict=True)))


def _coins(a: MechanismCall, b: MechanismCall) -> float:
    """Return the loss of the majority of flipped coins."""
    flip, most = a.scale / COIN, len(a.values) // 2
    laws = []
    for call in (a, b):
        law = np.ones(1)
        for rejects in call.values:
            heads = 1 - flip if rejects else flip
            law = np.convolve(law, [1 - heads, heads])
        laws.append((law[: most + 1].sum(), law[most + 1 :].sum()))
    return float(max(abs(math.log(x / y)) for x, y in zip(*laws, strict=True)))
