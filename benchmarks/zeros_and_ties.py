"""Made-up data with zeros and ties, and the tests as they were with coins and broken ties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privatest.core.noise import secret_coins
from privatest.core.privacy import Budget
from privatest.mechanisms.lattice import noise_law, noisy_integer
from privatest.methods.correlation import spearman_law
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import kendall_law, sign_law, wilcoxon_law
from privatest.numerics.order import doubled_ranks, kendall_score, sign_balance, signed_rank

__all__ = ["ALTERNATIVES", "broken", "classical", "coins", "columns", "differences"]

ALTERNATIVES = ("two-sided", "greater")

Floats = NDArray[np.float64]


def differences(law: str, zeros: float, up: float, n: int, rng: np.random.Generator) -> Floats:
    """Draw differences of which a share is 0, and of the others a share positive.

    ``law`` is "sizes" (no two alike) or "steps" (1, 2 or 3: ties).
    """
    sizes = 1 + rng.random(n) if law == "sizes" else rng.integers(1, 4, size=n).astype(np.float64)
    signs = np.where(rng.random(n) < up, 1.0, -1.0)
    return np.asarray(np.where(rng.random(n) < zeros, 0.0, signs * sizes))


def columns(
    law: str, correlation: float, n: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw two columns from a Gaussian copula, cut into levels.

    ``law`` is "continuous", "binary" (halves), "rare" (a tenth, in both) or "five" (fifths).
    """
    x = rng.normal(size=n)
    y = correlation * x + math.sqrt(1 - correlation**2) * rng.normal(size=n)
    cuts = {"binary": [0.5], "rare": [0.9], "five": [0.2, 0.4, 0.6, 0.8]}.get(law)
    if cuts is None:
        return x, y
    edges = stats.norm.ppf(cuts)
    return np.searchsorted(edges, x).astype(float), np.searchsorted(edges, y).astype(float)


def coins(test: str, d: Floats, epsilon: float, seed: int) -> float:
    """Return the two-sided p-value with a coin for each zero and ties broken at random."""
    noise, n = SimulatedNoise(seed), len(d)
    if test == "sign":
        counts = int((d > 0).sum()), int((d < 0).sum())
        value, law, width, step = sign_balance(counts, n, n, noise), sign_law(n), 2, 2
    else:
        labels = noise.permutation(n), secret_coins(noise, n)
        value, law, width, step = signed_rank(d, *labels), wilcoxon_law(n), 4 * n, 4
    drawn = noise_law(width, Budget(epsilon), "auto", step=step)
    return law.pvalue(noisy_integer(abs(value), law=drawn, noise=noise), drawn, "two-sided")


def broken(test: str, x: Floats, y: Floats, epsilon: float, seed: int) -> tuple[float, float]:
    """Return the estimate and the two-sided p-value with ties broken at random."""
    noise, n = SimulatedNoise(seed), len(x)
    labels = noise.permutation(n), noise.permutation(n)
    if test == "kendall":
        value, law = kendall_score(x, y, *labels), kendall_law(n)
        width, top = 2 * (n - 1), n * (n - 1) // 2
    else:
        u, v = (doubled_ranks(c, own) - n - 1 for c, own in zip((x, y), labels, strict=True))
        value, law = int(u @ v) // 2, spearman_law(n)
        width, top = n * (n - 1), n * (n * n - 1) // 6
    drawn = noise_law(width, Budget(epsilon), "auto", step=2)
    noisy = noisy_integer(value, law=drawn, noise=noise)
    pvalue = min(1.0, 2 * law.pvalue(abs(noisy), drawn, "greater"))
    return min(max(noisy / top, -1.0), 1.0), pvalue


def classical(test: str, data: tuple[Floats, ...], alternative: str) -> Any:
    """Return SciPy's result; of no differences other than 0 a p-value of 1."""
    if test in ("kendall", "spearman"):
        name = "kendalltau" if test == "kendall" else "spearmanr"
        return getattr(stats, name)(*data, alternative=alternative)
    (d,) = data
    nonzero = int(np.count_nonzero(d))
    if not nonzero:
        return stats.binomtest(0, 1)
    if test == "sign":
        return stats.binomtest(int((d > 0).sum()), nonzero, alternative=alternative)
    return stats.wilcoxon(d[d != 0], alternative=alternative)
