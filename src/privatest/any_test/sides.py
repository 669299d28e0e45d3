"""Private rows of two samples, or of the two sides of pairs, and their subsets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import ADJACENCIES, Adjacency
from privatest.core.validation import one_of
from privatest.custom.space import Rows, Scheme
from privatest.data.bounds import Bounds
from privatest.data.columns import Units
from privatest.data.samples import TwoSamples, beside, encode_pairs, encode_samples
from privatest.engines.shuffled import secret_subsets

__all__ = ["TwoSides", "as_columns", "read_sides"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class TwoSides:
    """Private rows with their public description, and what is to be hidden."""

    samples: TwoSamples
    scheme: Scheme
    adjacency: Adjacency

    @property
    def paired(self) -> bool:
        """Whether row i of x belongs to row i of y."""
        return self.scheme == "independence"

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of each side."""
        return len(self.samples.x), len(self.samples.y)

    def subsets(self, count: int, noise: NoiseSource) -> Iterator[tuple[Rows, Rows]]:
        """Cut the rows, in a secret order, into subsets of nearly equal sizes; yield copies."""
        for left, right in self._parts(count, noise):
            if self.samples.x.units == "own":
                yield as_columns(left), as_columns(right)
            else:
                yield left, right

    def _parts(self, count: int, noise: NoiseSource) -> Iterator[tuple[Rows, Rows]]:
        if not self.paired:
            yield from zip(
                *(secret_subsets(side, count, noise) for side in self.samples), strict=True
            )
            return
        width = self.samples.x.width
        for rows in secret_subsets(beside(*self.samples), count, noise):
            yield np.ascontiguousarray(rows[:, :width]), np.ascontiguousarray(rows[:, width:])


def as_columns(rows: Rows) -> Rows:
    """One column as a flat array, as the tests of scipy.stats take it."""
    return rows[:, 0] if rows.shape[1] == 1 else rows


def read_sides(
    x: Any,
    y: Any,
    scheme: Scheme,
    adjacency: Adjacency,
    given: tuple[Bounds, Bounds, Bounds],
    units: Units,
) -> TwoSides:
    """Fit data to the bounds, bounds_x and bounds_y that were given; refuse what is of no use."""
    bounds, bounds_x, bounds_y = given
    one_of("adjacency", adjacency, ADJACENCIES)
    if scheme == "independence":
        if adjacency == "both":
            raise ParameterError("adjacency='both' is for two samples; here one pair is replaced.")
        if bounds is not None:
            raise ParameterError("bounds is for two samples; give bounds_x and bounds_y.")
        return TwoSides(encode_pairs(x, y, bounds_x, bounds_y, units=units), scheme, "one")
    if adjacency == "row":
        raise PrivacyError(
            "adjacency='row' is not possible here: each group is cut into subsets by its "
            "size, which is then private. Use mmd_test or ipm_test."
        )
    if bounds_x is not None or bounds_y is not None:
        raise ParameterError("bounds_x and bounds_y are for independence; give bounds.")
    samples = encode_samples(x, y, bounds, units=units, adjacency=adjacency)
    return TwoSides(samples, scheme, adjacency)
