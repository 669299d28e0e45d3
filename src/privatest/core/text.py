"""Results in words: tables of estimates, and what privacy noise does to p-values and intervals.

Sentences on the p-value depend on the method, the public sizes and the budget alone; those on the
interval on the released interval.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.core.validation import printable

if TYPE_CHECKING:
    from privatest.core.results import Ends, Interval, Outcome

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
    """Return whether PRIVATEST_QUIET switches notes off."""
    return os.environ.get("PRIVATEST_QUIET", "") not in ("", "0")


def reach(sizes: Sequence[int], epsilon: float) -> tuple[float, float]:
    """Return the root of the effective n of a group, and epsilon times it, as noise sees it.

    Sampling error goes with the harmonic mean of the sizes, noise with the smallest one.
    """
    # not sum, which since Python 3.12 rounds in another way: stored results would differ
    chance = math.sqrt(len(sizes) / reduce(add, (1 / size for size in sizes)))
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
    """Return noise over sampling error; None for a method that was not measured.

    Private groups have no public sizes: half of the total is taken for each.
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
    """Say what noise does to the interval: ``widening`` as of :func:`widening_of`."""
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


# What tests estimate, and released estimates as a table.


_MOST_PLACES = 5


@dataclass(frozen=True, slots=True)
class EstimateKind:
    """What the interval of a result is about.

    Attributes
    ----------
    key : str
        Its name among ``Outcome.estimates``.
    what, plural : str
        One of it in words, and several.
    unit : {"data", "share", "coefficient"}
        In which unit its values are.
    limits : pair of float
        The least and the largest value that it can have.
    null : float or None
        Its value under the null hypothesis, where that is a number.
    """

    key: str
    what: str
    plural: str = ""
    unit: str = "data"
    limits: tuple[float, float] = (-math.inf, math.inf)
    null: float | None = None


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """A private estimate with its interval.

    Attributes
    ----------
    name : str
        The column, group or category; "" for a single value without a name.
    value : float
        The estimate.
    interval : Interval
        Its interval; simultaneous where a result has several rows.
    unit : {"data", "share", "coefficient"}
        Units of the data, shares of rows, or a coefficient without unit.
    what : str
        What is estimated, in words.
    """

    name: str
    value: float
    interval: Interval
    unit: str
    what: str


_FIRST_SECOND = ", first minus second"
_SIGNED, _SHARE = (-1.0, 1.0), (0.0, 1.0)
ESTIMATES: Mapping[str, EstimateKind] = MappingProxyType(
    {
        "difference": EstimateKind(
            "difference",
            f"difference of means{_FIRST_SECOND}",
            f"differences of means{_FIRST_SECOND}",
            null=0.0,
        ),
        "difference_of_proportions": EstimateKind(
            "difference", f"difference{_FIRST_SECOND}", "", "share", _SIGNED, 0.0
        ),
        "mean": EstimateKind("mean", "mean", "means"),
        "tau": EstimateKind("tau", "Kendall's tau", "", "coefficient", _SIGNED, 0.0),
        "rho": EstimateKind("rho", "Spearman's rho", "", "coefficient", _SIGNED, 0.0),
        "correlation": EstimateKind(
            "correlation", "Pearson's correlation", "", "coefficient", _SIGNED, 0.0
        ),
        "slope": EstimateKind("slope", "slope of y on x", null=0.0),
        "proportion": EstimateKind("proportion", "proportion", "", "share", _SHARE),
        "proportions": EstimateKind("proportions", "proportion", "proportions", "share", _SHARE),
        "cramers_v": EstimateKind(
            "cramers_v", "association, Cramér's V", "", "coefficient", _SHARE
        ),
        "shares": EstimateKind("shares", "share", "shares", "share"),
        "shift": EstimateKind("shift", f"shift{_FIRST_SECOND}", null=0.0),
        "partial_covariance": EstimateKind(
            "partial_covariance",
            "covariance given the rest",
            "covariances given the rest",
            null=0.0,
        ),
        "feature_differences": EstimateKind("difference", "difference at a location", null=0.0),
    }
)


@dataclass(frozen=True, slots=True)
class EstimateTable:
    """A caption, the cells of each row, and names of the columns where they need some."""

    caption: str
    rows: tuple[tuple[str, ...], ...]
    head: tuple[str, ...] = ()


def estimate_table(outcome: Outcome) -> EstimateTable | None:
    """Return the estimates of a test for a reader, or None if there are none.

    Covariances and regions are for computing: they stay in ``estimates`` and are left out here.
    """
    estimates, parameters, estimated = outcome.estimates, outcome.parameters, outcome.estimated
    if estimated == "feature_differences":
        return _differences_at_places(estimates, parameters)
    rows = outcome.estimate_rows
    if not rows:
        return None
    kind, several = ESTIMATES[estimated], len(rows) > 1
    percent = f"{100 * outcome.interval_level:.4g}%"
    texts = [f"{row.value:.4g} [{row.interval.low:.4g}, {row.interval.high:.4g}]" for row in rows]
    if estimated == "difference_of_proportions":
        return _two_proportions(estimates, parameters, texts[0], percent)
    if estimated == "slope":
        rest = ((name, f"{estimates[name]:.4g}") for name in ("intercept", "rvalue"))
        return EstimateTable(
            f"private line of y on x ({percent} interval)", (("slope", texts[0]), *rest)
        )
    if estimated == "difference":
        means = (np.atleast_1d(estimates[name]) for name in ("mean_x", "mean_y"))
        texts = [
            f"{text}, means {first:.4g} and {second:.4g}"
            for text, first, second in zip(texts, *means, strict=True)
        ]
    what = kind.plural if several else kind.what
    if estimated == "mean" and parameters.get("paired"):
        # a name of the row is that of the difference: it says what is subtracted
        what = "mean of differences" + _FIRST_SECOND * (not parameters.get("columns"))
    level = f"simultaneous {percent} intervals" if several else f"{percent} interval"
    names = (printable(row.name) or "value" for row in rows)
    return EstimateTable(f"private {what} ({level})", tuple(zip(names, texts, strict=True)))


def places_of(parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return where released differences were taken: locations, or "cos" and "sin" of waves."""
    if "locations" in parameters:
        return [tuple(place) for place in parameters["locations"]]
    waves = [tuple(wave) for wave in parameters["frequencies"]]
    return [(kind, *wave) for kind in ("cos", "sin") for wave in waves]


def _two_proportions(
    estimates: Mapping[str, Any], parameters: Mapping[str, Any], difference: str, percent: str
) -> EstimateTable:

    def text(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.4g}"

    first, second = estimates["proportions"]
    ratio, *ends = (text(estimates[name]) for name in ("ratio", "ratio_lower", "ratio_upper"))
    rows = (
        ("proportions", f"{first:.4g} and {second:.4g}"),
        ("difference", difference),
        ("ratio", f"{ratio} [{ends[0]}, {ends[1]}]"),
    )
    groups = " and ".join(map(printable, parameters.get("group_names", ("first", "second"))))
    return EstimateTable(f"private proportions, {groups} ({percent} intervals)", rows)


def numbered(count: int, single: str = "column 1") -> list[str]:
    """Label columns that have no names by number; ``single`` is the label of an only column."""
    return [single] if count == 1 else [f"column {place}" for place in range(1, count + 1)]


def _differences_at_places(
    estimates: Mapping[str, Any], parameters: Mapping[str, Any]
) -> EstimateTable:
    largest = sorted(
        zip(places_of(parameters), estimates["difference"], estimates["error"], strict=True),
        key=lambda entry: -abs(entry[1]) / entry[2],
    )
    rows = []
    for place, difference, error in largest[:_MOST_PLACES]:
        shown = ", ".join(f"{v:.4g}" if isinstance(v, float) else printable(str(v)) for v in place)
        rows.append((f"at ({shown})", f"{difference:.4g} ± {error:.2g}"))
    return EstimateTable(
        "where the samples differ most (difference ± error with noise)", tuple(rows)
    )
