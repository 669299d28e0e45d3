"""An integer statistic with a known law under the null hypothesis: noise, p-value, result.

The law is public, so one noisy number is all that is released. Proofs: docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Budget, Sensitivity
from privatest.core.results import Outcome
from privatest.mechanisms.additive import noisy_integers
from privatest.numerics.laws import Alternative, LatticeTulap, Law, cumulated, lattice_tulap
from privatest.numerics.order import Tree, tree_counts, tree_width

Mechanism = Literal["auto", "tulap", "laplace"]
MECHANISMS: tuple[str, ...] = get_args(Mechanism)

_TULAP_BELOW = 4.16  # epsilon at which Laplace noise starts to have the smaller variance


def noise_law(width: int, budget: Budget, mechanism: Mechanism, *, step: int = 1) -> LatticeTulap:
    """Choose the noise for an integer that moves by at most ``width``.

    Parameters
    ----------
    width : int
        The sensitivity.
    budget : Budget
        Tulap noise is cut off if delta > 0; Laplace noise is a little smaller then.
    mechanism : {"auto", "tulap", "laplace"}
        Laplace noise is discrete Laplace on all integers: Tulap of width 1, epsilon / width.
    step : int
        How far apart the statistic's values are. Tulap noise as wide as a step or two is best at
        every epsilon; if steps are finer, it stays wide when epsilon grows and Laplace does not.
    """
    epsilon, delta = budget.as_floats
    if mechanism == "auto":
        coarse = width <= 2 * step
        mechanism = "tulap" if coarse or delta > 0 or epsilon < _TULAP_BELOW else "laplace"
    if mechanism == "tulap":
        return lattice_tulap(width, budget)
    return laplace_law(width, budget.pure_epsilon)


def part_law(width: int, epsilon: float) -> LatticeTulap:
    """Choose the noise for an integer that moves by at most ``width``, for a part of a budget.

    Parameters
    ----------
    width : int
        The sensitivity, many steps wide.
    epsilon : float
        What is spent; pure.
    """
    if epsilon < _TULAP_BELOW:
        return LatticeTulap(width, epsilon)
    return laplace_law(width, epsilon)


def laplace_law(width: int, epsilon: float) -> LatticeTulap:
    """Return discrete Laplace noise for an integer that moves by at most ``width``."""
    return LatticeTulap(1, math.nextafter(epsilon / width, 0.0), blocks=width)


def noisy_integer(value: int, *, law: LatticeTulap, noise: NoiseSource) -> float:
    """Add Tulap noise to an integer, and spread the sum evenly around its lattice point.

    Parameters
    ----------
    value : int
        The private integer; it moves by at most ``law.width · law.blocks`` between neighbours.
    law : LatticeTulap
        From :func:`noise_law`, which has the budget.
    noise : NoiseSource
        The secret randomness.

    Returns
    -------
    float
        The value plus noise with the continuous law ``law``.

    Notes
    -----
    **Sensitivity** ``law.width · law.blocks``, in absolute value, on integers.

    **Privacy** width · D + U, D discrete Laplace of scale 1/epsilon and U uniform on width
    consecutive integers, has equal mass on each block of width integers, so a shift by at most
    the width passes at most one block: epsilon-private. Blocks of one integer each, discrete
    Laplace noise, cost epsilon for each integer that is passed. Cut off, only the outermost width
    integers have no partner: their mass, at most delta, is the delta. What is added after that,
    uniform on (-1/2, 1/2), is post-processing.
    """
    scale = math.nextafter(1.0 / law.epsilon, math.inf)
    kind = "Tulap" if law.blocks == 1 else "discrete Laplace"
    bounds, repeat = (float(law.width * law.blocks),), partial(noisy_integer, value=value, law=law)
    record(noise, kind, value, "absolute", bounds, scale, repeat)
    # integers around 0 if the width is odd, around 1/2 if it is even, which is put right here
    middle, half_step = (law.width - 1) // 2, 0.5 * (1 - law.width % 2)
    while True:
        drawn = law.width * noise.discrete_laplace(scale) + noise.below(law.width) - middle
        if law.edge is None or abs(drawn - half_step) < law.edge:
            break
    spread = (noise.below(1 << 53) + 0.5) / (1 << 53) - 0.5
    return released(noise, float(value + drawn) - half_step + spread)


def noisy_weighted_integers(
    values: Sequence[int],
    *,
    weights: Sequence[float],
    sensitivity: float,
    epsilon: float,
    noise: NoiseSource,
) -> list[int]:
    """Add discrete Laplace noise to integers that move together.

    Parameters
    ----------
    values : sequence of int
        The private integers.
    weights : sequence of float
        Public, above 0: the sum of weight · |movement| is at most ``sensitivity``.
    sensitivity : float
        How far the integers move between neighbours, in that norm.
    epsilon : float
        What is spent in all; pure.
    noise : NoiseSource
        The secret randomness.

    Returns
    -------
    list of int
        Integer i has noise of scale ``sensitivity / (epsilon · weight)``.

    Notes
    -----
    **Sensitivity** ``sensitivity``, in the weighted l1 norm.

    **Privacy** The probability of integer i changes by a factor of at most
    exp(epsilon · weight · |movement| / sensitivity); their product is at most exp(epsilon).
    """
    weighted = [weight * value for weight, value in zip(weights, values, strict=True)]
    scale = math.nextafter(sensitivity / epsilon, math.inf)
    repeat = partial(
        noisy_weighted_integers,
        values=values,
        weights=weights,
        sensitivity=sensitivity,
        epsilon=epsilon,
    )
    record(noise, "discrete Laplace, weighted", weighted, "l1", (sensitivity,), scale, repeat)
    drawn = [noise.discrete_laplace(integers_scale(weight, scale)) for weight in weights]
    return released(noise, [value + z for value, z in zip(values, drawn, strict=True)])


def integers_scale(weight: float, scale: float) -> float:
    """Return the scale of the noise on an integer with ``weight``, rounded up."""
    return math.nextafter(scale / weight, math.inf)


def lattice_pvalue(
    law: Law, noisy: float, noise: LatticeTulap, alternative: Alternative
) -> tuple[float, float]:
    """Return the released number and its p-value.

    Discrete Laplace noise is an integer. The uniform part that :func:`noisy_integer` spreads it by
    is taken off again, so that with little noise the p-value is that of the statistic: Tulap noise,
    whose uniform part is as wide as the sensitivity, keeps it, and its p-value is uniform.
    """
    if noise.blocks == 1:
        return noisy, law.pvalue(noisy, noise, alternative)
    integer = float(round(noisy))
    return integer, law.pvalue(integer - 0.5, noise, alternative)


@dataclass(frozen=True, slots=True)
class PublicNull:
    """The null distribution of an integer statistic, from public numbers alone.

    The integer is unit · S - offset for the statistic S that people know.

    Attributes
    ----------
    law : Law
        Of the integer.
    width : int
        Its sensitivity to one replaced row.
    step : int
        How far apart its values are.
    unit, offset : float and int
        The scale of S. A two-sided test shows |S - offset/unit|.
    smaller : bool
        Whether a two-sided test shows the smaller of S and 2 offset/unit - S instead.
    """

    law: Law
    width: int
    step: int = 1
    unit: float = 1.0
    offset: int = 0
    smaller: bool = False

    def shown(self, noisy: Any, alternative: Alternative) -> Any:
        """Return the statistic that people know for the integer that got the noise."""
        if alternative == "two-sided":
            return (self.offset - noisy) / self.unit if self.smaller else noisy / self.unit
        sign = -1 if alternative == "less" else 1
        return (sign * noisy + self.offset) / self.unit


def release_statistic(
    statistic: int, law: Law, drawn_from: LatticeTulap, alternative: Alternative, noise: NoiseSource
) -> tuple[float, float]:
    """Release a statistic, its negative or its absolute value; return it with its p-value."""
    value = {"two-sided": abs(statistic), "greater": statistic, "less": -statistic}[alternative]
    noisy = noisy_integer(value, law=drawn_from, noise=noise)
    return lattice_pvalue(law, noisy, drawn_from, alternative)


def lattice_outcome(
    statistic: int,
    null: PublicNull,
    *,
    rows_per_person: int = 1,
    alternative: Alternative = "greater",
    mechanism: Mechanism = "auto",
    drawn_from: LatticeTulap | None = None,
    named: str = "",
    budget: Budget,
    alpha: float,
    noise: NoiseSource,
    facts: dict[str, Any],
) -> Outcome:
    """Release an integer statistic with noise, and the p-value that follows from it.

    Parameters
    ----------
    statistic : int
        The private statistic.
    null : PublicNull
        Its null distribution, sensitivity and scale.
    rows_per_person : int
        How many rows a person may have.
    alternative : {"two-sided", "greater", "less"}
        Whether its absolute value, itself or its negative gets the noise.
    mechanism : {"auto", "tulap", "laplace"}
        See :func:`noise_law`.
    drawn_from : LatticeTulap, optional
        The noise, where a part of the budget is spent on something else.
    named : str
        What the two-sided statistic is, in words.
    budget, alpha, noise, facts
        What is spent, the level, the secret randomness, the public fields of the result.

    Notes
    -----
    **Sensitivity** ``null.width``, times the rows of a person: an absolute value or a sign does not
    add to it.

    **Privacy** One number is released at (epsilon, delta); the p-value is computed from it and
    public numbers.
    """
    if drawn_from is None:
        drawn_from = noise_law(null.width * rows_per_person, budget, mechanism, step=null.step)
    noisy, pvalue = release_statistic(statistic, null.law, drawn_from, alternative, noise)
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        simulated=noise.simulated,
        pvalue=pvalue,
        statistic=null.shown(noisy, alternative),
        statistic_name=named if alternative == "two-sided" else "",
        **{"level": "valid" if null.law.proved else "measured"} | facts,
    )


# Counts below every edge of a grid, from noisy counts of a tree: docs/proofs/quantiles.md.


def cumulative_scale(tree: Tree, moved: int, budget: Budget) -> float:
    """Return the scale of the noise on each node; public."""
    return math.nextafter(tree_width(tree, moved) / budget.pure_epsilon, math.inf)


def noisy_cumulative(
    counts: NDArray[np.int64], tree: Tree, *, moved: int, budget: Budget, noise: NoiseSource
) -> NDArray[np.float64]:
    """Release how many are below each edge.

    Parameters
    ----------
    counts : ndarray of int
        The private counts of the cells, whose total is public.
    tree : Tree
        Which sums of them get noise.
    moved : int
        How many of the things that are counted one person has.
    budget : Budget
        With delta > 0 the noise is a little smaller.
    noise : NoiseSource
        The secret randomness.

    Returns
    -------
    ndarray
        Noisy counts below edges 0 ... cells; those of the first and last are exact and public.

    Notes
    -----
    **Sensitivity** :func:`privatest.numerics.order.tree_width`, in the l1 norm.

    **Privacy** All nodes together are (epsilon, delta)-private: exact discrete Laplace noise on
    integers. The counts below edges are sums of them: post-processing.
    """
    nodes = tree_counts(counts, tree)
    bound = Sensitivity(float(tree_width(tree, moved)), "l1")
    noisy = noisy_integers(nodes, sensitivity=bound, budget=budget, noise=noise)
    return cumulated(noisy, tree, float(counts.sum()))
