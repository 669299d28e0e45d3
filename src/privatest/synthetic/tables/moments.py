"""Noisy means of columns, of columns in the cells of another, and of products of two columns.

Tables say nothing of what is within their groups; these do. Proof: docs/proofs/tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, Sensitivity
from privatest.data.samples import Sample, beside
from privatest.mechanisms.additive import gaussian_part, gaussian_part_scale
from privatest.synthetic.tables.counting import added_up

__all__ = ["Moments", "exact_sums", "measure_moments", "moment_scale"]

_BITS = 20
_UNITS = 1 << _BITS  # places between the bounds are rounded to so many, so that sums are exact

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Moments:
    """Which means are measured together; columns are given by position.

    Attributes
    ----------
    means : tuple of int
        Columns whose places between the bounds are averaged.
    sums : tuple of (int, int)
        A column, and another in each of whose cells its centred places are added up.
    products : tuple of (int, int)
        Two columns whose centred places are multiplied.
    """

    means: tuple[int, ...] = ()
    sums: tuple[tuple[int, int], ...] = ()
    products: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        """Return how many kinds of means there are."""
        return len(self.means) + len(self.sums) + len(self.products)

    def sensitivity(self, rows_per_person: int = 1) -> Sensitivity:
        """Return how far all sums move together between neighbours, in l2 and in units.

        Notes
        -----
        **Sensitivity** A place moves by at most 1. Centred places in the cells of another column
        move by 1 in one cell, or by 1/2 in each of two: at most 1. A product of centred places
        is within 1/4 of 0, and moves by at most 1/2. Times the rows per person; rounded up.
        """
        squares = len(self.means) + len(self.sums) + len(self.products) / 4
        return Sensitivity(_UNITS * math.sqrt(squares) * rows_per_person * (1 + 1e-15), "l2")


def moment_scale(wanted: Moments, rows_per_person: int, budget: Budget, share: Fraction) -> float:
    """Return the noise of each sum over all rows, where bounds are 0 and 1; public."""
    sensitivity = wanted.sensitivity(rows_per_person)
    return gaussian_part_scale(len(wanted), sensitivity, budget, share) / _UNITS


def exact_sums(
    places: Floats, codes: NDArray[np.intp], sizes: Sequence[int], wanted: Moments
) -> list[NDArray[np.int64]]:
    """Return sums over all rows in units of 2^-20, as integers: no rounding but of each row.

    Parameters
    ----------
    places : ndarray
        Rows where bounds are 0 and 1.
    codes : ndarray
        The cell of each row in each column.
    sizes : sequence of int
        The number of cells of each column.
    wanted : Moments
        What to add up.

    Returns
    -------
    list of ndarray
        The sums of all columns; for each of ``sums`` one number a cell; all products.
    """
    whole = np.rint(places.clip(0, 1) * _UNITS).astype(np.int64)
    centred = whole - _UNITS // 2
    found = [whole[:, list(wanted.means)].sum(axis=0)]
    for column, other in wanted.sums:
        sums = np.zeros(sizes[other], dtype=np.int64)
        np.add.at(sums, codes[:, other], centred[:, column])
        found.append(sums)
    half = 1 << (_BITS - 1)  # rounds to the nearest: floor((a + 1/2)/1)
    each = [(centred[:, a] * centred[:, b] + half) >> _BITS for a, b in wanted.products]
    found.append(np.array([product.sum() for product in each], dtype=np.int64))
    return found


def _exact_sums(sizes: tuple[int, ...], wanted: Moments, rows: Floats) -> list[NDArray[np.int64]]:
    places, codes = np.split(rows, 2, axis=1)
    return exact_sums(places, codes.astype(np.intp), sizes, wanted)


def measure_moments(
    places: Sample,
    codes: Sample,
    sizes: Sequence[int],
    wanted: Moments,
    *,
    rows_per_person: int,
    budget: Budget,
    share: Fraction,
    noise: NoiseSource,
) -> tuple[list[Floats], float]:
    """Return noisy means over all rows, as :func:`exact_sums` has them, and their noise.

    Notes
    -----
    **Sensitivity** :meth:`Moments.sensitivity`. Every row adds integers that depend on it alone:
    sums have no rounding errors.

    **Privacy** As :func:`privatest.synthetic.tables.measured.measure`; the number of rows is
    public.
    """
    exact = added_up(beside(places, codes), partial(_exact_sums, tuple(sizes), wanted))
    together = np.concatenate(exact).astype(np.float64)
    sensitivity = wanted.sensitivity(rows_per_person)
    noisy = gaussian_part(
        together, sensitivity=sensitivity, budget=budget, share=share, noise=noise
    )
    sigma = gaussian_part_scale(together.size, sensitivity, budget, share)
    rows = float(_UNITS) * len(places)
    parts = np.split(noisy / rows, np.cumsum([len(part) for part in exact])[:-1])
    return parts, sigma / rows
