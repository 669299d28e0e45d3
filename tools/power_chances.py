"""The chance that a permutation test rejects a made-up data set: noise is not drawn but summed up.

To permute costs a thousand times what noise costs. So a data set is permuted once, and its chance
is found at every epsilon at which the test would have permuted it in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from benchmarks.power.independence import chance
from benchmarks.power.portfolio import Captured, capturing, rejection
from privatest.mechanisms.permutation import noise_scale, strongest
from privatest.methods.two_groups import swaps_labels

__all__ = ["CHANCES", "chances_of"]

CHANCES = ("mmd", "hsic")
_RELEASE: Any = "pvalue"  # as by default


def chances_of(
    method: str,
    call: Callable[..., Any],
    data: tuple[Any, ...],
    epsilon: float,
    epsilons: Sequence[float],
    **settings: Any,
) -> dict[float, float]:
    """Return the chance to reject at ``epsilon``, and at others that need no other permutations."""
    if method == "hsic":
        return {epsilon: _independence(call, data, epsilon, settings)}
    found = None
    try:
        with capturing("methods.mmd"):
            call(*data, epsilon=epsilon, **settings)
    except Captured as caught:
        found = caught.args[0]
    assert found is not None
    private = call.keywords.get("adjacency") == "row"  # type: ignore[attr-defined]
    total = len(data[0]) + len(data[1])
    swapped = swaps_labels("auto", total, 1, epsilon, _RELEASE)
    same = [
        each
        for each in epsilons
        if not private or swaps_labels("auto", total, 1, each, _RELEASE) == swapped
    ]
    return {each: _two_samples(found, each) for each in same}


def _two_samples(found: dict[str, Any], epsilon: float) -> float:
    largest, bound = strongest(**found, epsilon=epsilon, release=_RELEASE)
    return rejection(largest, noise_scale(bound, epsilon, _RELEASE))


def _independence(
    call: Callable[..., Any], data: tuple[Any, ...], epsilon: float, settings: dict[str, Any]
) -> float:
    def capture(plan: Any, found: Any, *_: Any, **__: Any) -> None:
        raise Captured(plan, found)

    try:
        with patch("privatest.methods.hsic.dependence_result", capture):
            call(*data, epsilon=epsilon, **settings)
    except Captured as caught:
        plan, found = caught.args
        return chance(plan, found, epsilon, _RELEASE)
    return math.nan
