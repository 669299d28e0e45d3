"""Exact laws of what a permutation test releases, and of the published one that is not private.

The laws are those by which ``privatest audit`` computes an exact loss.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.integrate import quad

from privatest.audit.losses import (
    Array,
    PermutedStatistics,
    decision_loss,
    log_cells,
    log_mass,
    pvalue_loss,
    rejection,
    survival,
)

__all__ = [
    "Array",
    "PermutedStatistics",
    "decision_loss",
    "log_cells",
    "log_mass",
    "pvalue_loss",
    "rank_pvalue_probability",
    "rejection",
    "survival",
]


def rank_pvalue_probability(statistics: tuple[float, ...], scale: float, exceeding: int) -> float:
    """P(p = (1 + exceeding)/(B + 1)) of Kim and Schrab's algorithm 1: noise on every statistic."""
    observed, *permuted = statistics

    def integrand(x: float) -> float:
        law = np.ones(1)
        for value in permuted:
            above = float(survival(np.array((x - value) / scale)))
            law = np.convolve(law, [1 - above, above])
        return float(law[exceeding]) * math.exp(-abs(x - observed) / scale) / (2 * scale)

    edges = [-math.inf, *sorted(set(statistics)), math.inf]  # the integrand has kinks there
    pieces = itertools.pairwise(edges)
    return math.fsum(quad(integrand, a, b, epsabs=1e-14, epsrel=1e-11)[0] for a, b in pieces)
