"""The public set that rows lie in, and what a permutation does with them.

Made-up rows come from here too: what is tried out before private data is touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.data.schema import NumericColumn, Schema

__all__ = ["Box", "Rows", "Space"]

Rows = NDArray[np.float64]

_DIGITS = 14  # of a value in its own units, relative to the larger bound; a float has 15


@dataclass(frozen=True, slots=True)
class Box:
    """The public set of a side's rows in their own units; categories are 0, 1, ..."""

    lower: Rows
    upper: Rows
    whole: NDArray[np.bool_]  # columns of integers
    coded: NDArray[np.bool_]  # categorical columns

    @classmethod
    def of(cls, bounds: Any, width: int) -> Box:
        """Describe ``width`` columns by bounds that the encoding has accepted."""
        plain = np.zeros(width, dtype=np.bool_)
        if isinstance(bounds, Schema):
            columns = list(bounds.columns.values())
            numeric = [isinstance(column, NumericColumn) for column in columns]
            lower = [getattr(column, "lower", 0.0) for column in columns]
            upper = [
                column.upper if isinstance(column, NumericColumn) else len(column.categories) - 1.0
                for column in columns
            ]
            whole = [getattr(column, "integer", True) for column in columns]
            return cls(np.array(lower), np.array(upper), np.array(whole), ~np.array(numeric))
        pairs = (-np.inf, np.inf) if bounds is None else np.asarray(bounds, dtype=np.float64)
        pairs = np.broadcast_to(pairs, (width, 2))
        return cls(pairs[:, 0], pairs[:, 1], plain, plain)

    @property
    def bounded(self) -> bool:
        """Whether bounds were declared."""
        return bool(np.isfinite(self.lower).all())

    def own_units(self, encoded: Rows) -> Rows:
        """Undo the encoding to [0, 1]: clipped values in the units they came in.

        Rounded to 14 digits of the larger bound, so that 30 of [0, 77] is 30 again.
        """
        if not self.bounded:
            return encoded
        rows = encoded.copy()
        for index in np.flatnonzero(~self.coded):
            lower, upper = self.lower[index], self.upper[index]
            values = lower + encoded[:, index] * (upper - lower)
            digits = _DIGITS - int(np.ceil(np.log10(max(abs(lower), abs(upper)))))
            if abs(digits) < 290:  # else 10^digits is no longer a float
                values = np.round(values, digits)
            rows[:, index] = np.clip(values, lower, upper)
            # bounds that are no short decimals are met exactly too
            rows[encoded[:, index] == 0.0, index] = lower
            rows[encoded[:, index] == 1.0, index] = upper
        return rows

    def typical(self, rng: np.random.Generator, count: int) -> Rows:
        """Draw rows uniformly within the bounds, or from the standard normal law."""
        shape = (count, len(self.lower))
        return self._place(rng.random(shape)) if self.bounded else rng.standard_normal(shape)

    def draw(self, rng: np.random.Generator, count: int) -> Rows:
        """Draw adversarial rows: extremes, ties, heavy tails, or all the same."""
        shape, style = (count, len(self.lower)), rng.integers(5)
        if style == 0:
            return self.typical(rng, count)
        if style == 1:
            corner = rng.integers(2, size=shape)
        elif style == 2:
            corner = np.tile(rng.integers(2, size=(count, 1)), (1, shape[1]))
        elif style == 3:
            return np.tile(self.typical(rng, 1), (count, 1))
        else:
            ties = rng.integers(5, size=shape) / 4.0
            return self._place(ties) if self.bounded else 4.0 * ties - 2.0
        if self.bounded:
            return self._place(corner.astype(np.float64))
        reach = 10.0 ** rng.integers(0, 8) if rng.random() < 0.8 else rng.standard_cauchy(shape)
        wide: Rows = (2.0 * corner - 1.0) * reach
        return wide

    def opposite(self, rows: Rows) -> Rows:
        """Mirror rows in the middle of the box: the lower bound becomes the upper one."""
        if not self.bounded:
            return -rows
        mirrored: Rows = np.clip(self.upper - (rows - self.lower), self.lower, self.upper)
        return mirrored

    def _place(self, unit: Rows) -> Rows:
        rows = np.clip(self.lower + unit * (self.upper - self.lower), self.lower, self.upper)
        placed: Rows = np.where(self.whole, np.rint(rows), rows)
        return placed


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
