"""Where public numbers end: how near and how large bounds may be, how many rows a person has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.validation import reject

if TYPE_CHECKING:
    from privatest.data.samples import Sample

__all__ = ["PAIR", "check_bounds", "refuse_wide_bounds", "rows_of_a_person"]

PAIR = "two finite numbers, the lower below the upper"
_NARROWEST, _LARGEST_BOUND = 1e-150, 1e150


def check_bounds(lower: float, upper: float) -> None:
    """Refuse bounds of a column that describe no range, or are next to each other.

    A quotient by a tiny distance, or its square, leaves the floats for some values and not for
    others: a warning or an error would tell of them.
    """
    if not lower < upper or not math.isfinite(upper - lower):
        raise ParameterError(f"bounds must be {PAIR}; got {lower:.15g} and {upper:.15g}.")
    if upper - lower < _NARROWEST:
        raise ParameterError(
            f"bounds must be at least {_NARROWEST:g} apart: declare the column in other units."
        )


def refuse_wide_bounds(*samples: Sample) -> None:
    """Refuse bounds whose squares or differences are not finite, for tests that compute them."""
    ends = np.array([[sample.box.lower, sample.box.upper] for sample in samples])
    if np.abs(ends).max() > _LARGEST_BOUND:
        reject("bounds", f"at most {_LARGEST_BOUND:g} in size: squares have to be finite", ends)


def rows_of_a_person(*samples: Sample) -> int:
    """Return the most rows that one person has in these samples together.

    Notes
    -----
    **Sensitivity** What is declared, and never more than there are rows: data sets that differ in
    a person with k of N rows differ in min(k, N) replaced rows. N is public, also where the
    groups' own sizes are not, so a statistic of several samples needs all of them here.
    """
    declared = max(sample.rows_per_person for sample in samples)
    return min(declared, max(1, sum(map(len, samples))))
