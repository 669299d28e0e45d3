"""Error bars of a release by tables: the whole pipeline again, on data drawn from the release.

Post-processing: none of this sees private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.grouping import denoised
from privatest.synthetic.mixture import Mixture, Target, fit_mixture

__all__ = ["Refitting", "weight_draws"]

_COMPONENTS, _STEPS = 128, 300  # less than for the release itself: its noise is what matters
_SWEEPS = 3
_STEP = 1 / 64  # weights are kept to this part of a row: files are small
_LARGEST = 8.0  # of one correction of a weight


@dataclass(frozen=True, slots=True, eq=False)
class Refitting:
    """What was done to the private rows, to be done again to others.

    Attributes
    ----------
    codes, cells : ndarray
        The rows' fine groups and cells in each column.
    targets : sequence of Target
        The tables that were measured, with their noise; single columns first.
    fine, coarse : sequences of ndarray
        Groups of cells, and of fine groups.
    sigma : float
        Noise of the count of a cell.
    n : int
        The number of private rows.
    """

    codes: NDArray[np.intp]
    cells: NDArray[np.intp]
    targets: Sequence[Target]
    fine: Sequence[NDArray[np.intp]]
    coarse: Sequence[NDArray[np.intp]] | None
    sigma: float
    n: int

    @property
    def sizes(self) -> list[int]:
        """Fine groups of each column."""
        return [int(group.max()) + 1 for group in self.fine]


def weight_draws(
    again: Refitting,
    draws: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """Return rows × draws: the weights, moved by the errors that a release like this one makes.

    Each draw takes n rows of the release for the private ones, measures the same tables of them
    with new noise, fits a mixture, and weights the rows of the release by it. The difference
    between these weights and those of the rows that were taken is one error: of the noise and
    the fit, about the data itself and not about where the data came from.
    """
    rows = len(again.codes)
    places = [_places(again, target) for target in again.targets]
    moved = np.empty((rows, draws))
    for draw in range(draws):
        taken = rng.multinomial(again.n, np.full(rows, 1 / rows)) * (rows / again.n)
        found = _refitted(again, places, taken, rng)
        moved[:, draw] = 1 + np.round((found - taken) / _STEP) * _STEP
        if progress is not None:
            progress(draw + 1, draws)
    return moved / rows


def _places(again: Refitting, target: Target) -> NDArray[np.int32]:
    """Return the place of each row in a table."""
    place = np.zeros(len(again.codes), dtype=np.int32)
    for column, group, size in zip(
        target.columns, target.groups, target.shares.shape, strict=True
    ):
        own = again.codes[:, column]
        place = place * size + (own if group is None else group[own])
    return place.astype(np.int32)


def _refitted(
    again: Refitting,
    places: Sequence[NDArray[np.int32]],
    taken: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Measure, fit and weight once more; weights have mean 1."""
    cells = [_noisy_cells(again, column, taken, rng) for column in range(len(again.fine))]
    noisy = []
    for target, place in zip(again.targets, places, strict=True):
        if len(target.columns) == 1:
            column = target.columns[0]
            shares = np.bincount(again.fine[column], weights=cells[column]) / again.n
        else:
            counts = np.bincount(place, weights=taken, minlength=target.shares.size)
            shares = counts.reshape(target.shares.shape) / len(taken)
            shares = shares + target.sigma * rng.standard_normal(shares.shape)
        noisy.append(Target(target.columns, target.groups, shares, target.sigma))
    mixture = fit_mixture(
        again.sizes, noisy, again.coarse, components=_COMPONENTS, steps=_STEPS, rng=rng
    )
    return _raked(again, places, mixture, cells)


def _noisy_cells(
    again: Refitting, column: int, taken: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return noisy counts of a column's cells, of sum n."""
    count = len(again.fine[column])
    exact = np.bincount(again.cells[:, column], weights=taken, minlength=count)
    noisy = exact * (again.n / len(taken)) + again.sigma * rng.standard_normal(count)
    fitted: NDArray[np.float64] = noisy + (again.n - noisy.sum()) / count
    return fitted


def _raked(
    again: Refitting,
    places: Sequence[NDArray[np.int32]],
    mixture: Mixture,
    cells: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Weight the rows so that their tables are those of the mixture (iterative fitting)."""
    shares, starts = mixture.shares.astype(np.float64), mixture.starts
    tables = [(place, _table(shares, starts, target, again)) for place, target in _pairs(again, places)]
    singles = []
    for column, (group, noisy) in enumerate(zip(again.fine, cells, strict=True)):
        own = shares[:, starts[column] : starts[column + 1]].mean(axis=0)
        within = np.empty(len(group))
        for place in range(len(own)):
            members = np.flatnonzero(group == place)
            within[members] = own[place] * denoised(noisy[members], again.sigma)
        singles.append((again.cells[:, column], within))
    weights = np.ones(len(again.codes))
    for _ in range(_SWEEPS):
        for place, table in [*tables, *singles]:
            held = np.bincount(place, weights=weights, minlength=table.size)
            wanted = table.ravel() * len(weights)
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.where(held > 0, wanted / held, 1.0)
            weights *= factor.clip(1 / _LARGEST, _LARGEST)[place]
    return weights * (len(weights) / weights.sum())


def _pairs(
    again: Refitting, places: Sequence[NDArray[np.int32]]
) -> list[tuple[NDArray[np.int32], Target]]:
    both = zip(places, again.targets, strict=True)
    return [(place, target) for place, target in both if len(target.columns) == 2]


def _table(
    shares: NDArray[np.float64], starts: NDArray[np.intp], target: Target, again: Refitting
) -> NDArray[np.float64]:
    """Return the mixture's table of two columns."""
    sides = []
    for column, group in zip(target.columns, target.groups, strict=True):
        side = shares[:, starts[column] : starts[column + 1]]
        if group is not None:
            side = side @ np.eye(int(group.max()) + 1)[group]
        sides.append(side)
    table: NDArray[np.float64] = sides[0].T @ sides[1] / len(shares)
    return table
