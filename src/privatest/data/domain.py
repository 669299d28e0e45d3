"""The public set that rows lie in: encoded (:class:`Domain`), or in their own units (:class:`Box`).

A row is encoded as floats: a numeric column is mapped to [0, 1] by its public bounds, a
categorical column holds the code 0, 1, ... of its category. Without bounds numeric columns
keep their own units and may lie anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError

__all__ = ["Box", "Domain"]


@dataclass(frozen=True, slots=True)
class Domain:
    """Columns of an encoded row.

    Parameters
    ----------
    levels : tuple of int
        For each column 0 if it is numeric, else its number of categories.
    bounded : bool
        Whether numeric columns lie in [0, 1].
    """

    levels: tuple[int, ...]
    bounded: bool = True

    @classmethod
    def anywhere(cls, width: int) -> Domain:
        """Return the domain of numeric columns without bounds."""
        return cls((0,) * width, bounded=False)

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return len(self.levels)

    @property
    def numeric(self) -> list[int]:
        """Indices of numeric columns."""
        return [index for index, level in enumerate(self.levels) if level == 0]

    @property
    def categorical(self) -> list[int]:
        """Indices of categorical columns."""
        return [index for index, level in enumerate(self.levels) if level > 0]

    def points(self, count: int) -> NDArray[np.float64]:
        """Return ``count`` public rows spread evenly over the domain.

        The additive recurrence of Roberts on the roots of x^(d+1) = x + 1: deterministic,
        low discrepancy, any dimension. A category takes its equal share of [0, 1].
        """
        if not self.bounded:
            raise ParameterError("bounds must be given: an unbounded domain has no even points.")
        root = 2.0
        for _ in range(64):
            root = (1 + root) ** (1 / (self.dimension + 1))
        steps = root ** -np.arange(1.0, self.dimension + 1)
        unit = (0.5 + np.outer(np.arange(1, count + 1), steps)) % 1.0
        if self.dimension == 1:
            unit = ((np.arange(count) + 0.5) / count)[:, None]
        for index in self.categorical:
            unit[:, index] = np.floor(unit[:, index] * self.levels[index])
        return unit

    def landmarks(self, most: int = 128) -> NDArray[np.float64]:
        """Return public points enough to span what a kernel of the default grid can see."""
        return self.points(min(64, most) if self.dimension == 1 else most)


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Public bounds of columns in the data's own units; categories are 0, 1, ...

    Parameters
    ----------
    lower, upper : array of float
        Of each column; infinite without bounds.
    whole : array of bool
        Which columns hold integers or categories.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    whole: NDArray[np.bool_]

    @classmethod
    def anywhere(cls, width: int) -> Box:
        """Return the box of columns without bounds."""
        reach = np.full(width, np.inf)
        return cls(-reach, reach, np.zeros(width, dtype=np.bool_))

    @property
    def bounded(self) -> bool:
        """Whether bounds were declared."""
        return bool(np.isfinite(self.lower).all())

    @property
    def width(self) -> NDArray[np.float64]:
        """Length of each side."""
        return self.upper - self.lower

    @property
    def half(self) -> NDArray[np.float64]:
        """Half of each side."""
        return self.width / 2

    @property
    def centre(self) -> NDArray[np.float64]:
        """The point in the middle."""
        return (self.lower + self.upper) / 2

    def at(self, unit: NDArray[np.float64], *, integers: bool = True) -> NDArray[np.float64]:
        """Return the points of the box that points of [0, 1]^d stand for."""
        rows: NDArray[np.float64] = np.clip(self.lower + unit * self.width, self.lower, self.upper)
        return np.where(self.whole, np.rint(rows), rows) if integers else rows
