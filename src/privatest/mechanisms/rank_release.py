"""From an integer rank statistic to a private result; and the secret draws that break ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.core.results import Outcome
from privatest.laws.ranks import Alternative, NullLaw
from privatest.mechanisms.additive import lattice
from privatest.mechanisms.lattice import noise_law

__all__ = ["rank_outcome", "secret_coins"]


def secret_coins(noise: NoiseSource, count: int) -> NDArray[np.bool_]:
    """Return fair, independent coins: which one of each of ``count`` couples comes first."""
    places = noise.permutation(2 * count)
    first: NDArray[np.bool_] = places[:count] < places[count:]
    return first


def rank_outcome(
    statistic: int,
    *,
    width: int,
    law: NullLaw,
    alternative: Alternative,
    budget: Budget,
    alpha: float,
    noise: NoiseSource,
    facts: dict[str, Any],
    scale: float = 1,
    offset: int = 0,
) -> Outcome:
    """Release a statistic with noise, and the p-value that follows from it.

    Parameters
    ----------
    statistic : int
        scale · S - offset, centred, for the S that people know.
    width : int
        How far it moves between neighbours.
    law : NullLaw
        Of ``statistic`` under the null hypothesis.
    alternative : {"two-sided", "greater", "less"}
        Whether its absolute value, itself or its negative is released.
    budget, alpha, noise
        What may be spent, the level, and the secret randomness.
    facts : dict
        The public facts of the result.
    scale, offset : float and int
        To show the released number as |S - offset/scale| or as S.

    Notes
    -----
    **Sensitivity** ``width``: an absolute value or a sign does not add to it.

    **Privacy** One number is released with lattice noise; the p-value is computed from it and
    public things.
    """
    signed = -statistic if alternative == "less" else statistic
    # noise as wide as a step of the statistic is best, unless steps are far finer than that
    steps = np.diff(np.unique(law.low))
    coarse = bool(steps.size == 0 or width <= 2 * steps.min())
    tulap = noise_law(width, budget, "auto", coarse=coarse)
    value = abs(signed) if alternative == "two-sided" else signed
    noisy = lattice(value, law=tulap, noise=noise)
    pvalue = law.pvalue(noisy, alternative, tulap)
    if alternative == "two-sided":
        shown = noisy / scale
    else:
        shown = ((-noisy if alternative == "less" else noisy) + offset) / scale
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        pvalue=pvalue,
        statistic=shown,
        simulated=noise.simulated,
        **facts,
    )
