"""Privacy noise compared with sampling error: in the p-value, and in the interval.

What is said of the p-value uses the method, the public sizes and the budget alone, and is the same
whatever the data was. What is said of the interval is read off the released interval.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from privatest.core.intervals import Ends, Interval

__all__ = [
    "NOISE",
    "interval_line",
    "noise_line",
    "noise_ratio",
    "quiet",
    "reach",
    "widening_of",
]

# Noise over sampling error where epsilon times the root of n (in each group) is 1, by method id:
# with public groups or one sample, and with private groups. Measured by the loss of power, for
# columns with bounds 8 standard deviations apart (tools/power_tables.py).
NOISE: Mapping[str, tuple[float, float | None]] = MappingProxyType(
    {
        "mannwhitneyu": (3.2, 13.0),
        "kruskal": (3.2, None),
        "median_test": (4.3, None),
        "ks_2samp/ks": (2.1, 20.0),
        "ks_2samp/kuiper": (2.0, 17.0),
        "mmd_test/largest": (5.0, 20.0),
        "ipm_test/mean": (21.0, 70.0),
        "ipm_test/wasserstein": (27.0, 70.0),
        "proportions_test": (3.4, 7.0),
        "symmetry_test/ks": (2.5, None),
        "symmetry_test/kuiper": (3.2, None),
        "sign_test": (2.5, None),
        "wilcoxon": (4.9, None),
        "binom_test": (2.8, None),
        "hsic_test/largest": (18.0, None),
        "kendalltau": (7.3, None),
        "spearmanr": (10.0, None),
        "pearsonr": (11.0, None),
        "linregress": (11.0, None),
        "ttest_ind": (13.0, None),
        "ttest_rel": (25.0, None),
        "f_oneway": (13.0, None),
    }
)
_GAUSSIAN = {"ttest_ind", "ttest_rel", "f_oneway"}  # with delta
_BOUNDED = _GAUSSIAN | {"mmd_test", "ipm_test", "hsic_test", "pearsonr", "linregress"}
_HARDLY, _ALL, _MOST = 1.1, 100, 1000.0  # times as wide; where noise hides the rest, it is _MOST


def quiet() -> bool:
    """Return whether PRIVATEST_QUIET asks for no lines beside the result."""
    return os.environ.get("PRIVATEST_QUIET", "") not in ("", "0")


def reach(sizes: Sequence[int], epsilon: float) -> tuple[float, float]:
    """Return the root of the effective n of a group, and epsilon times it, as noise sees it.

    Sampling error goes with the harmonic mean of the sizes, noise with the smallest one.
    """
    chance = math.sqrt(len(sizes) / sum(1 / size for size in sizes))
    return chance, epsilon * min(sizes) / chance


def noise_ratio(
    method_id: str,
    sizes: Mapping[str, int],
    epsilon: float,
    delta: float = 0.0,
    *,
    private_groups: bool = False,
    rows_per_person: int = 1,
) -> float | None:
    """Return noise over sampling error; None for a method that nobody measured.

    Private groups have no public sizes: halves of the total stand for them.
    """
    known = NOISE.get(method_id)
    constant = None if known is None else known[private_groups]
    people = [*sizes.values()]
    if private_groups:
        people = [max(sum(people) // 2, 1)] * 2
    if constant is None or not people or min(people) < 1:
        return None
    if delta > 0 and method_id in _GAUSSIAN:
        return None  # its noise is split in other ways
    return rows_per_person * constant / reach(people, epsilon)[1]


def noise_line(ratio: float, method_id: str = "") -> str:
    """Say what the ratio means for the p-value, in one sentence."""
    bounded = method_id.partition("/")[0] in _BOUNDED
    bounds = " if the bounds are 8 standard deviations apart" * bounded
    start = f"For the p-value, the privacy noise is {ratio:.2g} times the sampling error{bounds}"
    if ratio < 0.5:
        return f"{start}: privacy costs the test little power."
    if ratio < 1.5:
        return f"{start}: privacy costs the test some power."
    return (
        f"{start}: only large differences can be seen. `privatest plan` says how many rows would "
        "help."
    )


def interval_line(widening: float, ends: tuple[Ends, Ends], limits: tuple[float, float]) -> str:
    """Say what noise does to the interval that is shown, in one sentence.

    Parameters
    ----------
    widening : float
        How many times as wide noise makes it, as of :func:`widening_of`.
    ends : pair of float or ndarray
        Its ends.
    limits : pair of float
        The least and the largest value that there is.
    """
    covered = (np.asarray(ends[0]) <= limits[0]) & (np.asarray(ends[1]) >= limits[1])
    if np.any(covered) or math.isinf(widening):
        return "Noise hides the estimate: the interval holds every possible value."
    if widening < _HARDLY:
        return "Noise hardly widens the interval."
    times = f"{widening:.2g}" if widening < _ALL else f"more than {_ALL}"
    return f"Noise makes the interval {times} times as wide."


def widening_of(interval: Interval, alternative: str, estimate: Ends) -> float | None:
    """Return how many times as wide noise makes an interval; None if its parts are unknown.

    A one-sided interval ends at a public bound, so only what lies on the other side of the
    estimate counts. Of several intervals the one that is widened most counts.
    """
    if interval.sampling is None or interval.privacy is None:
        return None
    low, high, middle, bare = (
        np.atleast_1d(np.asarray(x, dtype=np.float64))
        for x in (interval.low, interval.high, estimate, interval.sampling)
    )
    width = high - low
    if alternative in ("greater", "less"):
        open_part = high - middle if alternative == "greater" else middle - low
        width, bare = width - open_part, bare - open_part
    known = (width > 0) & np.isfinite(width)
    times = width[known] / np.maximum(bare[known], width[known] / _MOST)
    return float(times.max(initial=1.0)) if known.any() else None
