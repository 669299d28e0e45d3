"""From a released contrast to a p-value and a confidence region: post-processing only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.intervals import Interval
from privatest.core.results import Outcome
from privatest.core.validation import Rng, number, public_generator
from privatest.data.domain import Box
from privatest.data.samples import Sample
from privatest.laws.law import Alternative
from privatest.means.bootstrap import Contrast, Replicates, replicate, scenarios, statistic
from privatest.means.samples import check_bootstrap, covariance_in_units, in_units, shown_columns

__all__ = [
    "Calibration",
    "Finding",
    "checked_options",
    "estimates",
    "infer",
    "infer_one_column",
    "outcome",
    "upper_point",
]

Floats = NDArray[np.float64]
Calibration = Literal["bootstrap", "normal", "asymptotic"]


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """What is inferred from a release.

    Attributes
    ----------
    statistic, pvalue : float
        t², or t for one column tested one-sided.
    radius : float
        The region is all θ with size · (w - θ)' S^-1 (w - θ) at most this.
    lower, upper : ndarray
        How far the simultaneous intervals extend below and above each entry.
    """

    statistic: float
    pvalue: float
    radius: float
    lower: Floats
    upper: Floats


def infer(
    contrast: Contrast,
    hypothesis: Floats,
    *,
    alpha: float,
    calibration: Calibration,
    n_bootstrap: int,
    seed: int,
) -> Finding:
    """Test whether the contrast equals ``hypothesis``, and find its confidence region.

    Notes
    -----
    **Sensitivity** None: this uses released values only.

    **Privacy** Post-processing.
    """
    scale, size = contrast.released_scale, contrast.size
    observed = float(statistic(contrast.value - hypothesis, scale, size))
    errors = np.sqrt(np.diagonal(scale) / size)
    if calibration == "asymptotic":
        from scipy.special import chdtrc, chdtri, ndtri  # noqa: PLC0415

        dimension = len(errors)
        reach = -float(ndtri(alpha / (2 * dimension))) * errors  # Bonferroni
        p, radius = float(chdtrc(dimension, observed)), float(chdtri(dimension, alpha))
        return Finding(observed, p, radius, *_within_bounds(contrast, reach))
    p, radius, point = 0.0, 0.0, 0.0
    for draws in _all_replicates(contrast, calibration, n_bootstrap, seed):
        largest = np.max(np.abs(draws.deviations) / np.sqrt(draws.diagonals / size), axis=1)
        p = max(p, _rank(draws.statistics, observed))
        radius = max(radius, upper_point(draws.statistics, alpha))
        point = max(point, upper_point(largest, alpha))
    return Finding(observed, p, radius, *_within_bounds(contrast, point * errors))


def _all_replicates(
    contrast: Contrast, calibration: Calibration, n_bootstrap: int, seed: int
) -> Iterator[Replicates]:
    """Use the same random numbers in each scenario, so that their maximum is less noisy."""
    for scenario in scenarios(contrast, rare=calibration == "bootstrap"):
        yield replicate(contrast, scenario, n_bootstrap, public_generator(seed))


def _rank(values: Floats, observed: float) -> float:
    return float((1 + np.sum(values >= observed)) / (len(values) + 1))


def upper_point(values: Floats, alpha: float) -> float:
    """Return the critical value: exceeding it means a rank p-value of at most alpha."""
    # (1 + #{v >= t})/(count + 1) <= alpha if and only if t is above the k-th largest
    k = math.floor(alpha * (len(values) + 1) + 1e-9)
    return float(np.partition(values, len(values) - k)[len(values) - k])


def infer_one_column(
    contrast: Contrast,
    hypothesis: float,
    *,
    alternative: Alternative,
    alpha: float,
    calibration: Calibration,
    n_bootstrap: int,
    seed: int,
) -> Finding:
    """Like :func:`infer` for one column, with a signed t and one-sided alternatives.

    Notes
    -----
    **Sensitivity** None: this uses released values only.

    **Privacy** Post-processing.
    """
    error = math.sqrt(contrast.released_scale[0, 0] / contrast.size)
    observed = float((contrast.value[0] - hypothesis) / error)
    turned = float(_turn(np.array(observed), alternative))
    if calibration == "asymptotic":
        from scipy.special import ndtr, ndtri  # noqa: PLC0415

        sides = 2 if alternative == "two-sided" else 1
        p, point = min(1.0, sides * float(ndtr(-turned))), -float(ndtri(alpha / sides))
    else:
        p, point = 0.0, -math.inf
        for draws in _all_replicates(contrast, calibration, n_bootstrap, seed):
            t = draws.deviations[:, 0] / np.sqrt(draws.diagonals[:, 0] / contrast.size)
            t = _turn(t, alternative)
            p = max(p, _rank(t, turned))
            point = max(point, upper_point(t, alpha))
    # a one-sided interval is open on the other side, so it ends at the public bounds there
    open_ended = np.array([math.inf])
    lower, _ = _within_bounds(contrast, open_ended if alternative == "less" else point * error)
    _, upper = _within_bounds(contrast, open_ended if alternative == "greater" else point * error)
    return Finding(observed, p, point**2, lower, upper)


def _within_bounds(contrast: Contrast, reach: Floats | float) -> tuple[Floats, Floats]:
    """Cut intervals at the public bounds: a mean is in [-1, 1], a difference of two in [-2, 2].

    In small samples a scenario with rare rows has critical values far beyond them. A noisy mean
    may be outside of its bounds, and so of its interval: a reach is negative then.
    """
    value, end = contrast.value, float(len(contrast.samples))
    lower, upper = np.clip(value - reach, -end, end), np.clip(value + reach, -end, end)
    return value - lower, upper - value


def _turn(t: Floats, alternative: Alternative) -> Floats:
    """Orient t so that large values favour the alternative."""
    if alternative == "two-sided":
        return np.abs(t)
    return t if alternative == "greater" else -t


def estimates(contrast: Contrast, box: Box, found: Finding) -> dict[str, Any]:
    """Return the released estimates, in the units of the data.

    Noise may take a mean out of its public bounds, where it cannot be: it is cut there, as the
    ends of its interval are. The region is about the mean before that.
    """
    samples, end = contrast.samples, float(len(contrast.samples))
    units = partial(np.multiply, box.half) if len(samples) == 2 else partial(in_units, box)
    middle, centre = units(np.clip(contrast.value, -end, end)), units(contrast.value)
    released = {
        "lower": centre - box.half * found.lower,
        "upper": centre + box.half * found.upper,
        "covariance": covariance_in_units(box, contrast.released_covariance),
        "region_shape": covariance_in_units(box, contrast.released_scale / contrast.size),
        "region_radius": found.radius,
        "region_centre": centre,
    }
    if len(samples) == 1:
        return {"mean": middle} | released
    means = {
        name: in_units(box, np.clip(sample.mean, -1.0, 1.0))
        for name, sample in zip(("mean_x", "mean_y"), samples, strict=True)
    }
    return means | {"difference": middle} | released


def checked_options(
    alpha: float, calibration: Calibration, n_bootstrap: int, rng: Rng
) -> dict[str, Any]:
    """Return the options that :func:`infer` and :func:`infer_one_column` share, checked."""
    level = number("alpha", alpha, above=0, below=1)
    check_bootstrap(calibration, n_bootstrap, level)
    return {
        "alpha": level,
        "calibration": calibration,
        "n_bootstrap": n_bootstrap,
        # public, and kept: intervals of other levels come from the same draws
        "seed": int(public_generator(rng).integers(2**63)),
    }


def outcome(
    found: Finding,
    released: dict[str, Any],
    sample: Sample,
    options: dict[str, Any],
    facts: dict[str, Any],
    intervals: Callable[[float], Interval],
    **shown: object,
) -> Outcome:
    """Return the result of a test of means."""
    shown |= {"calibration": options["calibration"]} | shown_columns(sample)
    if options["calibration"] != "asymptotic":
        shown["n_bootstrap"] = options["n_bootstrap"]
    return Outcome(
        reject=found.pvalue <= options["alpha"],
        alpha=options["alpha"],
        pvalue=found.pvalue,
        statistic=found.statistic,
        estimates=released,
        parameters=shown,
        intervals=intervals,
        **facts,
    )
