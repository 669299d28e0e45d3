"""Numbers of successes, and how far they move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["outcome_table", "success_count", "success_width"]


def success_count(outcomes: NDArray[np.bool_]) -> int:
    """Return the number of successes."""
    return int(np.count_nonzero(outcomes))


def success_width() -> int:
    """Return how far the number moves.

    Notes
    -----
    **Sensitivity** A replaced row is a success or not: 1. Proof: docs/proofs/proportions.md.
    """
    return 1


def outcome_table(groups: Sequence[NDArray[np.bool_]]) -> NDArray[np.int64]:
    """Return successes and failures (columns) of each group (rows).

    A replaced row that may change its group leaves one cell and enters another: the table of
    :mod:`privatest.mechanisms.counts`, whose bounds it has.
    """
    counts = [(success_count(group), len(group)) for group in groups]
    return np.array([(won, size - won) for won, size in counts], dtype=np.int64)
