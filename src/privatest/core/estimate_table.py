"""Released means and differences as a table, with their intervals or errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatest.core.validation import printable

__all__ = [
    "EstimateTable",
    "estimate_table",
    "estimated_name",
    "interval_level",
    "numbered",
    "places_of",
]

_MOST_PLACES = 5

# What an interval from "lower" to "upper" may be of, by the name of the estimate.
_ESTIMATED = {
    "difference": "difference{s} of means, first minus second",
    "mean": "mean{s}",
    "tau": "Kendall's tau",
    "rho": "Spearman's rho",
    "correlation": "Pearson's correlation",
    "slope": "line of y on x",
    "proportion": "proportion",
    "proportions": "proportions",
    "cramers_v": "association, Cramér's V",
    "shares": "share{s}",
    "shift": "shift{s}, first minus second",
    "partial_covariance": "covariance{s} given the rest",
}

_TWO = ("first", "second")  # groups without names

# What the rows of such a table are called, by the public parameter that has their names.
_NAMED = ("group_names", "columns", "categories")


@dataclass(frozen=True, slots=True)
class EstimateTable:
    """A caption, and a label and a text for each row."""

    caption: str
    rows: tuple[tuple[str, str], ...]


def estimate_table(
    estimates: Mapping[str, Any], parameters: Mapping[str, Any], alpha: float
) -> EstimateTable | None:
    """Return the means or differences among released estimates, or None if there are none.

    Covariances and regions are for computing: they stay in ``estimates`` and are left out here.
    """
    if estimated_name(estimates) is not None:
        return _intervals(estimates, parameters, alpha)
    if "difference" in estimates and "error" in estimates:
        return _places(estimates, parameters)
    return None


def estimated_name(estimates: Mapping[str, Any]) -> str | None:
    """Return the name of the estimate that the recorded interval is about, None without one."""
    if "lower" not in estimates:
        return None
    return next((name for name in _ESTIMATED if name in estimates), None)


def interval_level(parameters: Mapping[str, Any], alpha: float) -> float:
    """Return the level of the recorded interval: 1 - alpha, unless the test says otherwise."""
    return float(parameters.get("interval_level", 1 - alpha))


def places_of(parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return where released differences were taken: locations, or "cos" and "sin" of waves."""
    if "locations" in parameters:
        return [tuple(place) for place in parameters["locations"]]
    waves = [tuple(wave) for wave in parameters["frequencies"]]
    return [(kind, *wave) for kind in ("cos", "sin") for wave in waves]


def _intervals(
    estimates: Mapping[str, Any], parameters: Mapping[str, Any], alpha: float
) -> EstimateTable:
    what = next(name for name in _ESTIMATED if name in estimates)
    middle, lower, upper = (np.atleast_1d(estimates[name]) for name in (what, "lower", "upper"))
    # a record has no number where an end is infinite
    lower, upper = (
        np.array([infinite if end is None else end for end in ends])
        for ends, infinite in ((lower, -np.inf), (upper, np.inf))
    )
    plural = "s" * (len(middle) > 1)
    percent = f"{100 * interval_level(parameters, alpha):.4g}%"
    level = f"simultaneous {percent} intervals" if plural else f"{percent} interval"
    names = next((parameters[k] for k in _NAMED if parameters.get(k)), None)
    names = names or numbered(len(middle), "value")
    if "proportions" in estimates and what == "difference":
        return _two_shares(estimates, parameters, middle, percent)
    if what == "slope":
        return _line(estimates, f"{middle[0]:.4g} [{lower[0]:.4g}, {upper[0]:.4g}]", percent)
    texts = [
        f"{value:.4g} [{low:.4g}, {high:.4g}]"
        for value, low, high in zip(middle, lower, upper, strict=True)
    ]
    if "mean_x" in estimates:
        means = zip(*(np.atleast_1d(estimates[name]) for name in ("mean_x", "mean_y")), strict=True)
        texts = [
            f"{text}, means {first:.4g} and {second:.4g}"
            for text, (first, second) in zip(texts, means, strict=True)
        ]
    rows = tuple((printable(str(name)), text) for name, text in zip(names, texts, strict=True))
    return EstimateTable(f"private {_caption(what, plural, parameters)} ({level})", rows)


def _caption(what: str, plural: str, parameters: Mapping[str, Any]) -> str:
    """Return what is estimated, in words."""
    if what == "mean" and parameters.get("paired"):
        # a name of the row is that of the difference: it says what is subtracted
        return "mean of differences" + ", first minus second" * (not parameters.get("columns"))
    return _ESTIMATED[what].format(s=plural)


def _line(estimates: Mapping[str, Any], slope: str, percent: str) -> EstimateTable:
    """Return the rows of a regression; the interval is that of the slope."""
    rest = (name for name in ("intercept", "rvalue") if name in estimates)
    rows = (("slope", slope), *((name, f"{estimates[name]:.4g}") for name in rest))
    return EstimateTable(f"private line of y on x ({percent} interval)", rows)


def _two_shares(
    estimates: Mapping[str, Any], parameters: Mapping[str, Any], middle: Any, percent: str
) -> EstimateTable:
    """Return the rows of a comparison of two proportions."""

    def text(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.4g}"

    first, second = estimates["proportions"]
    ratio, *ends = (text(estimates[name]) for name in ("ratio", "ratio_lower", "ratio_upper"))
    rows = (
        ("proportions", f"{first:.4g} and {second:.4g}"),
        ("difference", f"{middle[0]:.4g} [{estimates['lower']:.4g}, {estimates['upper']:.4g}]"),
        ("ratio", f"{ratio} [{ends[0]}, {ends[1]}]"),
    )
    groups = " and ".join(printable(name) for name in parameters.get("group_names", _TWO))
    return EstimateTable(f"private proportions, {groups} ({percent} intervals)", rows)


def numbered(count: int, single: str = "column 1") -> list[str]:
    """Label columns that have no names by number; ``single`` is the label of an only column."""
    return [single] if count == 1 else [f"column {place}" for place in range(1, count + 1)]


def _places(estimates: Mapping[str, Any], parameters: Mapping[str, Any]) -> EstimateTable:
    found = sorted(
        zip(places_of(parameters), estimates["difference"], estimates["error"], strict=True),
        key=lambda entry: -abs(entry[1]) / entry[2],
    )
    rows = []
    for place, difference, error in found[:_MOST_PLACES]:
        shown = ", ".join(f"{v:.4g}" if isinstance(v, float) else printable(str(v)) for v in place)
        rows.append((f"at ({shown})", f"{difference:.4g} ± {error:.2g}"))
    return EstimateTable(
        "where the samples differ most (difference ± error with noise)", tuple(rows)
    )
