"""Samples of numeric columns with public bounds, and the units that estimates are shown in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Budget
from privatest.core.validation import one_of, reject
from privatest.data.bounds import Bounds, bounds_of_measurements
from privatest.data.domain import Box
from privatest.data.limits import refuse_wide_bounds, rows_of_a_person
from privatest.data.samples import (
    Sample,
    TwoSamples,
    encode_pairs,
    encode_sample,
    encode_several,
)
from privatest.data.schema import NumericColumn, Schema
from privatest.data.stream import Joined
from privatest.means.bootstrap import Contrast
from privatest.means.release import Released, cube_moments, plan_release, release_sample

__all__ = [
    "BY_SIZES",
    "check_one_column",
    "compare_two",
    "covariance_in_units",
    "difference_sample",
    "in_units",
    "look_at_one",
    "numeric_groups",
    "numeric_sample",
    "numeric_samples",
    "release_rows",
    "sample_budget",
    "shown_columns",
]

BY_SIZES = "the noise and the statistic need the group sizes"

Floats = NDArray[np.float64]


def numeric_sample(x: Any, bounds: Bounds) -> Sample:
    """Read a sample of numeric columns with public bounds."""
    _require_bounds(bounds)
    sample = encode_sample(x, bounds)
    _check_columns(sample)
    return sample


def numeric_samples(x: Any, y: Any, bounds: Bounds, adjacency: Adjacency) -> TwoSamples:
    """Read two samples of numeric columns with public bounds."""
    first, second = numeric_groups((x, y), bounds, adjacency)
    return TwoSamples(first, second)


def numeric_groups(data: Sequence[Any], bounds: Bounds, adjacency: Adjacency) -> tuple[Sample, ...]:
    """Read samples of the same numeric columns with public bounds."""
    _require_bounds(bounds)
    samples = encode_several(data, bounds, adjacency=adjacency)
    _check_columns(samples[0])
    return samples


def difference_sample(x: Any, y: Any, bounds: Bounds) -> Sample:
    """Read the differences x - y of paired rows of one bounded column each, as one sample.

    Their bounds follow from those of x and y, so that they are public. A difference is a function
    of its own pair alone, rounding included.
    """
    _require_bounds(bounds)
    sides = encode_pairs(x, y, *bounds_of_measurements(bounds, x, y), units="own")
    for side in sides:
        if side.domain.levels != (0,):
            raise DataError("x and y must each be one numeric column.")
        _check_columns(side)
    left, right = sides
    low = float(left.box.lower[0] - right.box.upper[0])
    high = float(left.box.upper[0] - right.box.lower[0])
    rows = Joined((left.held, right.held), partial(_differences, low, high), 1)
    titles = [(side.names or (fallback,))[0] for side, fallback in zip(sides, "xy", strict=True)]
    name = " - ".join(titles)
    schema = Schema({name: NumericColumn(low, high)}, left.rows_per_person)
    return Sample(rows, schema, None if titles == ["x", "y"] else (name,))


def _differences(low: float, high: float, left: Floats, right: Floats) -> Floats:
    return np.clip((left - right - low) / (high - low), 0.0, 1.0)


def check_one_column(sample: Sample, name: str) -> None:
    """Refuse several columns."""
    if sample.domain.dimension != 1:
        raise DataError(f"{name} must have one column; for several use hotelling_test.")


def _require_bounds(bounds: Bounds) -> None:
    """Refuse to go on without public bounds: a mean of unbounded values cannot be private."""
    if bounds is None:
        raise ParameterError(
            "bounds must be given: a pair (lower, upper), one for each column, or a Schema. The "
            "noise depends on them, and bounds found from the data would leak it."
        )


def _check_columns(sample: Sample) -> None:
    """Refuse columns that have no mean, and bounds whose squares are not finite."""
    if sample.domain.categorical:
        name = (sample.names or ())[sample.domain.categorical[0]]
        raise DataError(f"column {name!r} is categorical: means need numeric columns.")
    refuse_wide_bounds(sample)


def in_units(box: Box, u: Floats) -> Floats:
    """Return a point of the cube [-1, 1]^d in the units of the data."""
    return box.centre + box.half * u


def covariance_in_units(box: Box, covariance: Floats) -> Floats:
    """Return a covariance of the cube [-1, 1]^d in the units of the data."""
    return covariance * np.outer(box.half, box.half)


def shown_columns(sample: Sample) -> dict[str, Any]:
    """Names of the columns, where there are any: a public parameter."""
    return {} if sample.names is None else {"columns": list(sample.names)}


def sample_budget(budget: Budget, adjacency: Adjacency, groups: int = 2) -> Budget:
    """Return what each sample may spend: a person is in one of them, or in all."""
    if adjacency == "row":
        raise ParameterError(
            "adjacency must be 'one' or 'both': the noise and the statistic need the sizes of "
            "the groups, so they have to be public. For private groups use mmd_test or ipm_test."
        )
    one_of("adjacency", adjacency, ("one", "both"))
    return budget if adjacency == "one" else budget.divided(groups)


def look_at_one(sample: Sample, budget: Budget, noise: NoiseSource, **share: float) -> Contrast:
    """Release one sample."""
    if len(sample) < 2:
        raise DataError("x must have at least 2 rows.")
    return Contrast(release_rows([sample], budget, noise, **share), (1.0,), float(len(sample)))


def compare_two(
    samples: TwoSamples, budget: Budget, noise: NoiseSource, *, equal_covariance: bool
) -> Contrast:
    """Release two samples; ``budget`` is that of each."""
    n, m = map(len, samples)
    if min(n, m) < 2:
        raise DataError("each sample must have at least 2 rows.")
    if not isinstance(equal_covariance, bool):
        reject("equal_covariance", "True or False", equal_covariance)
    released = release_rows(samples, budget, noise)
    # unequal: remark 3.2 of Dunsche, Kutta and Dette
    weights = (
        ((n - 1) / (n + m - 2), (m - 1) / (n + m - 2))
        if equal_covariance
        else (m / (n + m), n / (n + m))
    )
    return Contrast(released, weights, n * m / (n + m), equal_covariance)


def release_rows(
    samples: Sequence[Sample], budget: Budget, noise: NoiseSource, **share: float
) -> tuple[Released, ...]:
    """Release mean and covariance of each sample; ``budget`` is that of each."""
    person = rows_of_a_person(*samples)
    plans = [plan_release(len(sample), sample.width, budget, person, **share) for sample in samples]
    found = cube_moments(*samples)  # all of it is read before noise is drawn
    return tuple(release_sample(own, plan, noise) for own, plan in zip(found, plans, strict=True))
