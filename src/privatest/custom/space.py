"""The public set of data sets that private rows are from, read in their own units.

Made-up rows come from here too: what is tried out before private data is touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import privatest.engines  # noqa: F401 -- looks for the scheduler before rows are loaded
from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Adjacency
from privatest.data.bounds import bounds_of_sides
from privatest.data.domain import Box
from privatest.data.samples import TwoSamples, encode_pairs, encode_samples

__all__ = ["Rows", "Scheme", "Space", "draw", "opposite", "read_space", "typical"]

Rows = NDArray[np.float64]
Scheme = Literal["two-sample", "independence"]


@dataclass(frozen=True, slots=True)
class Space:
    """Which data sets there are, and which of them are neighbours."""

    x: Box
    y: Box
    n: int
    m: int
    paired: bool  # independence: row i of x and row i of y are one record
    both: bool = False  # neighbours differ by a record in each sample

    def arrange(self, x: Rows, y: Rows, shuffles: NDArray[np.intp]) -> tuple[Rows, Rows]:
        """Permute: stacks (permutations, rows, columns) of both sides, as fresh copies."""
        if self.paired:
            return np.repeat(x[None], len(shuffles), axis=0), y[shuffles]
        pooled = np.concatenate([x, y])
        return pooled[shuffles[:, : len(x)]], pooled[shuffles[:, len(x) :]]

    @property
    def moving(self) -> int:
        """How many rows a permutation is of."""
        return self.m if self.paired else self.n + self.m


def read_space(
    data: Any, bounds: Any, scheme: Scheme, adjacency: Adjacency
) -> tuple[TwoSamples, Space]:
    """Read data in its own units; return the public set of data sets that it is from, too."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ParameterError("data must be a pair (x, y).")  # not quoted: it is private
    paired = scheme == "independence"
    x, y = data
    if paired:
        samples = encode_pairs(x, y, *bounds_of_sides(bounds, x, y), units="own")
        if len(samples.x) < 4:
            raise DataError("x and y must have at least 4 rows.")
    else:
        samples = encode_samples(x, y, bounds, units="own", adjacency=adjacency)
        if min(map(len, samples)) < 2:
            raise DataError("each sample must have at least 2 rows.")
    left, right = samples
    both = adjacency == "both"
    return samples, Space(left.box, right.box, len(left), len(right), paired, both)


def typical(box: Box, rng: np.random.Generator, count: int) -> Rows:
    """Draw rows uniformly within the bounds, or from the standard normal law."""
    shape = (count, len(box.lower))
    return box.at(rng.random(shape)) if box.bounded else rng.standard_normal(shape)


def draw(box: Box, rng: np.random.Generator, count: int) -> Rows:
    """Draw adversarial rows: extremes, ties, heavy tails, or all the same."""
    shape, style = (count, len(box.lower)), rng.integers(5)
    if style == 0:
        return typical(box, rng, count)
    if style == 1:
        corner = rng.integers(2, size=shape)
    elif style == 2:
        corner = np.tile(rng.integers(2, size=(count, 1)), (1, shape[1]))
    elif style == 3:
        return np.tile(typical(box, rng, 1), (count, 1))
    else:
        ties = rng.integers(5, size=shape) / 4.0
        return box.at(ties) if box.bounded else 4.0 * ties - 2.0
    if box.bounded:
        return box.at(corner.astype(np.float64))
    reach = 10.0 ** rng.integers(0, 8) if rng.random() < 0.8 else rng.standard_cauchy(shape)
    wide: Rows = (2.0 * corner - 1.0) * reach
    return wide


def opposite(box: Box, rows: Rows) -> Rows:
    """Mirror rows in the middle of the box: the lower bound becomes the upper one."""
    if not box.bounded:
        return -rows
    mirrored: Rows = np.clip(box.upper - (rows - box.lower), box.lower, box.upper)
    return mirrored
