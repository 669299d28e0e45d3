"""What tests estimate, and released estimates as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.core.intervals import Interval
from privatest.core.validation import printable

if TYPE_CHECKING:
    from privatest.core.results import Outcome

__all__ = [
    "ESTIMATES",
    "EstimateKind",
    "EstimateRow",
    "EstimateTable",
    "estimate_table",
    "numbered",
    "places_of",
]

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
