"""What comes with a release: an estimate with its error bar, and the public facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from privatest.core.privacy import Budget
from privatest.data.schema import Schema
from privatest.kernels.kernels import Kernel

__all__ = ["Estimate", "Facts"]

_MOST = 0.95  # of an error bar: the misfit is then three times the noise


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number from a release, and its error bar.

    Attributes
    ----------
    value : float
        The estimate.
    error : float
        One standard deviation of what the privacy noise does to it, and ``misfit`` added in
        squares.
    misfit : float
        How far off the answer may be because the rows stand badly for the data, as far as the
        release itself shows it: the distance to the answer of signed weights, and the share by
        which the sum of signed weights misses 1, of the range of the values. Only what noise
        does not explain counts. 0 does not prove a good fit: what no row can show, such as a
        function that is rougher than the kernel, no bar covers.
    """

    value: float
    error: float
    misfit: float = 0.0

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    @property
    def poor(self) -> bool:
        """Whether most of the bar is there because the rows cannot stand for the data."""
        return self.misfit > _MOST * self.error

    def __str__(self) -> str:
        """Return the value with its error, both to the digits that matter."""
        warning = " (poorly represented)" * self.poor
        if self.error <= 0 or not math.isfinite(self.error):
            return f"{self.value:.6g} ± {self.error:g}{warning}"
        digits = max(0, 1 - math.floor(math.log10(self.error)))
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}{warning}"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is public about a release.

    Attributes
    ----------
    n : int
        Number of private rows.
    spent : Budget
        What the release cost.
    method : str
        The algorithm.
    kernel : Kernel or None
        The kernel, on encoded rows; None after :meth:`SyntheticData.transform`.
    schema : Schema or None
        The description of the columns; None for numbers without bounds.
    unit : str
        What is hidden: a row, or a person with at most k rows.
    sigma : float
        Standard deviation of the noise in each coefficient.
    parameters : mapping
        Other public parameters.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    """

    n: int
    spent: Budget
    method: str
    kernel: Kernel | None
    schema: Schema | None = None
    unit: str = "row"
    sigma: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    simulated: bool = False

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        if self.simulated:
            return "Simulated noise: this release is NOT private and must not be published."
        return (
            f"Privacy spent: {self.spent} (one {self.unit} replaced; the number of rows is public)."
        )
