"""Bins where the rows are: heavy bins are looked at again, in parts, before tables are counted.

Each look counts the rows in all cells, with Gaussian noise for a share of the budget; cells that
hold many are split for the next. The cut points that result are released. Proof:
docs/proofs/tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.data.samples import Sample
from privatest.data.schema import NumericColumn, Schema
from privatest.synthetic.tables.cells import Cells, cells_from
from privatest.synthetic.tables.counting import coded
from privatest.synthetic.tables.measured import Measured, Wanted, measure, table_scale

__all__ = ["LOOK", "LOOKS", "are_seen", "look_scale", "refined", "with_bins"]

LOOKS, LOOK = 3, Fraction(1, 30)  # the most of them, and the share of the budget that each takes
_PARTS = 16  # of a heavy cell, for the next look
_BLIND = 16  # of one that is heavy in the last: nobody looks at these before all cells are counted
_HEAVY = 8  # a cell is heavy if it holds an eighth of the rows, and
_CLEARLY = 4.0  # so many standard deviations of the noise; cells are merged up to half of both
_MERGED, _TOLD = 64, 2.0  # parts are merged until they hold a 64th, and two deviations of noise
_SEEN = 16  # looks are bought if n is so many: a heavy cell may then hold a quarter of the rows
_PUBLIC = -1  # the parent of a cell that follows from the schema

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """A column between two looks: its cells, and of parts but the first whose parts they are."""

    cells: Cells
    parents: Places
    is_open: bool = True


def with_bins(cells: Sequence[Cells]) -> tuple[int, ...]:
    """Return the columns that have cells with many values."""
    wide = [bool((own.highest > own.lowest).any()) for own in cells]
    return tuple(place for place, found in enumerate(wide) if found)


def look_scale(columns: int, rows_per_person: int, budget: Budget) -> float:
    """Return the noise of a count in a look at so many columns; public."""
    return table_scale(columns, 1, rows_per_person, budget, LOOK)


def are_seen(columns: int, n: int, rows_per_person: int, budget: Budget) -> bool:
    """Whether heavy cells of so many columns would stand out from the noise; public."""
    return columns > 0 and n >= _SEEN * look_scale(columns, rows_per_person, budget)


def refined(
    sample: Sample,
    schema: Schema,
    cells: Sequence[Cells],
    *,
    budget: Budget,
    noise: NoiseSource,
) -> tuple[tuple[Cells, ...], Fraction]:
    """Split cells that hold many rows; return all cells, and the share of the budget it took.

    Parameters
    ----------
    sample : Sample
        Private rows in the columns' own units; each look goes through them once.
    schema : Schema
        Their public description.
    cells : sequence of Cells
        The public cells of each column.
    budget : Budget
        That of the whole release.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** A look at t columns is t tables
    (:func:`privatest.synthetic.tables.measured.table_sensitivity`).

    **Privacy** Every look takes :data:`LOOK` of the budget. Which cells are split, which columns
    are looked at again and whether there is another look follow from noisy counts of looks
    before; so does what is left for later rounds: docs/proofs/tables.md.
    """
    found = {
        place: _Split(cells[place], np.full(len(cells[place]), _PUBLIC, dtype=np.intp))
        for place in with_bins(cells)
    }
    spent = Fraction(0)
    for look in range(LOOKS):
        places = [place for place, own in found.items() if own.is_open]
        if not places:
            break
        looked = {place: found[place].cells for place in places}
        tables = _look(sample, schema, looked, budget, noise)
        spent += LOOK
        parts = _BLIND if look == LOOKS - 1 else _PARTS
        for place, table in zip(places, tables, strict=True):
            column = [*schema.columns.values()][place]
            assert isinstance(column, NumericColumn)
            found[place] = _next(found[place], table, len(sample), column, parts)
    kept = tuple(found[place].cells if place in found else own for place, own in enumerate(cells))
    return kept, spent


def _look(
    sample: Sample, schema: Schema, cells: Mapping[int, Cells], budget: Budget, noise: NoiseSource
) -> list[Measured]:
    """Count the rows in the cells of some columns, for the share of one look."""
    return measure(
        coded(sample, [cells.get(place) for place in range(len(schema.columns))]),
        [Wanted((place,), (np.arange(len(own)),)) for place, own in cells.items()],
        [*schema.columns],
        rows_per_person=min(schema.rows_per_person, len(sample)),
        budget=budget,
        share=LOOK,
        noise=noise,
    )


def _next(own: _Split, seen: Measured, n: int, column: NumericColumn, parts: int) -> _Split:
    """Split heavy cells, and merge parts of those split before that turned out to hold few."""
    cells, counts = own.cells, seen.counts
    most = max(n / _HEAVY, _CLEARLY * seen.sigma)
    heavy = (counts >= most) & (cells.highest > cells.lowest)
    kept = _kept(own.parents, counts, heavy, n / _MERGED, _TOLD * seen.sigma)
    starts, parents = [cells.lowest[kept]], [np.full(np.count_nonzero(kept), _PUBLIC)]
    for cell in np.flatnonzero(heavy):
        edges = cells.parts(int(cell), parts)[1:]  # it begins where the cell does
        starts.append(edges)
        parents.append(np.full(len(edges), cell))
    lowest, owners = np.concatenate(starts), np.concatenate(parents)
    order = np.argsort(lowest)
    return _Split(cells_from(column, lowest[order]), owners[order], bool(heavy.any()))


def _kept(
    parents: Places, counts: Floats, heavy: NDArray[np.bool_], least: float, noise: float
) -> NDArray[np.bool_]:
    """Return which cells stay the first of theirs.

    Parts of one cell are put together up to ``least`` rows that stand out from the noise, and to
    as many parts as lie between them and a heavy one: so tails keep their shape. The first part
    of a cell, and cells that were not split, stay.
    """
    away = _distances(heavy).tolist()
    kept: NDArray[np.bool_] = (parents == _PUBLIC) | (counts >= max(least, noise))
    held, length, first = 0.0, 0, 0
    for cell in np.flatnonzero(parents != _PUBLIC).tolist():
        if kept[cell - 1]:
            held, length, first = float(counts[cell - 1]), 1, cell - 1
        full = held >= max(least, noise * math.sqrt(length))
        kept[cell] |= full or length + 1 > min(away[cell], away[first])
        held, length = held + float(counts[cell]), length + 1
    return kept


def _distances(heavy: NDArray[np.bool_]) -> Places:
    """Return how many cells away the nearest heavy one is."""
    places = np.arange(len(heavy))
    at = np.flatnonzero(heavy)
    if not len(at):
        return np.full(len(heavy), len(heavy), dtype=np.intp)
    after = np.searchsorted(at, places)
    left, right = at[(after - 1).clip(0)], at[after.clip(0, len(at) - 1)]
    found: Places = np.minimum(np.abs(places - left), np.abs(places - right)).astype(np.intp)
    return found
