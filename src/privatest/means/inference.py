"""From a released contrast to a p-value and a confidence region: post-processing only."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.intervals import Interval
from privatest.core.results import Outcome
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.domain import Box
from privatest.data.samples import Sample
from privatest.laws.law import Alternative
from privatest.means.any_law import contrast_pvalue, contrast_reach
from privatest.means.bootstrap import (
    Contrast,
    NullDraws,
    replicate,
    scenarios,
    statistic,
    upper_point,
)
from privatest.means.samples import covariance_in_units, in_units, shown_columns
from privatest.means.student import t_pvalue, t_reach

__all__ = [
    "CALIBRATIONS",
    "Calibration",
    "Finding",
    "calibrated",
    "check_replicates",
    "checked_bootstrap",
    "checked_calibration",
    "estimates",
    "infer",
    "infer_one_column",
    "outcome",
]

Floats = NDArray[np.float64]
Calibration = Literal["classical", "any"]
CALIBRATIONS = ("classical", "any")
_FORMER = ("bootstrap", "normal", "asymptotic")


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
    contrast: Contrast, hypothesis: Floats, *, alpha: float, n_bootstrap: int, seed: int
) -> Finding:
    """Test whether the contrast equals ``hypothesis``, and find its confidence region.

    Notes
    -----
    **Sensitivity** None: this uses released values only.

    **Privacy** Post-processing.
    """
    if len(hypothesis) == 1:  # without draws
        found = infer_one_column(contrast, float(hypothesis[0]), alpha=alpha)
        return replace(found, statistic=found.statistic**2)
    scale, size = contrast.released_scale, contrast.size
    observed = float(statistic(contrast.value - hypothesis, scale, size))
    errors = np.sqrt(np.diagonal(scale) / size)
    p, radius, point = 0.0, 0.0, 0.0
    for scenario in scenarios(contrast):
        # the same random numbers in each scenario, so that their maximum is less noisy
        draws = replicate(contrast, scenario, n_bootstrap, public_generator(seed))
        null = NullDraws(draws.statistics, draws.classical, contrast.classical_survival)
        largest = np.max(np.abs(draws.deviations) / np.sqrt(draws.diagonals / size), axis=1)
        p, radius = max(p, null.pvalue(observed)), max(radius, null.critical(alpha))
        point = max(point, upper_point(largest, alpha))
    if p > alpha:  # the region holds what is not rejected, also between two draws
        radius = max(radius, observed * (1 + 1e-9))
    return Finding(observed, p, radius, *_within_bounds(contrast, point * errors, point * errors))


def infer_one_column(
    contrast: Contrast,
    hypothesis: float,
    *,
    alpha: float,
    alternative: Alternative = "two-sided",
    calibration: Calibration = "classical",
) -> Finding:
    """Like :func:`infer` for one column, with a signed t and one-sided alternatives.

    Notes
    -----
    **Sensitivity** None: this uses released values only.

    **Privacy** Post-processing.
    """
    error = math.sqrt(contrast.released_scale[0, 0] / contrast.size)
    deviation = float(contrast.value[0] - hypothesis)
    if calibration == "any":
        p = contrast_pvalue(contrast, deviation, alternative, alpha)
        reach = contrast_reach(contrast, alternative, alpha)
        radius = (max(each for each in reach if each < math.inf) / error) ** 2
    else:
        p = t_pvalue(contrast, deviation, alternative)
        far = t_reach(contrast, alternative, alpha)
        # a one-sided interval is open on the other side, so it ends at the public bounds there
        lower = math.inf if alternative == "less" else far
        upper = math.inf if alternative == "greater" else far
        reach, radius = (lower, upper), (far / error) ** 2
    below, above = (np.array([each]) for each in reach)
    return Finding(deviation / error, p, radius, *_within_bounds(contrast, below, above))


def _within_bounds(contrast: Contrast, below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Cut intervals at the public bounds: a mean is in [-1, 1], a difference of two in [-2, 2].

    A noisy mean may be outside of its bounds, and so of its interval: a reach is negative then.
    """
    value, end = contrast.value, float(len(contrast.samples))
    lower, upper = np.clip(value - below, -end, end), np.clip(value + above, -end, end)
    return value - lower, upper - value


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


def checked_calibration(alpha: float, calibration: str, rng: Rng) -> dict[str, Any]:
    """Return the options of :func:`infer_one_column`, checked."""
    one_of("calibration", calibration, (*CALIBRATIONS, *_FORMER))
    if calibration in _FORMER:
        warnings.warn(
            f"calibration={calibration!r} is called 'classical' now, and will be refused.",
            DeprecationWarning,
            stacklevel=3,
        )
        calibration = "classical"
    public_generator(rng)
    return {"alpha": number("alpha", alpha, above=0, below=1), "calibration": calibration}


def check_replicates(n_bootstrap: int, alpha: float) -> None:
    """Refuse a bootstrap that could never reject."""
    integer_at_least("n_bootstrap", n_bootstrap, 1)
    if alpha * (n_bootstrap + 1) < 1:
        least = f"at least {1 / (n_bootstrap + 1):.3g} with {n_bootstrap} bootstrap replicates"
        reject("alpha", least, alpha)


def checked_bootstrap(alpha: float, n_bootstrap: int, rng: Rng) -> dict[str, Any]:
    """Return the options of :func:`infer`, checked."""
    level = number("alpha", alpha, above=0, below=1)
    check_replicates(n_bootstrap, level)
    # the seed is public, and kept: intervals of other levels come from the same draws
    seed = int(public_generator(rng).integers(2**63))
    return {"alpha": level, "n_bootstrap": n_bootstrap, "seed": seed}


def calibrated(method: str, calibration: Calibration) -> dict[str, str]:
    """Return a method's name, with its calibration where that is not the usual one, and level."""
    if calibration == "classical":
        return {"method": method, "level": "measured"}
    return {"method": f"{method}, valid for any law", "level": "valid"}


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
    public = ("calibration", "n_bootstrap")
    shown |= {name: options[name] for name in public if name in options} | shown_columns(sample)
    facts |= calibrated(facts["method"], options.get("calibration", "classical"))
    return Outcome(
        reject=found.pvalue <= options["alpha"],
        alpha=options["alpha"],
        pvalue=found.pvalue,
        statistic=found.statistic,
        estimates=released,
        estimated="difference" if "difference" in released else "mean",
        parameters=shown,
        intervals=intervals,
        **facts,
    )
