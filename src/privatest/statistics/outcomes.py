"""Numbers of successes, and how far they move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.engines.summaries import summarise
from privatest.engines.sums import Counts

__all__ = ["Rule", "outcome_table", "success_counts", "success_width"]

Rule = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
"""Which of some rows are a success; it travels to other processes."""


def success_counts(*groups: tuple[Sample, Rule]) -> list[int]:
    """Return the number of successes of each group, in one pass."""
    asked = ((sample, partial(Counts, rule, 2)) for sample, rule in groups)
    return [int(found.counts[1]) for found in summarise(*asked)]


def success_width() -> int:
    """Return how far the number moves.

    Notes
    -----
    **Sensitivity** A replaced row is a success or not: 1. Proof: docs/proofs/proportions.md.
    """
    return 1


def outcome_table(counts: Sequence[int], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return successes and failures (columns) of each group (rows).

    A replaced row that may change its group leaves one cell and enters another: the table of
    :mod:`privatest.mechanisms.additive`, whose bounds it has.
    """
    pairs = zip(counts, sizes, strict=True)
    return np.array([(won, size - won) for won, size in pairs], dtype=np.int64)
