"""Noise against chance: how large privacy noise is beside sampling error, from public numbers.

Only the method, the public sizes and the budget are used, never a value of the result: the line
says the same whatever the data was.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

__all__ = ["NOISE", "noise_line", "noise_ratio", "quiet", "reach"]

# Noise over sampling error where epsilon times the root of n (in each group) is 1, by how the
# method's words begin: with public groups or one sample, and with private groups. Measured by the
# loss of power, for columns with bounds 8 standard deviations apart (tools/power_tables.py).
NOISE: Mapping[str, tuple[float, float | None]] = MappingProxyType(
    {
        "Mann–Whitney": (3.2, 13.0),
        "Kruskal–Wallis": (3.2, None),
        "median test": (4.3, None),
        "two-sample Kolmogorov": (2.1, 20.0),
        "two-sample Kuiper": (2.0, 17.0),
        "two-sample test by the largest of": (5.0, 20.0),
        "two-sample test by difference of means": (21.0, 70.0),
        "two-sample test by Wasserstein": (27.0, 70.0),
        "test of equal proportions": (3.4, 7.0),
        "symmetry test for paired data (Kolmogorov": (2.5, None),
        "symmetry test for paired data (Kuiper": (3.2, None),
        "sign test": (2.5, None),
        "Wilcoxon": (4.9, None),
        "binomial test": (2.8, None),
        "independence test by the largest of": (18.0, None),
        "Kendall": (7.3, None),
        "Spearman": (10.0, None),
        "Pearson": (11.0, None),
        "linear regression": (11.0, None),
        "two-sample t-test": (13.0, None),
        "paired t-test": (25.0, None),
        "one-way analysis of variance": (13.0, None),
    }
)
_GAUSSIAN = ("two-sample t-test", "paired t-test", "one-way analysis")  # with delta
_ROWS = re.compile(r"at most (\d+) rows")


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
    method: str,
    sizes: Mapping[str, int],
    epsilon: float,
    delta: float = 0.0,
    *,
    private_groups: bool = False,
    unit: str = "row",
) -> float | None:
    """Return noise over sampling error; None for a method that nobody measured.

    Private groups have no public sizes: halves of the total stand for them.
    """
    known = next((own for start, own in NOISE.items() if method.startswith(start)), None)
    constant = None if known is None else known[private_groups]
    people = [*sizes.values()]
    if private_groups:
        people = [max(sum(people) // 2, 1)] * 2
    if constant is None or not people or min(people) < 1:
        return None
    if delta > 0 and method.startswith(_GAUSSIAN):
        return None  # its noise is split in other ways
    rows = _ROWS.search(unit)
    return (int(rows[1]) if rows else 1) * constant / reach(people, epsilon)[1]


def noise_line(ratio: float) -> str:
    """Say what the ratio means, in one line."""
    start = f"At this size and epsilon the noise is {ratio:.2g} times sampling error"
    if ratio < 0.5:
        return f"{start}: privacy costs little here."
    if ratio < 1.5:
        return f"{start}: both decide what can be seen."
    return (
        f"{start}: only large differences can be seen. `privatest plan` says how many rows would "
        "help."
    )
