"""What private means and covariances are returned as: released facts only."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.privacy import Budget

__all__ = ["CovarianceEstimate", "MeanEstimate"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeanEstimate:
    """A private mean and where the mean of the population may be.

    Attributes
    ----------
    mean : ndarray
        The private mean of each column.
    lower, upper : ndarray
        Simultaneous intervals: with probability ``confidence`` all of them hold.
    covariance : ndarray
        The private covariance of the rows.
    region_shape, region_radius : ndarray, float
        The region: all θ with (mean - θ)' region_shape^-1 (mean - θ) at most the radius.
    confidence : float
        Of the region, and of the intervals.
    spent : Budget
        What releasing this cost.
    n : int
        Public number of rows.
    columns : tuple of str or None
        Names of the columns.
    unit : str
        What the guarantee hides.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    """

    mean: Floats
    lower: Floats
    upper: Floats
    covariance: Floats
    region_shape: Floats
    region_radius: float
    confidence: float
    spent: Budget
    n: int
    columns: tuple[str, ...] | None = None
    unit: str = "row"
    simulated: bool = False

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        _freeze(self)

    def __str__(self) -> str:
        """Print a line for each column, and the guarantee."""
        names = self.columns or tuple(f"column {i}" for i in range(1, len(self.mean) + 1))
        width = max(map(len, names))
        lines = [
            f"  {name:<{width}}  {mean:.6g}  ({low:.6g} to {high:.6g})"
            for name, mean, low, high in zip(names, self.mean, self.lower, self.upper, strict=True)
        ]
        head = f"Private means of {self.n:,} rows, with intervals of {self.confidence:.0%} together"
        return "\n".join([f"{head}:", *lines, _guarantee(self.spent, self.unit, self.simulated)])

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        return _plain(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


@dataclass(frozen=True, slots=True, eq=False)
class CovarianceEstimate:
    """A private covariance and where that of the population may be.

    Attributes
    ----------
    covariance : ndarray
        The private covariance; no eigenvalue is negative.
    lower, upper : ndarray
        Simultaneous intervals of its entries, for rows that are about normal.
    mean : ndarray
        The private mean it is centred at.
    confidence, spent, n, columns, unit, simulated
        As in :class:`MeanEstimate`.
    """

    covariance: Floats
    lower: Floats
    upper: Floats
    mean: Floats
    confidence: float
    spent: Budget
    n: int
    columns: tuple[str, ...] | None = None
    unit: str = "row"
    simulated: bool = False

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        _freeze(self)

    def __str__(self) -> str:
        """Print the matrix and the guarantee."""
        rows = [" ".join(f"{value:>12.6g}" for value in row) for row in self.covariance]
        head = f"Private covariance of {self.n:,} rows:"
        return "\n".join([head, *rows, _guarantee(self.spent, self.unit, self.simulated)])

    def to_dict(self) -> dict[str, Any]:
        """Return the released facts as plain Python values."""
        return _plain(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


def _freeze(estimate: Any) -> None:
    for each in fields(estimate):
        value = getattr(estimate, each.name)
        if isinstance(value, np.ndarray):
            copy = value.copy()
            copy.flags.writeable = False
            object.__setattr__(estimate, each.name, copy)


def _plain(estimate: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name in (each.name for each in fields(estimate)):
        value = getattr(estimate, name)
        if isinstance(value, Budget):
            plain |= {"epsilon": float(value.epsilon), "delta": float(value.delta)}
        else:
            plain[name] = value.tolist() if isinstance(value, np.ndarray) else value
    return plain


def _guarantee(spent: Budget, unit: str, simulated: bool) -> str:
    if simulated:
        return "Simulated noise: this result is NOT private and must not be published."
    return f"Privacy spent: {spent} (one {unit} replaced; the number of rows is public)."
