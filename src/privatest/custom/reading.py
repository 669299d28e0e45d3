"""Private rows as the user's statistic sees them: clipped, in their own units."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency
from privatest.custom.space import Box, Rows, Space
from privatest.data.encoding import described, encode_pairs, encode_samples

__all__ = ["Scheme", "Sides", "read_sides"]

Scheme = Literal["two-sample", "independence"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Sides:
    """The private rows in their own units, and their public description."""

    x: Rows
    y: Rows
    space: Space
    unit: str
    rows_per_person: int

    def in_secret_order(self, noise: NoiseSource) -> tuple[Rows, Rows]:
        """Shuffle the rows of each sample, or pairs: a stored order may depend on values."""
        order = noise.permutation(self.space.n)
        other = order if self.space.paired else noise.permutation(self.space.m)
        return self.x[order], self.y[other]


def read_sides(data: Any, bounds: Any, scheme: Scheme, adjacency: Adjacency) -> Sides:
    """Fit data to its public bounds; what does not fit is refused."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ParameterError("data must be a pair (x, y).")  # not quoted: it is private
    if scheme == "independence":
        bounds_x, bounds_y = _bounds_of_sides(bounds)
        bounds_x, bounds_y = described(bounds_x, data[0]), described(bounds_y, data[1])
        left, right = encode_pairs(data[0], data[1], bounds_x, bounds_y)
        rows_x, rows_y, unit, per_person = left.rows, right.rows, left.unit, left.rows_per_person
        if len(rows_x) < 4:
            raise DataError("x and y must have at least 4 rows.")
    else:
        bounds_x = bounds_y = bounds = described(bounds, *data)
        samples = encode_samples(data[0], data[1], bounds)
        rows_x, rows_y, unit = samples.x, samples.y, samples.unit
        per_person = samples.rows_per_person
        if min(len(rows_x), len(rows_y)) < 2:
            raise DataError("each sample must have at least 2 rows.")
    boxes = Box.of(bounds_x, rows_x.shape[1]), Box.of(bounds_y, rows_y.shape[1])
    paired = scheme == "independence"
    space = Space(*boxes, len(rows_x), len(rows_y), paired, adjacency == "both")
    own = boxes[0].own_units(rows_x), boxes[1].own_units(rows_y)
    return Sides(*own, space, unit, per_person)


def _bounds_of_sides(bounds: Any) -> tuple[Any, Any]:
    if bounds is None:
        return None, None
    if not isinstance(bounds, (tuple, list, np.ndarray)) or len(bounds) != 2:
        raise ParameterError(
            "bounds must be (lower, upper) for all columns, or (bounds of x, bounds of y), "
            "with scheme='independence'."
        )
    if all(isinstance(bound, Real) for bound in bounds):
        return bounds, bounds
    return bounds[0], bounds[1]
