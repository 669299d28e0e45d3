"""Rows in a secret order, for tests that look at rows together which a file has far apart.

In memory they are put in that order. Rows of a source are read again for each slice of it: a slice
is what fits in memory, and threads or workers have one each. Proof: docs/proofs/secret-order.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.secret_order import secret_bins, secret_order
from privatest.data.samples import Sample
from privatest.data.stream import BLOCK_ROWS, Arranged, Shuffled, source_of
from privatest.engines.summaries import engine_of

__all__ = ["SLICE_NUMBERS", "in_secret_order", "in_slices", "secret_subsets"]

SLICE_NUMBERS = 1 << 25  # held by a worker at a time, 256 MiB
_LEAST = 4 * BLOCK_ROWS  # rows of a slice that are worth reading everything for


def in_secret_order(sample: Sample, noise: NoiseSource) -> Sample:
    """Return the same rows in a secret order, the same from memory and from a source."""
    source = source_of(sample.held)
    if source is None:
        return _arranged(sample, secret_order(len(sample), noise))
    engine, workers = engine_of([sample])
    at_once = engine.size(workers)
    # threads share the memory of this process
    numbers = SLICE_NUMBERS if workers.engine == "dask" else 2 * SLICE_NUMBERS // at_once
    most = max(numbers // max(sample.width, 1), BLOCK_ROWS)
    rows = min(most, max(-(-len(sample) // at_once), _LEAST))
    size = -(-rows // BLOCK_ROWS) * BLOCK_ROWS
    return in_slices(sample, [*range(size, len(sample), size), len(sample)], noise)


def secret_subsets(sample: Sample, count: int, noise: NoiseSource) -> Iterator[NDArray[np.float64]]:
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
    engine, workers = engine_of([sample])
    engine.size(workers)  # refuses workers that are not there
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
    held: Any = sample.held
    edges = (0, *ends)
    sizes = [stop - start for start, stop in pairwise(edges)]
    return replace(sample, held=Shuffled(held, secret_bins(sizes, noise), edges))


def _arranged(sample: Sample, order: NDArray[np.intp]) -> Sample:
    held: Any = sample.held
    return replace(sample, held=Arranged(held, order))
