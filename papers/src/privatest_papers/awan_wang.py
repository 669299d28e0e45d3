"""Awan and Wang (2022): KS-type and rank tests with laws under the null that are simulated.

A REFERENCE FOR COMPARISON, NOT FOR USE: noise must be simulated. Statistics, sensitivities and
noise are those of the paper and its supplement, corrected where they are misprinted (the
Kruskal-Wallis statistic, the law of geometric noise). Private tests are
:func:`privatest.ks_1samp`, :func:`privatest.ks_2samp`, :func:`privatest.symmetry_test`,
:func:`privatest.mannwhitneyu`, :func:`privatest.kruskal`, :func:`privatest.median_test`,
:func:`privatest.sign_test` and :func:`privatest.wilcoxon`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest_papers import simulated

__all__ = ["TESTS", "paper_decision"]

Floats = NDArray[np.float64]
_REPLICATES = 1000  # of the law under the null, as in the paper
_INSTEAD = "the tests of privatest that are named like these"


@dataclass(frozen=True, slots=True)
class PaperTest:
    """A statistic of many samples at once, and how its noise grows with n.

    Parameters
    ----------
    statistic : callable
        Of samples, one a row; large values speak against the null hypothesis.
    scale : callable
        The factor of the noise, from n.
    tulap : bool
        Tulap noise, or Laplace.
    samples : int
        1, or 2 of equal size.
    """

    statistic: Callable[..., Floats]
    scale: Callable[[int], float]
    tulap: bool
    samples: int = 1


def paper_decision(
    name: str, *samples: Floats, epsilon: float, alpha: float = 0.05, noise: NoiseSource | None
) -> bool:
    """Decide by one of :data:`TESTS`. A reference: simulated noise only.

    Notes
    -----
    **Sensitivity** As published; docs/proofs/ks-type.md and docs/proofs/rank-tests.md.

    **Privacy** None here: noise is simulated.
    """
    source, test = simulated(noise, _INSTEAD), TESTS[name]
    n = len(samples[0])
    value = float(test.statistic(*(rows[None] for rows in samples))[0])
    unit = (
        source.discrete_laplace(1 / epsilon) + float(source.uniforms(1)[0]) - 0.5
        if test.tulap
        else source.laplace(0.0, 1 / epsilon)
    )
    noisy = _folded(name, value + test.scale(n) * unit, n)
    return bool(np.mean(_null(name, n, epsilon) > noisy) < alpha)


@lru_cache(maxsize=256)
def _null(name: str, n: int, epsilon: float) -> Floats:
    """Simulate noisy statistics of normal data; the laws do not depend on that choice."""
    test, rng = TESTS[name], np.random.default_rng([n, 20])
    values = []
    for _ in range(0, _REPLICATES, 100):
        rows = [rng.standard_normal((100, n)) for _ in range(test.samples)]
        values.append(test.statistic(*rows))
    ratio = math.exp(-epsilon)
    if test.tulap:
        first, second = rng.geometric(1 - ratio, size=(2, _REPLICATES))
        unit = first - second + rng.uniform(-0.5, 0.5, _REPLICATES)
    else:
        unit = rng.laplace(scale=1 / epsilon, size=_REPLICATES)
    return _folded(name, np.concatenate(values) + test.scale(n) * unit, n)


def _folded(name: str, values: Floats | float, n: int) -> Floats:
    """Fold statistics that speak on both sides, after their noise."""
    centre = {"median": n / 2, "sign": n / 2, "Wilcoxon": 0.0}.get(name)
    result: Floats = np.asarray(values if centre is None else np.abs(values - centre))
    return result


# --- statistics of many samples, one a row ---------------------------------------------------


def _gaps(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Return normal probabilities in order, and the steps above and below them."""
    from scipy.special import ndtr  # noqa: PLC0415

    n = rows.shape[1]
    sorted_ = ndtr(np.sort(rows, axis=1))
    place = np.arange(1, n + 1)
    return sorted_, (place / n - sorted_).max(axis=1), (sorted_ - (place - 1) / n).max(axis=1)


def _ks(rows: Floats) -> Floats:
    _, above, below = _gaps(rows)
    return np.maximum(above, below)


def _kuiper(rows: Floats) -> Floats:
    _, above, below = _gaps(rows)
    result: Floats = above + below
    return result


def _cramer(rows: Floats) -> Floats:
    sorted_, *_ = _gaps(rows)
    n = rows.shape[1]
    steps = (2 * np.arange(1, n + 1) - 1) / (2 * n)
    squares = 1 / (12 * n) + np.square(steps - sorted_).sum(axis=1)
    result: Floats = np.sqrt(squares / n)
    return result


def _walk(x: Floats, y: Floats) -> Floats:
    """Return differences of the two distribution functions, in steps of 1/n."""
    first = np.argsort(np.hstack([x, y]), axis=1, kind="stable") < x.shape[1]
    result: Floats = np.cumsum(np.where(first, 1, -1), axis=1) / x.shape[1]
    return result


def _ks_two(x: Floats, y: Floats) -> Floats:
    result: Floats = np.abs(_walk(x, y)).max(axis=1)
    return result


def _kuiper_two(x: Floats, y: Floats) -> Floats:
    walk = _walk(x, y)
    result: Floats = np.maximum(walk.max(axis=1), 0) - np.minimum(walk.min(axis=1), 0)
    return result


def _rank_sum(x: Floats, y: Floats) -> Floats:
    order = np.argsort(np.hstack([x, y]), axis=1)
    ranks = np.argsort(order, axis=1)[:, : x.shape[1]] + 1
    result: Floats = ranks.sum(axis=1).astype(np.float64)
    return result


def _mann_whitney(x: Floats, y: Floats) -> Floats:
    """Return minus the smaller rank sum: small ones speak against the null hypothesis."""
    first, n = _rank_sum(x, y), x.shape[1]
    result: Floats = -np.minimum(first, n * (2 * n + 1) - first)
    return result


def _kruskal(x: Floats, y: Floats) -> Floats:
    n = x.shape[1]
    total = 2 * n
    gap = np.abs(_rank_sum(x, y) - n * (total + 1) / 2)
    result: Floats = 4 * (total - 1) / total**2 * 2 * gap
    return result


def _median(x: Floats, y: Floats) -> Floats:
    n = x.shape[1]
    order = np.argsort(np.argsort(np.hstack([x, y]), axis=1), axis=1)
    result: Floats = (order[:, :n] >= n).sum(axis=1).astype(np.float64)
    return result


def _signs(rows: Floats) -> Floats:
    """Return partial sums of signs, from the largest absolute value down."""
    order = np.argsort(-np.abs(rows), axis=1)
    result: Floats = np.cumsum(np.sign(np.take_along_axis(rows, order, axis=1)), axis=1)
    return result


def _ks_paired(rows: Floats) -> Floats:
    result: Floats = np.abs(_signs(rows)).max(axis=1) / rows.shape[1]
    return result


def _kuiper_paired(rows: Floats) -> Floats:
    walk = _signs(rows)
    spread = np.maximum(walk.max(axis=1), 0) - np.minimum(walk.min(axis=1), 0)
    result: Floats = spread / rows.shape[1]
    return result


def _sign(rows: Floats) -> Floats:
    result: Floats = (rows > 0).sum(axis=1).astype(np.float64)
    return result


def _wilcoxon(rows: Floats) -> Floats:
    ranks = np.argsort(np.argsort(np.abs(rows), axis=1), axis=1) + 1
    result: Floats = (ranks * np.sign(rows)).sum(axis=1)
    return result


TESTS = {
    "KS": PaperTest(_ks, lambda n: 1 / n, True),
    "Kuiper": PaperTest(_kuiper, lambda n: 1 / n, True),
    "Cramér-von Mises": PaperTest(_cramer, lambda n: 1 / n, False),
    "two-sample KS": PaperTest(_ks_two, lambda n: 1 / n, True, 2),
    "two-sample Kuiper": PaperTest(_kuiper_two, lambda n: 1 / n, True, 2),
    "Mann-Whitney": PaperTest(_mann_whitney, lambda n: n, False, 2),
    "Kruskal-Wallis": PaperTest(_kruskal, lambda _: 8.0, False, 2),
    "median": PaperTest(_median, lambda _: 1.0, True, 2),
    "paired KS": PaperTest(_ks_paired, lambda n: 2 / n, True),
    "paired Kuiper": PaperTest(_kuiper_paired, lambda n: 2 / n, True),
    "sign": PaperTest(_sign, lambda _: 1.0, True),
    "Wilcoxon": PaperTest(_wilcoxon, lambda n: 2 * n, False),
}
