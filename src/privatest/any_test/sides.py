"""Private rows of two samples, or of the two sides of pairs, and their subsets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import ADJACENCIES, Adjacency
from privatest.core.validation import one_of
from privatest.custom.space import Box
from privatest.data.domain import Domain
from privatest.data.encoding import described, encode_pairs, encode_samples

__all__ = ["Rows", "Scheme", "TwoSides", "as_columns", "read_sides"]

Rows: TypeAlias = NDArray[np.float64]
Scheme = Literal["two-sample", "independence"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class TwoSides:
    """Encoded rows, their public description, and what is to be hidden."""

    x: Rows
    y: Rows
    scheme: Scheme
    domains: tuple[Domain, Domain]
    boxes: tuple[Box, Box]
    adjacency: Adjacency
    unit: str
    rows_per_person: int

    @property
    def smaller(self) -> int:
        """Size of the smaller sample."""
        return min(len(self.x), len(self.y))

    def subsets(
        self, count: int, noise: NoiseSource, *, own_units: bool
    ) -> Iterator[tuple[Rows, Rows]]:
        """Cut the rows, in a secret order, into subsets of nearly equal sizes; yield copies."""
        first = noise.permutation(len(self.x))
        paired = self.scheme == "independence"
        second = first if paired else noise.permutation(len(self.y))
        x, y = self.x, self.y
        if own_units:
            x, y = as_columns(self.boxes[0].own_units(x)), as_columns(self.boxes[1].own_units(y))
        parts = np.array_split(first, count), np.array_split(second, count)
        for left, right in zip(*parts, strict=True):
            yield x[left], y[right]


def as_columns(rows: Rows) -> Rows:
    """One column as a flat array, as the tests of scipy.stats take it."""
    return rows[:, 0] if rows.shape[1] == 1 else rows


def read_sides(
    x: Any,
    y: Any,
    scheme: Scheme,
    adjacency: Adjacency,
    *,
    bounds: Any,
    bounds_x: Any,
    bounds_y: Any,
) -> TwoSides:
    """Fit data to its public bounds; what the scheme has no use for is refused."""
    one_of("adjacency", adjacency, ADJACENCIES)
    if scheme == "independence":
        if adjacency == "both":
            raise ParameterError("adjacency='both' is for two samples; here one pair is replaced.")
        if bounds is not None:
            raise ParameterError("bounds is for two samples; give bounds_x and bounds_y.")
        bounds_x, bounds_y = described(bounds_x, x), described(bounds_y, y)
        left, right = encode_pairs(x, y, bounds_x, bounds_y)
        rows, domains = (left.rows, right.rows), (left.domain, right.domain)
        adjacency, unit, per_person = "one", left.unit, left.rows_per_person
    else:
        if adjacency == "row":
            raise PrivacyError(
                "adjacency='row' is not possible here: each group is cut into subsets by its "
                "size, which is then private. Use mmd_test or ipm_test."
            )
        if bounds_x is not None or bounds_y is not None:
            raise ParameterError("bounds_x and bounds_y are for independence; give bounds.")
        bounds_x = bounds_y = bounds = described(bounds, x, y)
        both = encode_samples(x, y, bounds)
        rows, domains = (both.x, both.y), (both.domain, both.domain)
        unit, per_person = both.unit, both.rows_per_person
    boxes = Box.of(bounds_x, rows[0].shape[1]), Box.of(bounds_y, rows[1].shape[1])
    return TwoSides(*rows, scheme, domains, boxes, adjacency, unit, per_person)
