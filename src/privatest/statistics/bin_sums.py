"""Sums of features over secret bins of rows, in one pass: what a permutation test keeps of them.

In a second job of the same pass a secret few rows are kept as they are, in pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.secret_order import SecretBins, SecretFew, secret_bins, secret_few
from privatest.data.samples import TwoSamples
from privatest.data.stream import BLOCK_ROWS
from privatest.engines.summaries import FixedPoint, summarise
from privatest.kernels.coded import CodedMaps, CodedSums
from privatest.kernels.features import FeatureMaps
from privatest.kernels.kernels import UNIT_ROUNDOFF
from privatest.kernels.slots import Room
from privatest.statistics.bins import BinLayout, bin_order, summation_depth
from privatest.statistics.pooled import MOST_PAIRS

__all__ = ["Pairs", "binned_samples", "block_additions", "in_secret_bins"]

_BLOCKS_AT_ONCE = 8  # of which codes are held: many rows of a bin fill its slots better

Floats = NDArray[np.float64]
Pairs = tuple[Floats, Floats]
"""Row i of the first makes a pair with row i of the second."""


class _Waiting:
    """Codes of a few blocks, and the sums of those that were added."""

    def __init__(self, maps: CodedMaps, bins: int) -> None:
        self.maps, self.count, self.filled = maps, bins, 0
        self.sums, self.room = CodedSums(maps, bins), Room()

    def update(self, rows: Floats, bins: NDArray[np.intp]) -> None:
        """Keep the codes of a block, and add them if they are many."""
        most, width = _BLOCKS_AT_ONCE * BLOCK_ROWS, rows.shape[1]
        codes = self.room.of("codes", (most + 1, width), np.uint16)
        own = slice(self.filled, self.filled + len(rows))
        self.maps.write_codes(rows, codes[own], self.room)
        self.room.of("bins", (most,), np.uint16 if self.count <= 1 << 16 else np.intp)[own] = bins
        self.filled += len(rows)
        if self.filled + BLOCK_ROWS > most:
            self.flush()

    def flush(self) -> None:
        """Add what waits."""
        if not self.filled:
            return
        codes, bins = self.room.held["codes"], self.room.held["bins"][: self.filled]
        rows = codes.reshape(-1, self.sums.nothing.shape[1])[: self.filled + 1]
        rows[self.filled] = 0
        self.sums.add(rows, *bin_order(bins, self.count))
        self.filled = 0

    def finish(self) -> Iterator[Floats]:
        """Yield the sums of each block of features."""
        self.flush()
        return self.sums.finish()


@dataclass(slots=True, repr=False)  # a repr would show rows
class BinSums:
    """Sums of raw features over the rows of each bin; exact, but for one rounding a block."""

    maps: FeatureMaps
    bins: SecretBins
    total: int  # rows of the sample
    sums: list[FixedPoint] = field(default_factory=list)
    waiting: _Waiting | None = None

    def update(self, rows: Floats, start: int) -> None:
        """Put a block of rows in the order of their bins, and add it; codes wait to the end."""
        bins = self.bins.of_rows(start, start + len(rows))
        if isinstance(self.maps, CodedMaps):
            if self.waiting is None:
                self.waiting = _Waiting(self.maps, self.bins.count)
            self.waiting.update(rows, bins)
            return
        order, edges = bin_order(bins, self.bins.count)
        ordered = np.empty((rows.shape[1], len(rows)))
        for column, values in zip(ordered, rows.T, strict=True):
            np.take(values, order, out=column)
        self._add(self.maps.binned(ordered.T, edges))

    def close(self) -> None:
        """Add what waits."""
        if self.waiting is not None:
            self._add(self.waiting.finish())
            self.waiting = None

    def _add(self, found: Iterable[Floats]) -> None:
        for index, part in enumerate(found):
            if index == len(self.sums):
                self.sums.append(FixedPoint(part.shape, self.total))
            self.sums[index].add(part)

    def merge(self, other: BinSums) -> None:
        """Add the sums of other rows."""
        if not self.sums:
            self.sums = other.sums
            return
        for own, more in zip(self.sums, other.sums, strict=bool(other.sums)):
            own.merge(more)


@dataclass(slots=True, repr=False)
class ChosenRows:
    """A secret few rows, and their places in a random order."""

    chosen: SecretFew
    first: int  # number of the sample's first row among the rows of all samples
    places: list[NDArray[np.intp]] = field(default_factory=list)
    rows: list[Floats] = field(default_factory=list)

    def update(self, rows: Floats, start: int) -> None:
        """Keep what was chosen of a block."""
        begin = self.first + start
        mine, places = self.chosen.of_rows(begin, begin + len(rows))
        self.places.append(places)
        self.rows.append(rows[mine])

    def merge(self, other: ChosenRows) -> None:
        """Add what was chosen of other rows."""
        self.places += other.places
        self.rows += other.rows


@dataclass(slots=True, repr=False)
class _Both:
    """Both of them, in one pass."""

    sums: BinSums
    chosen: ChosenRows | None

    def update(self, rows: Floats, start: int) -> None:
        """Add a block."""
        self.sums.update(rows, start)
        if self.chosen is not None:
            self.chosen.update(rows, start)

    def close(self) -> None:
        """Add what waits."""
        self.sums.close()

    def merge(self, other: _Both) -> None:
        """Add other blocks."""
        self.sums.merge(other.sums)
        if self.chosen is not None and other.chosen is not None:
            self.chosen.merge(other.chosen)


def binned_samples(
    samples: TwoSamples, layout: BinLayout, maps: FeatureMaps, noise: NoiseSource, *, pairs: bool
) -> tuple[list[Floats], Pairs | None]:
    """Go once through both samples, each in secret bins of its own.

    Returns
    -------
    list of array
        For each block of features, bins × features: bins of x, of y, leftovers of x, of y.
    tuple of array, or None
        Secret pairs of rows of both samples together, if ``pairs`` are asked for.
    """
    bins = [
        secret_bins([layout.size] * count + [len(sample) - count * layout.size], noise)
        for sample, count in zip(samples, layout.counts, strict=True)
    ]
    x, y, kept = in_secret_bins(samples, (bins[0], bins[1]), maps, noise, pairs=pairs)
    sums = [np.vstack([a[:-1], b[:-1], a[-1:], b[-1:]]) for a, b in zip(x, y, strict=True)]
    return sums, kept


def in_secret_bins(
    samples: TwoSamples,
    bins: tuple[SecretBins, SecretBins],
    maps: FeatureMaps,
    noise: NoiseSource,
    *,
    pairs: bool,
) -> tuple[list[Floats], list[Floats], Pairs | None]:
    """Go once through both samples; return the sums of each, and secret pairs.

    The pairs are drawn apart from the bins, so that permuting rows and pairs together changes
    nothing (:func:`privatest.statistics.pooled.secret_pairs`).
    """
    n, m = map(len, samples)
    count = min((n + m) // 2, MOST_PAIRS)
    chosen = secret_few(2 * count, n + m, noise) if pairs else None
    x, y = summarise(
        *(
            (sample, partial(_empty, maps, own, len(sample), chosen, first))
            for sample, own, first in zip(samples, bins, (0, n), strict=True)
        )
    )
    sums = [[each.value for each in side.sums.sums] for side in (x, y)]
    for side, other in ((0, 1), (1, 0)):
        if not sums[side]:  # a private group may be empty
            sums[side] = [np.zeros_like(each) for each in sums[other]]
    if x.chosen is None or y.chosen is None:
        return sums[0], sums[1], None
    x.chosen.merge(y.chosen)
    rows = np.concatenate(x.chosen.rows)[np.argsort(np.concatenate(x.chosen.places))]
    return sums[0], sums[1], (rows[:count], rows[count:])


def _empty(
    maps: FeatureMaps, bins: SecretBins, rows: int, chosen: SecretFew | None, first: int
) -> _Both:
    return _Both(BinSums(maps, bins, rows), None if chosen is None else ChosenRows(chosen, first))


def block_additions(maps: FeatureMaps, rows: int, weight: float, bins: int) -> float:
    """Bound the rounding of sums over blocks, as so many units of roundoff of a weighted mean.

    Features that are exact have none. Else there are the additions within a block, and each bin
    of each block is rounded to fixed point by half a step, where a row counts 1/``weight``.
    """
    if maps.exact:
        return 0.0
    blocks = -(-rows // BLOCK_ROWS) + 1
    step = FixedPoint((), rows).step
    return summation_depth(BLOCK_ROWS) + blocks * bins * step / (2 * weight * UNIT_ROUNDOFF)
