"""One pass over the rows of samples: sums, counts, and rows in a secret order.

Sums of floats are rounded to fixed point once a block, so that they do not depend on the order in
which blocks are added. A block is mapped piece by piece, so that features of few columns need
little memory, and a piece is summed by stretches: fewer roundings than one after the other.
Proofs: docs/proofs/exact-sums.md, docs/proofs/secret-order.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.secret_order import secret_bins, secret_order
from privatest.data.encoding import Sample
from privatest.data.engines import (
    BLOCK_ROWS,
    BlockJob,
    DaskEngine,
    EngineConfig,
    LocalEngine,
    Summary,
    engine_for,
)
from privatest.data.sources import Arranged, Shuffled, as_blocks, source_of

SLICE_NUMBERS = 1 << 25  # held by a worker at a time, 256 MiB
_LEAST_SLICE = 4 * BLOCK_ROWS  # rows of a slice that are worth reading everything for
_LEAST, _MOST = 4, 64  # blocks of a job: worth sending, and not much to do again
_JOBS_EACH = 8  # for each worker, so that none waits long for the others

UNIT_ROUNDOFF = 2.0**-53
PIECE = 1 << 13  # rows that are mapped at once
STRETCH = 1 << 10  # rows that are summed in any order
# of a product and the sum over a stretch, over stretches, over pieces; of an integer made a float,
# and of the steps after it
_ROUNDINGS = STRETCH + PIECE // STRETCH + BLOCK_ROWS // PIECE + 8
_ONES = np.ones(STRETCH)

Floats = NDArray[np.float64]
CellsOf = Callable[[Floats], NDArray[np.intp] | NDArray[np.bool_]]
"""Rows to the cell of each, or to whether they count; it is sent to other processes."""

Terms = Callable[[Floats], Floats]
"""Rows to a vector of each; a row by itself."""

Made = TypeVar("Made", bound=Summary)

# --- one pass -------------------------------------------------------------------------------


def summarise(*requests: tuple[Sample, Callable[[], Made]]) -> list[Made]:
    """Go once through the rows of each sample.

    Parameters
    ----------
    *requests : (Sample, function)
        The rows, and what makes an empty summary of them. The function is sent to other
        processes, if they read the rows.
    """
    engine = engine_of([sample for sample, _ in requests])
    at_once = engine.size()
    totals: list[Any] = [empty() for _, empty in requests]
    jobs = [
        (place, job)
        for place, (sample, empty) in enumerate(requests)
        for job in jobs_of(sample, empty, at_once)
    ]
    engine.run(jobs, totals)
    return totals


def engine_of(samples: Sequence[Sample]) -> LocalEngine | DaskEngine:
    """Return the engine of the first sample that is not in memory."""
    sources = filter(None, (source_of(sample.held) for sample in samples))
    return engine_for(next((source.workers for source in sources), EngineConfig()))


def jobs_of(sample: Sample, empty: Callable[[], Summary], at_once: int = 1) -> list[BlockJob]:
    """Cut a sample into jobs that begin with a block, near the beginning of a part.

    Rows are many for ``at_once`` jobs that run at the same time, or few: sizes are public.
    """
    held, total = as_blocks(sample.held), len(sample)
    blocks = total // (BLOCK_ROWS * _JOBS_EACH * at_once)
    step = min(max(blocks, _LEAST), _MOST) * BLOCK_ROWS
    source = held.source
    if isinstance(held, Shuffled):
        cuts = list(held.edges)
    elif source is None:
        cuts = [*(range(0, total, step) or [0]), total]
    else:
        cuts = [0]
        for start in source.starts[1:-1]:
            aligned = -(-start // BLOCK_ROWS) * BLOCK_ROWS
            if aligned - cuts[-1] >= step and aligned < total:
                cuts.append(aligned)
        cuts.append(total)
    # an empty sample has a job too: that a private group is empty must not show
    return [BlockJob(held, empty, a, b) for a, b in pairwise(cuts) if a < b or total == 0]


# --- exact sums and counts ------------------------------------------------------------------


class FixedPoint:
    """Sums of floats as integers: adding them is exact, so any order gives the same sum.

    Parameters
    ----------
    shape : tuple of int
        Of the sums.
    largest : float
        Public bound on the absolute value of a whole sum.
    """

    __slots__ = ("shift", "units")

    def __init__(self, shape: tuple[int, ...], largest: float) -> None:
        self.shift = 61 - int(np.ceil(np.log2(max(largest, 1.0))))
        self.units = np.zeros(shape, dtype=np.int64)

    def add(self, sums: Floats, where: Any = ...) -> None:
        """Add the sums of a block, each rounded to a multiple of 2^-shift."""
        self.units[where] += np.rint(sums * 2.0**self.shift).astype(np.int64)

    def merge(self, other: FixedPoint) -> None:
        """Add other sums."""
        self.units += other.units

    @property
    def step(self) -> float:
        """Twice the largest error of one addition."""
        return float(2.0**-self.shift)

    @property
    def value(self) -> Floats:
        """The sums as floats."""
        return self.units.astype(np.float64) * 2.0**-self.shift


def fixed_rounding(rows: int, largest: float) -> float:
    """Bound the error of a sum over rows from rounding once a block; it grows with both."""
    # a step is 2^-61 times the next power of two, which is at most twice ``largest``
    return -(-rows // BLOCK_ROWS) * max(largest, 1.0) * 2.0**-61


def sum_rounding(rows: int, largest: float) -> tuple[float, float]:
    """Bound the rounding of a sum over rows, by two parts that are added.

    Parameters
    ----------
    rows : int
        How many are summed.
    largest : float
        Bound on the absolute value of one term.

    Returns
    -------
    relative, absolute : float
        The error is at most relative · Σ |term|, of floats within blocks, and ``absolute``, of
        fixed point.
    """
    # (1 + u)^k - 1 <= 1.01 k u for all k here
    return 1.01 * _ROUNDINGS * UNIT_ROUNDOFF, fixed_rounding(rows, rows * largest)


def pieces(rows: Floats) -> Iterator[Floats]:
    """Yield the pieces of a block."""
    for first in range(0, len(rows), PIECE):
        yield rows[first : first + PIECE]


def column_sums(terms: Floats) -> Floats:
    """Return the sum over the rows of a piece."""
    whole, width = len(terms) // STRETCH * STRETCH, terms.shape[1]
    stretches = _ONES @ terms[:whole].reshape(-1, STRETCH, width)
    total: Floats = stretches.sum(axis=0)
    return total if whole == len(terms) else total + _ONES[: len(terms) - whole] @ terms[whole:]


def square_sums(terms: Floats) -> Floats:
    """Return the sum of row · row' over a piece."""
    whole, width = len(terms) // STRETCH * STRETCH, terms.shape[1]
    stretches = terms[:whole].reshape(-1, STRETCH, width)
    total: Floats = (stretches.transpose(0, 2, 1) @ stretches).sum(axis=0)
    return total if whole == len(terms) else total + terms[whole:].T @ terms[whole:]


class TermSums:
    """Sum of a vector of each row.

    Parameters
    ----------
    terms : function
        Rows to rows × width terms, each row by itself; it is sent to other processes.
    width : int
        Number of terms of a row.
    largest : float
        Bound on the absolute value of a whole sum.
    """

    __slots__ = ("sums", "terms")

    def __init__(self, terms: Terms, width: int, largest: float) -> None:
        self.terms, self.sums = terms, FixedPoint((width,), largest)

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        del start
        total = np.zeros(self.sums.units.shape)
        for piece in pieces(rows):
            total += column_sums(self.terms(piece))
        self.sums.add(total)

    def merge(self, other: TermSums) -> None:
        """Add other blocks."""
        self.sums.merge(other.sums)


def sums_of(sample: Sample, terms: Terms, width: int, largest: float) -> Floats:
    """Return the sum over all rows; ``largest`` bounds a term of one row."""
    (summary,) = summarise((sample, partial(TermSums, terms, width, len(sample) * largest)))
    return summary.sums.value


class Counts:
    """Number of rows in each cell.

    Parameters
    ----------
    cells_of : function
        Rows to the cell of each.
    size : int
        Number of cells.
    """

    __slots__ = ("cells_of", "counts")

    def __init__(self, cells_of: CellsOf, size: int) -> None:
        self.cells_of, self.counts = cells_of, np.zeros(size, dtype=np.int64)

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        del start
        self.counts += np.bincount(self.cells_of(rows), minlength=len(self.counts))

    def merge(self, other: Counts) -> None:
        """Add other blocks."""
        self.counts += other.counts


def counts_of(*samples: Sample, cells_of: CellsOf, size: int) -> list[NDArray[np.int64]]:
    """Count the rows of each sample in public cells: exact, whatever the order."""
    summaries = summarise(*((sample, partial(Counts, cells_of, size)) for sample in samples))
    return [summary.counts for summary in summaries]


# --- secret order ---------------------------------------------------------------------------


def in_secret_order(sample: Sample, noise: NoiseSource) -> Sample:
    """Return the same rows in a secret order, for tests that look at distant rows together.

    The order is the same from memory and from a source. Rows of a source are read again for each
    slice of it: a slice fits in memory, and threads or workers have one each.
    """
    if source_of(sample.held) is None:
        return _arranged(sample, secret_order(len(sample), noise))
    engine = engine_of([sample])
    at_once = engine.size()
    # threads share the memory of this process
    shared = isinstance(engine, LocalEngine)
    numbers = 2 * SLICE_NUMBERS // at_once if shared else SLICE_NUMBERS
    most = max(numbers // max(sample.width, 1), BLOCK_ROWS)
    rows = min(most, max(-(-len(sample) // at_once), _LEAST_SLICE))
    size = -(-rows // BLOCK_ROWS) * BLOCK_ROWS
    return in_slices(sample, [*range(size, len(sample), size), len(sample)], noise)


def secret_subsets(sample: Sample, count: int, noise: NoiseSource) -> Iterator[Floats]:
    """Cut rows, in a secret order, into subsets of nearly equal sizes; yield a copy of each.

    Those of a source are read as many at a time as there is room for.
    """
    total = len(sample)
    ends = [total // count * number + min(total % count, number) for number in range(count + 1)]
    if source_of(sample.held) is None:
        order = secret_order(total, noise)
        for start, stop in pairwise(ends):
            yield _arranged(sample, order[start:stop]).rows
        return
    engine_of([sample]).size()  # refuses workers that are not there
    edges, most = [0], max(SLICE_NUMBERS // sample.width, 1)
    for end, after in pairwise([*ends[1:], 2 * total + most]):
        if after - edges[-1] > most:
            edges.append(end)
    held = in_slices(sample, edges[1:], noise).held
    assert isinstance(held, Shuffled)
    for first, last in pairwise(edges):
        rows, order = held.slice(first, last)
        for start, stop in pairwise(end for end in ends if first <= end <= last):
            yield rows[order[start - first : stop - first]]


def in_slices(sample: Sample, ends: list[int], noise: NoiseSource) -> Sample:
    """Return the rows of a source in a secret order, to be read in slices that end there."""
    edges = (0, *ends)
    sizes = [stop - start for start, stop in pairwise(edges)]
    return replace(sample, held=Shuffled(as_blocks(sample.held), secret_bins(sizes, noise), edges))


def _arranged(sample: Sample, order: NDArray[np.intp]) -> Sample:
    return replace(sample, held=Arranged(as_blocks(sample.held), order))
