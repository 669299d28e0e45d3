"""Error bars of a release by tables: the whole pipeline again, on data drawn from the release.

Post-processing: none of this sees private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.synthetic.mixture import Mixture, Target, fit_mixture
from privatest.synthetic.shapes import Column, cell_shares

__all__ = ["Refitting", "weight_draws"]

_COMPONENTS, _STEPS = 128, 300  # less than for the release itself: its noise is what matters
_SWEEPS = 2
_STEP = 1 / 64  # weights are kept to this part of a row: files are small
_LARGEST = 8.0  # of one correction of a weight


@dataclass(frozen=True, slots=True, eq=False)
class Refitting:
    """What was done to the private rows, to be done again to others.

    Attributes
    ----------
    codes, cells : ndarray
        The rows' fine groups and cells in each column.
    places : ndarray
        The rows' values, where bounds are 0 and 1.
    targets : sequence of Target
        The tables that were measured, with their noise; single columns first.
    columns : sequence of Column
        What was measured of each column alone.
    coarse : sequence of ndarray or None
        Groups of fine groups.
    n : int
        The number of private rows.
    """

    codes: NDArray[np.intp]
    cells: NDArray[np.intp]
    places: NDArray[np.float64]
    targets: Sequence[Target]
    columns: Sequence[Column]
    coarse: Sequence[NDArray[np.intp]] | None
    n: int

    @property
    def sizes(self) -> list[int]:
        """Fine groups of each column."""
        return [int(column.groups.max()) + 1 for column in self.columns]


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
        numbers = rng.multinomial(again.n, np.full(rows, 1 / rows))
        taken = numbers.astype(np.float64) * (rows / again.n)
        found = _refitted(again, places, taken, rng)
        moved[:, draw] = 1 + np.round((found - taken) / _STEP) * _STEP
        if progress is not None:
            progress(draw + 1, draws)
    return moved / rows


def _places(again: Refitting, target: Target) -> NDArray[np.int32]:
    """Return the place of each row in a table."""
    place = np.zeros(len(again.codes), dtype=np.int32)
    for column, group, size in zip(target.columns, target.groups, target.shares.shape, strict=True):
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
    columns = [_measured(again, place, taken, rng) for place in range(len(again.columns))]
    noisy = []
    for target, place in zip(again.targets, places, strict=True):
        if len(target.columns) == 1:
            column = columns[target.columns[0]]
            shares = np.bincount(column.groups, weights=column.counts) / again.n
        else:
            counts = np.bincount(place, weights=taken, minlength=target.shares.size)
            shares = counts.reshape(target.shares.shape) / len(taken)
            shares = shares + target.sigma * rng.standard_normal(shares.shape)
        noisy.append(Target(target.columns, target.groups, shares, target.sigma))
    rows = len(again.codes)
    mixture = fit_mixture(
        again.sizes,
        noisy,
        again.coarse,
        components=min(_COMPONENTS, max(rows, 16)),
        steps=_STEPS,
        rng=rng,
    )
    return _raked(again, places, mixture, columns)


def _measured(
    again: Refitting, place: int, taken: NDArray[np.float64], rng: np.random.Generator
) -> Column:
    """Measure a column alone once more; its counts have the sum n."""
    column = again.columns[place]
    count = len(column.groups)
    exact = np.bincount(again.cells[:, place], weights=taken, minlength=count)
    noisy = exact * (again.n / len(taken)) + column.sigma * rng.standard_normal(count)
    noisy += (again.n - noisy.sum()) / count
    if column.mean is None:
        return replace(column, counts=noisy)
    mean = float(taken @ again.places[:, place]) / len(taken)
    return replace(column, counts=noisy, mean=mean + column.mean_sigma * rng.standard_normal())


def _raked(
    again: Refitting,
    places: Sequence[NDArray[np.int32]],
    mixture: Mixture,
    columns: Sequence[Column],
) -> NDArray[np.float64]:
    """Weight the rows so that their tables are those of the mixture (iterative fitting)."""
    shares, starts = mixture.shares.astype(np.float64), mixture.starts
    tables: list[tuple[NDArray[Any], NDArray[np.float64]]] = [
        (place, _table(shares, starts, target))
        for place, target in zip(places, again.targets, strict=True)
        if len(target.columns) == 2
    ]
    for place, column in enumerate(columns):
        own = shares[:, starts[place] : starts[place + 1]].mean(axis=0)
        tables.append((again.cells[:, place], cell_shares(column, own)))
    weights = np.ones(len(again.codes))
    for _ in range(_SWEEPS):
        for cell, table in tables:
            held = np.bincount(cell, weights=weights, minlength=table.size)
            wanted = table.ravel() * len(weights)
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.where(held > 0, wanted / held, 1.0)
            weights *= factor.clip(1 / _LARGEST, _LARGEST)[cell]
    weights *= len(weights) / weights.sum()
    return weights


def _table(
    shares: NDArray[np.float64], starts: NDArray[np.intp], target: Target
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
