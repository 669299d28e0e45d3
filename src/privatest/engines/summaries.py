"""What one pass over rows keeps, and how the rows are gone through.

A summary is empty, is updated by blocks of rows, and merges with another of its kind. Its numbers
are integers, or floats that are rounded to fixed point once a block (:class:`FixedPoint`): they
do not depend on the order in which blocks are added. Proof: docs/proofs/exact-sums.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from privatest.data.samples import Sample
from privatest.data.source import Workers
from privatest.data.stream import BLOCK_ROWS, Held, Shuffled, blocks_of, source_of

__all__ = [
    "FixedPoint",
    "Job",
    "Summary",
    "added",
    "engine_of",
    "fixed_rounding",
    "jobs_of",
    "summarise",
]

_LEAST, _MOST = 4, 64  # blocks of a job: worth sending, and not much to do again
_JOBS_EACH = 8  # for each worker, so that none waits long for the others


class Summary(Protocol):
    """What is known of the rows seen so far.

    Blocks come in any order, and there may be others between two of them. One that puts some work
    off has a method ``close`` too, which is called after the last block.
    """

    def update(self, rows: NDArray[np.float64], start: int) -> None:
        """Add a block of encoded rows; ``start`` is the number of the first in its sample."""

    def merge(self, other: Self) -> None:
        """Add what another has seen: other blocks of the same sample. It is not used again."""


Made = TypeVar("Made", bound=Summary)


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

    def add(self, sums: NDArray[np.float64], where: Any = ...) -> None:
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
    def value(self) -> NDArray[np.float64]:
        """The sums as floats."""
        return self.units.astype(np.float64) * 2.0**-self.shift


def fixed_rounding(rows: int, largest: float) -> float:
    """Bound how far a sum over rows is off by being rounded once a block; it grows with both."""
    # a step is 2^-61 times the next power of two, which is at most twice ``largest``
    return -(-rows // BLOCK_ROWS) * max(largest, 1.0) * 2.0**-61


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Job:
    """Rows ``start`` to ``stop`` of one sample, for a worker; ``start`` begins a block."""

    held: Held
    empty: Callable[[], Summary]
    start: int
    stop: int

    def add_to(self, summary: Summary, seen: Callable[[int], None] | None = None) -> None:
        """Read the rows and add them."""
        for first, rows in blocks_of(self.held, self.start, self.stop):
            summary.update(rows, first)
            if seen is not None:
                seen(len(rows))


def added(jobs: Iterable[Job], seen: Callable[[int], None] | None = None) -> Summary:
    """Return the summary of jobs of one sample, of which there is one at least."""
    summary: Summary | None = None
    for job in jobs:
        summary = job.empty() if summary is None else summary
        job.add_to(summary, seen)
    assert summary is not None
    getattr(summary, "close", _nothing)()
    return summary


def _nothing() -> None:
    """Close what needs no closing."""


def jobs_of(sample: Sample, empty: Callable[[], Summary], at_once: int = 1) -> list[Job]:
    """Cut a sample into jobs that begin with a block, near the beginning of a part.

    Rows are many for ``at_once`` jobs that run at the same time, or few: sizes are public.
    """
    held, total = sample.held, len(sample)
    blocks = total // (BLOCK_ROWS * _JOBS_EACH * at_once)
    step = min(max(blocks, _LEAST), _MOST) * BLOCK_ROWS
    source = source_of(held)
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
    # an empty sample has a job too: that a private group is empty is not to be seen
    return [Job(held, empty, a, b) for a, b in pairwise(cuts) if a < b or total == 0]


def summarise(*asked: tuple[Sample, Callable[[], Made]]) -> list[Made]:
    """Go once through the rows of each sample.

    Parameters
    ----------
    *asked : (Sample, function)
        The rows, and what makes an empty summary of them. The function travels to other
        processes, where the rows are read by them.
    """
    engine, workers = engine_of([sample for sample, _ in asked])
    at_once = engine.size(workers)
    found: list[Any] = [empty() for _, empty in asked]
    jobs = [
        (place, job)
        for place, (sample, empty) in enumerate(asked)
        for job in jobs_of(sample, empty, at_once)
    ]
    engine.run(jobs, found, workers)
    return found


def engine_of(samples: Sequence[Sample]) -> tuple[Any, Workers]:
    """Return who works for the first sample that is not in memory, and their module before it."""
    from privatest.engines import dask, local  # noqa: PLC0415 -- they need what is above

    sources = filter(None, (source_of(sample.held) for sample in samples))
    workers = next((source.workers for source in sources), Workers())
    return (dask if workers.engine == "dask" else local), workers
