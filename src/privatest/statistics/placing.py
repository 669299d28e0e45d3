"""Cells of values between cut points, many values at a time.

Threads that place values take turns at the interpreter between any two steps, which takes longer
than a step of few values. So blocks are larger than the processor's cache, and memory is used
again: with two threads that is twice as fast as blocks which fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "Placing"]

BLOCK = 1 << 17  # values that are placed at a time

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Placing:
    """Finds how many cut points are below each value of a block; for one thread.

    Evenly spaced cut points are guessed by arithmetic, which rounding may make one too small for
    values just above a cut point; comparing with the next one makes it right.

    Parameters
    ----------
    cuts : ndarray
        Cut points, increasing.
    """

    __slots__ = ("_cuts", "_ends", "_held", "_scale", "_shift")

    def __init__(self, cuts: Floats) -> None:
        self._cuts, self._ends = cuts, np.append(cuts, np.inf)
        self._scale, self._shift = _guess(cuts)
        self._held: tuple[NDArray[Any], ...] | None = None

    def __call__(self, block: Floats) -> Places:
        """Return the cells; they may be overwritten by the next call."""
        if not self._scale:
            return np.asarray(np.searchsorted(self._cuts, block))
        near, codes, above = self._room(len(block))
        with np.errstate(over="ignore"):  # a warning would tell of a value
            np.multiply(block, self._scale, out=near)
        near += self._shift
        np.clip(near, 0, len(self._cuts), out=near)
        np.copyto(codes, near, casting="unsafe")
        np.take(self._ends, codes, out=near, mode="clip")
        codes[np.flatnonzero(np.greater(block, near, out=above))] += 1
        return codes

    def counts(self, block: Floats) -> NDArray[np.int64]:
        """Return how many values are in each cell."""
        return np.bincount(self(block), minlength=len(self._ends))

    def _room(self, count: int) -> tuple[Floats, Places, NDArray[np.bool_]]:
        """Return memory for the steps: fresh memory would cost as much as they do."""
        if self._held is None or len(self._held[0]) < count:
            kinds = (np.float64, np.intp, np.bool_)
            self._held = tuple(np.empty(count, dtype=kind) for kind in kinds)
        near, codes, above = self._held
        return near[:count], codes[:count], above[:count]


def _guess(cuts: Floats) -> tuple[float, float]:
    """Return scale and shift of a guess that is right, or one too small; 0 if there is none."""
    with np.errstate(over="ignore", divide="ignore"):
        gaps, step = np.diff(cuts), (cuts[-1] - cuts[0]) / max(1, len(cuts) - 1)
        usable = len(cuts) > 2 and np.isfinite(step) and np.isfinite((1 + abs(cuts[0])) / step)
    if not usable or np.abs(gaps - step).max() > 1e-9 * step:
        return 0.0, 0.0
    scale = 1 / step
    return float(scale), float(1 - 1e-4 - cuts[0] * scale)
