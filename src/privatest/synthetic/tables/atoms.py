"""Atoms of a release by a kernel: values with mass, which no smooth one tells from numbers near.

The rows at each atom, and between atoms, are counted in tables of their own, with Gaussian noise
for a share of the budget. Proof: docs/proofs/synthetic.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.data.samples import Sample
from privatest.data.schema import NumericColumn, Schema
from privatest.synthetic.tables.cells import Cells, schema_cells
from privatest.synthetic.tables.counting import coded
from privatest.synthetic.tables.measured import Measured, Wanted, measure

ATOM_SHARE = Fraction(1, 10)  # of the budget; the noise of what else is measured grows by 5%


def has_atoms(schema: Schema | None) -> bool:
    """Whether a column has values that are to be counted on their own."""
    columns = () if schema is None else schema.columns.values()
    return any(isinstance(column, NumericColumn) and column.atoms for column in columns)


def measure_atoms(
    sample: Sample, schema: Schema, budget: Budget, noise: NoiseSource
) -> tuple[Measured, ...]:
    """Count the rows at atoms and between them, for :data:`ATOM_SHARE` of the budget.

    Parameters
    ----------
    sample : Sample
        Private rows in the columns' own units.
    schema : Schema
        Their public description.
    budget : Budget
        That of the whole release.
    noise : NoiseSource
        The secret randomness.

    Notes
    -----
    **Sensitivity** One table for each column with atoms: a row is in one group of each
    (:func:`privatest.synthetic.tables.measured.table_sensitivity`).

    **Privacy** Gaussian noise for a share of the budget; the coefficients take the rest.
    """
    cells = schema_cells(schema)
    wanted = [
        Wanted((place,), (_groups(own, column.atoms),))
        for place, (own, column) in enumerate(zip(cells, schema.columns.values(), strict=True))
        if isinstance(column, NumericColumn) and column.atoms
    ]
    return tuple(
        measure(
            coded(sample, cells),
            wanted,
            [*schema.columns],
            rows_per_person=min(schema.rows_per_person, len(sample)),
            budget=budget,
            share=ATOM_SHARE,
            noise=noise,
        )
    )


def _groups(cells: Cells, atoms: Sequence[float]) -> NDArray[np.intp]:
    """Return a group for each cell: atoms stand alone, all cells between two of them together."""
    alone = np.isin(cells.lowest, atoms) & (cells.lowest == cells.highest)
    after = np.concatenate([[False], alone[:-1]])
    return (np.cumsum(alone | after) - int(alone[0])).astype(np.intp)
