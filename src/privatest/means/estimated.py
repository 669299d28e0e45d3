"""What private means and covariances are returned as: released facts only."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.estimate_text import numbered
from privatest.core.privacy import Budget
from privatest.core.results import html_table
from privatest.core.validation import printable

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
        width = max(len(name) for name, _, _ in self._rows)
        lines = [f"  {name:<{width}}  {mean}  {interval}" for name, mean, interval in self._rows]
        return "\n".join([f"{self._head}:", *lines, _guarantee(self)])

    def _repr_html_(self) -> str:
        return html_table(self._rows, self._head) + f"<p>{html.escape(_guarantee(self))}</p>"

    @property
    def _head(self) -> str:
        return f"Private means of {self.n:,} rows, with intervals of {self.confidence:.0%} together"

    @property
    def _rows(self) -> list[tuple[str, str, str]]:
        """Name, mean and interval of each column, as text."""
        values = zip(_names(self), self.mean, self.lower, self.upper, strict=True)
        return [
            (name, f"{mean:.6g}", f"({low:.6g} to {high:.6g})") for name, mean, low, high in values
        ]

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
        names = _names(self)
        width = max(map(len, names))
        rows = [
            f"  {name:<{width}} " + " ".join(f"{value:>12.6g}" for value in row)
            for name, row in zip(names, self.covariance, strict=True)
        ]
        return "\n".join([f"{self._head}:", *rows, _guarantee(self)])

    def _repr_html_(self) -> str:
        names = _names(self)
        rows = [
            (name, *(f"{value:.6g}" for value in row))
            for name, row in zip(names, self.covariance, strict=True)
        ]
        return (
            html_table([("", *names), *rows], self._head)
            + f"<p>{html.escape(_guarantee(self))}</p>"
        )

    @property
    def _head(self) -> str:
        return f"Private covariance of {self.n:,} rows"

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


def _names(estimate: MeanEstimate | CovarianceEstimate) -> list[str]:
    names = estimate.columns
    return numbered(len(estimate.mean)) if names is None else [printable(name) for name in names]


def _guarantee(estimate: MeanEstimate | CovarianceEstimate) -> str:
    if estimate.simulated:
        return "Simulated noise: this result is NOT private and must not be published."
    return (
        f"Privacy spent: {estimate.spent} (one {estimate.unit} replaced; the number of rows is "
        "public)."
    )
