"""Noisy tables of counts: what a release by tables measures, and nothing else of the data.

Proof: docs/proofs/tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, Sensitivity
from privatest.core.results import read_only
from privatest.data.samples import Sample
from privatest.mechanisms.additive import gaussian_part, gaussian_part_scale
from privatest.synthetic.tables.counting import added_up

__all__ = [
    "Measured",
    "Wanted",
    "count_table",
    "measure",
    "table_scale",
    "table_sensitivity",
]

_DECIMALS = 3  # of noisy counts: finer digits hold noise only


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """A table to be counted: its columns by position, and for each the group of each cell."""

    columns: tuple[int, ...]
    groups: tuple[NDArray[np.intp], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each column."""
        return tuple(int(group.max()) + 1 for group in self.groups)

    @property
    def size(self) -> int:
        """The number of counts."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A noisy table, or a noisy mean, as it was released.

    Attributes
    ----------
    columns : tuple of str
        One or two columns.
    groups : tuple of ndarray
        For each column the group (0, 1, ...) of each of its public cells
        (:func:`privatest.synthetic.tables.cells.schema_cells`): a count is of a group of cells.
        None for a mean, and for the mean of a product of two columns; of a column and another that
        it is added up by, that of the other.
    counts : ndarray
        Noisy numbers of private rows, one axis for each column; they may be negative. For a
        mean one number, in the column's own units; it may lie outside the bounds. A product is
        of both columns less the middles of their bounds. Where a column is added up by another,
        one number for each group: the mean over all rows of the column less the middle of its
        bounds, counted as 0 outside of the group.
    sigma : float
        Standard deviation of the Gaussian noise of each count, which are independent, or of
        the mean.
    """

    columns: tuple[str, ...]
    groups: tuple[NDArray[np.intp], ...]
    counts: NDArray[np.float64]
    sigma: float

    def __post_init__(self) -> None:
        """Refuse parts that do not fit, and freeze them."""
        groups = tuple(read_only(np.asarray(group, dtype=np.intp)) for group in self.groups)
        counts = read_only(np.asarray(self.counts, dtype=np.float64))
        shape = tuple(int(group.max(initial=-1)) + 1 for group in groups)
        more = len(self.columns) - len(groups)
        if counts.shape != shape or (more not in (0, 1) and (len(self.columns), more) != (2, 2)):
            raise ValueError("counts and groups must fit the columns.")
        if any(len(np.unique(group)) < size for group, size in zip(groups, shape, strict=True)):
            raise ValueError("every group must have a cell.")
        if not (math.isfinite(self.sigma) and self.sigma > 0 and np.isfinite(counts).all()):
            raise ValueError("counts and sigma must be finite.")
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "counts", counts)

    @property
    def is_table(self) -> bool:
        """Whether these are counts."""
        return len(self.groups) == len(self.columns)

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of a column."""
        return len(self.columns) == 1 and not self.groups

    @property
    def is_sums(self) -> bool:
        """Whether a column was added up by the groups of another."""
        return len(self.columns) == 2 and len(self.groups) == 1

    @property
    def is_product(self) -> bool:
        """Whether it is the mean of a product."""
        return len(self.columns) == 2 and not self.groups

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON has."""
        return {
            "columns": list(self.columns),
            "groups": [group.tolist() for group in self.groups],
            "counts": self.counts.tolist(),
            "sigma": self.sigma,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Measured:
        """Read what :meth:`to_dict` wrote."""
        groups = tuple(np.array(group, dtype=np.intp) for group in values["groups"])
        counts = np.array(values["counts"], dtype=np.float64)
        return cls(tuple(map(str, values["columns"])), groups, counts, float(values["sigma"]))


def count_table(codes: NDArray[np.intp], wanted: Wanted) -> NDArray[np.int64]:
    """Count the rows in each group of cells, exactly.

    Parameters
    ----------
    codes : ndarray
        The cell of each row in each column.
    wanted : Wanted
        The columns, and groups of their cells.
    """
    place = np.zeros(len(codes), dtype=np.intp)
    for column, group, size in zip(wanted.columns, wanted.groups, wanted.shape, strict=True):
        place = place * size + group[codes[:, column]]
    return np.bincount(place, minlength=wanted.size).reshape(wanted.shape)


def table_sensitivity(tables: int, rows_per_person: int = 1) -> Sensitivity:
    """Return how far the counts of some tables move together between neighbours, in l2.

    Notes
    -----
    **Sensitivity** A replaced row leaves one cell of each table and enters another: two counts
    move by 1. For t tables sqrt(2 t), times the rows per person; rounded up.
    """
    return Sensitivity(math.sqrt(2 * tables) * rows_per_person * (1 + 1e-15), "l2")


def table_scale(
    tables: int, cells: int, rows_per_person: int, budget: Budget, share: Fraction
) -> float:
    """Return the standard deviation of the noise of each count; public."""
    return gaussian_part_scale(cells, table_sensitivity(tables, rows_per_person), budget, share)


def count_tables(wanted: tuple[Wanted, ...], codes: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Count some tables."""
    whole = codes.astype(np.intp)
    return [count_table(whole, table) for table in wanted]


def measure(
    codes: Sample,
    wanted: Sequence[Wanted],
    names: Sequence[str],
    *,
    rows_per_person: int,
    budget: Budget,
    share: Fraction,
    noise: NoiseSource,
) -> list[Measured]:
    """Count some tables at once, with equal noise, for a share of the budget.

    ``codes`` are the cell of each row in each column; they are gone through once.

    Notes
    -----
    **Sensitivity** :func:`table_sensitivity`. Counts are integers: nothing is rounded.

    **Privacy** Gaussian noise. Rounds whose shares add up to 1 are together
    (epsilon, delta)-private, even if each is chosen after the noisy counts of those before.
    """
    exact = added_up(codes, partial(count_tables, tuple(wanted)))
    together = np.concatenate([counts.ravel() for counts in exact]).astype(np.float64)
    sensitivity = table_sensitivity(len(wanted), rows_per_person)
    noisy = gaussian_part(
        together, sensitivity=sensitivity, budget=budget, share=share, noise=noise
    )
    sigma = gaussian_part_scale(together.size, sensitivity, budget, share)
    ends = np.cumsum([counts.size for counts in exact])[:-1]
    parts = np.split(np.round(noisy, _DECIMALS), ends)
    return [
        Measured(
            tuple(names[column] for column in table.columns),
            table.groups,
            part.reshape(table.shape),
            sigma,
        )
        for table, part in zip(wanted, parts, strict=True)
    ]
