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
    "LATTICE",
    "OneSampleStatistic",
    "Side",
    "TwoSampleStatistic",
    "on_lattice",
    "one_sample",
    "one_sample_width",
    "two_sample",
    "two_sample_width",
]

OneSampleStatistic = Literal["ks", "kuiper", "cvm", "wasserstein"]
ONE_SAMPLE_STATISTICS: tuple[str, ...] = get_args(OneSampleStatistic)
TwoSampleStatistic = Literal["ks", "kuiper"]
TWO_SAMPLE_STATISTICS: tuple[str, ...] = get_args(TwoSampleStatistic)
Side = Literal["two-sided", "greater", "less"]

LATTICE = 1 << 20  # steps of the integer lattice in which 1/n, the sensitivity, is counted
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
    walk = np.cumsum(np.where(of_x, m, -n), dtype=np.int64)  # it ends at 0
    up, down = int(walk.max()), -int(walk.min())
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
