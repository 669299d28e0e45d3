"""Distances between distribution functions: one sample and a known law, or two samples.

Awan and Wang (2022). Each is a norm of a difference of distribution functions, so a replaced
record moves it by at most 1/n, whatever the data. Proofs: docs/proofs/ks-type.md.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import Adjacency
from privatest.statistics.ranks import Labels, in_order

__all__ = [
    "LABELLED_ROWS",
    "LATTICE",
    "OneSampleStatistic",
    "Side",
    "TwoSampleStatistic",
    "on_lattice",
    "one_sample",
    "one_sample_counts",
    "one_sample_width",
    "reach",
    "two_sample",
    "two_sample_counts",
    "two_sample_width",
]

OneSampleStatistic = Literal["ks", "kuiper", "cvm", "wasserstein"]
ONE_SAMPLE_STATISTICS: tuple[str, ...] = get_args(OneSampleStatistic)
TwoSampleStatistic = Literal["ks", "kuiper"]
TWO_SAMPLE_STATISTICS: tuple[str, ...] = get_args(TwoSampleStatistic)
Side = Literal["two-sided", "greater", "less"]

LATTICE = 1 << 20  # steps of the integer lattice in which 1/n, the sensitivity, is counted
LABELLED_ROWS = 1 << 22  # up to so many rows those of a cell are put in a random order
_ROUNDING = 1 << 26  # rows up to which nT · LATTICE has an error below 1/2

Floats = NDArray[np.float64]


def one_sample(u: Floats, statistic: OneSampleStatistic, alternative: Side = "two-sided") -> float:
    """Return n · T, T a distance of the values u = F(x) from the uniform law; not private.

    Parameters
    ----------
    u : ndarray
        In [0, 1], in any order.
    statistic : {"ks", "kuiper", "cvm", "wasserstein"}
        sup |F_n - F|, sup (F_n - F) + sup (F - F_n), the root of the integral of (F_n - F)², or
        the integral of |F_n - F|.
    alternative : {"two-sided", "greater", "less"}
        For "ks": sup (F_n - F) if "greater", sup (F - F_n) if "less".

    Notes
    -----
    **Sensitivity** 1 for n · T, replace-one, ties or not; see :func:`one_sample_width`.
    """
    n = len(u)
    # in units of 1/n, so that all rounding errors are those of n · u
    above = n * np.sort(u) - np.arange(n)  # n (u - F_n just before u)
    below = above - 1.0
    if alternative != "two-sided":
        return float(-below.min() if alternative == "greater" else above.max())
    if statistic == "ks":
        return float(max(above.max(), -below.min()))
    if statistic == "kuiper":
        return float(above.max() - below.min())
    middle = above - 0.5
    if statistic == "cvm":
        return float(np.sqrt(1 / 12 + np.square(middle).mean()))
    inside = (above > 0) & (below < 0)
    parts = np.where(inside, np.square(above) + np.square(below), 2 * np.abs(middle))
    return float(0.5 * parts.mean())


def one_sample_counts(
    counts: NDArray[np.int64],
    cdf: Floats,
    statistic: OneSampleStatistic,
    labels: Floats | None,
    alternative: Side = "two-sided",
) -> float:
    """Return n · T from the counts of cells; ``cdf`` is F at the cut points between them.

    With ``labels``, numbers in [0, 1] for the records, a record is spread over its cell: u lies
    between the values of F at its two ends. Without, for "ks" and "kuiper", distances are measured
    at the ends of cells: never more than with labels.

    Notes
    -----
    **Sensitivity** 1, as for :func:`one_sample`: a record has one cell, and one label.
    """
    if labels is not None:
        left, right = np.append(0.0, cdf), np.append(cdf, 1.0)
        u = np.repeat(left, counts) + np.repeat(right - left, counts) * labels
        return one_sample(u, statistic, alternative)
    above = np.cumsum(counts)[:-1] - counts.sum() * cdf
    up, down = float(above.max(initial=0.0)), -float(above.min(initial=0.0))
    return reach(up, down, statistic, alternative)


def on_lattice(scaled: float) -> int:
    """Return n · T as an integer number of lattice steps."""
    return round(scaled * LATTICE)


def one_sample_width(n: int) -> int:
    """How far :func:`on_lattice` of :func:`one_sample` moves when a record is replaced.

    Notes
    -----
    **Sensitivity** n · T moves by at most 1: LATTICE steps, and one more step that covers the
    rounding errors of both neighbours (two or more beyond 2^26 rows).
    Proof: docs/proofs/ks-type.md.
    """
    return LATTICE + 1 + n // _ROUNDING


def two_sample(
    x: Floats,
    y: Floats,
    statistic: TwoSampleStatistic,
    labels: Labels,
    alternative: Side = "two-sided",
) -> int:
    """Return J = n m T as an exact integer, T the distance of the two samples; not private.

    With i and j the numbers of x and y up to a record, J is max |i m - j n| over all records for
    "ks" (max of i m - j n if "greater", of j n - i m if "less"), and max - min for "kuiper".
    Ties are broken by ``labels``, a permutation that belongs to the records of x, then y: if it is
    drawn in secret, independently of the data, the laws of
    :mod:`privatest.laws.ks_two_sample` hold exactly.

    Notes
    -----
    **Sensitivity** See :func:`two_sample_width`.
    """
    n, m = len(x), len(y)
    of_x = in_order(np.arange(n + m) < n, np.concatenate([x, y]), labels)
    walk = np.cumsum(np.where(of_x, m, -n), dtype=np.int64)
    return int(reach(int(walk.max()), -int(walk.min()), statistic, alternative))


def two_sample_counts(
    counts_x: NDArray[np.int64],
    counts_y: NDArray[np.int64],
    statistic: TwoSampleStatistic,
    labels: Labels | None,
    alternative: Side = "two-sided",
) -> int:
    """Return J from the counts of cells: :func:`two_sample` with cells for values.

    Without ``labels`` it is the maximum at the ends of cells only: never more than with them.

    Notes
    -----
    **Sensitivity** That of :func:`two_sample`, with labels and without.
    """
    if labels is not None:
        cells = np.arange(float(len(counts_x)))
        x, y = np.repeat(cells, counts_x), np.repeat(cells, counts_y)
        return two_sample(x, y, statistic, labels, alternative)
    n, m = int(counts_x.sum()), int(counts_y.sum())
    walk = np.cumsum(counts_x * m - counts_y * n)
    return int(reach(int(walk.max()), -int(walk.min()), statistic, alternative))


def reach(up: float, down: float, statistic: str, alternative: Side) -> float:
    """Return the distance "ks" or "kuiper" from how far a difference gets above and below 0."""
    if alternative != "two-sided":
        return up if alternative == "greater" else down
    return max(up, down) if statistic == "ks" else up + down


def two_sample_width(n: int, m: int, adjacency: Adjacency) -> int:
    """How far :func:`two_sample` moves between neighbours; group sizes are public.

    Notes
    -----
    **Sensitivity** Labels stay when a value is replaced. T moves by 1/n if a record of x is
    replaced and by 1/m if one of y is: J by m or n, so max(n, m) for "one" and n + m for "both".
    Attained. Proof: docs/proofs/ks-type.md.
    """
    return n + m if adjacency == "both" else max(n, m)
