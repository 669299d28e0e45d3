"""What the tests of one column against another share: checked arguments, columns, public facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.validation import number, one_of
from privatest.data.bounds import Bounds
from privatest.data.columns import Units
from privatest.data.limits import refuse_wide_bounds
from privatest.data.samples import TwoSamples, encode_pairs
from privatest.laws.law import ALTERNATIVES, Alternative

__all__ = ["Asked", "numeric_pairs"]

_NULLS = {
    "two-sided": "the two columns are independent",
    "greater": "the two columns are independent or fall together",
    "less": "the two columns are independent or rise together",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Checked arguments of a test of correlation."""

    budget: Budget
    alpha: float
    alternative: Alternative
    noise: NoiseSource

    @classmethod
    def checked(
        cls,
        epsilon: Amount,
        delta: Amount,
        alpha: object,
        alternative: Alternative,
        noise: NoiseSource | None,
    ) -> Asked:
        """Check them, before any data is read."""
        one_of("alternative", alternative, ALTERNATIVES)
        level = number("alpha", alpha, above=0, below=1)
        return cls(Budget(epsilon, delta), level, alternative, noise_source(noise))

    def facts(self, sides: TwoSamples, method: str, **parameters: Any) -> dict[str, Any]:
        """Return public fields of a result."""
        return {
            "adjacency": "one",
            "method": method,
            "null_hypothesis": _NULLS[self.alternative],
            "sizes": {"n": len(sides.x)},
            "parameters": {"alternative": self.alternative, **parameters},
            "rows_per_person": sides.rows_per_person,
        }


def numeric_pairs(
    x: Any,
    y: Any,
    bounds_x: Bounds,
    bounds_y: Bounds,
    *,
    rows: int,
    units: Units = "box",
) -> TwoSamples:
    """Read one numeric column a side, with at least so many rows."""
    sides = encode_pairs(x, y, bounds_x, bounds_y, units=units)
    if any(side.domain.levels != (0,) for side in sides):
        raise DataError("x and y must each be one numeric column; hsic_test takes several.")
    if units == "box":  # numbers are added, not only put in order
        refuse_wide_bounds(*sides)
    if len(sides.x) < rows:
        raise DataError(f"x and y must have at least {rows} rows.")
    return sides
