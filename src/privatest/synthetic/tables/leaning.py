"""What measured means add to tables: the part of a function that is linear within groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.tables.grid import Grid

__all__ = ["Part", "bilinear", "cell_slopes", "slopes"]

_EXACT = 1e-9  # of the size of a function: what a fit leaves by rounding alone

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Estimates of several means from one source.

    ``pieces`` say where in all that was measured numbers were used, and how the estimates move
    with the noise of each.
    """

    values: Floats
    noise: Floats
    unseen: Floats
    pieces: list[tuple[int, Floats]]


def slopes(at: Floats, values: Floats, cells: NDArray[np.intp]) -> Floats:
    """Return the slopes of functions of a number within cells, by least squares."""
    counts = np.bincount(cells)

    def within(each: Floats) -> Floats:
        centres = np.bincount(cells, each) / np.maximum(counts, 1)
        return np.asarray(each - centres[cells], dtype=np.float64)

    own, less = within(at), within
    if not own.any():  # each cell holds a single value: the slope over all of them
        less = _centred
        own = less(at)
    size = max(float(own @ own), 1e-300)
    return np.array([float(own @ less(column)) / size for column in values.T])


def _centred(each: Floats) -> Floats:
    return np.asarray(each - each.mean(), dtype=np.float64)


def cell_slopes(grid: Grid, used: Sequence[str], name: str, looked: Floats) -> Floats:
    """Return the slopes by one column in each place of the other: places × functions."""
    axis = list(used).index(name)
    shape = tuple(map(len, grid.places))
    cube = np.moveaxis(looked.reshape(*shape, -1), axis, 0)
    at = np.moveaxis(grid.columns[name].astype(np.float64).reshape(shape), axis, 0)[:, 0]
    own = at - at.mean()
    found: Floats = np.tensordot(own, cube, axes=(0, 0)) / max(float(own @ own), 1e-300)
    return found


def bilinear(at: Sequence[Floats], looked: Floats) -> Floats | None:
    """Return functions as combinations of 1, x, y and xy, if they are: 4 × functions."""
    x, y = (each / max(float(np.abs(each).max()), 1e-300) for each in at)
    basis = np.column_stack([np.ones_like(x), x, y, x * y])
    square = basis.T @ basis
    if np.linalg.cond(square) > 1e10:
        return None
    found: Floats = np.asarray(np.linalg.solve(square, basis.T @ looked), dtype=np.float64)
    left = np.abs(looked - basis @ found).max(axis=0)
    if (left > _EXACT * np.maximum(np.abs(looked).max(axis=0), 1e-300)).any():
        return None
    sizes = [max(float(np.abs(each).max()), 1e-300) for each in at]
    scales = np.array([1.0, sizes[0], sizes[1], sizes[0] * sizes[1]])[:, None]
    return np.asarray(found / scales, dtype=np.float64)
