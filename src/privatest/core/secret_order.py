"""A secret random order of rows that nobody has to hold.

Every row has a secret random key, and the order of the keys is the order of the rows. Keys come
from one secret by a hash function, so that any worker can find those of its own rows, in any
batches, twice if need be. Which rows come first is decided by cut points: the keys of given rank,
which are found in two passes over the keys. Proof: docs/proofs/secret-order.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource

__all__ = ["SecretBins", "secret_bins"]

KEYS_PER_DIGEST = 1 << 16
_TOP = np.uint64(48)  # the highest 16 bits say nearly always which bin it is
_LEADING = 1 << 16
_QUICK = 1 << 18  # keys that one thread finds at once

Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show the secret
class SecretBins:
    """Which bin each row is in: as many rows as asked for in each, uniformly at random."""

    secret: bytes
    cuts: Keys  # rows with keys below the first are in bin 0, and so on
    bin_of: NDArray[np.intp]  # by the highest bits of a key; -1 where a cut has the same

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.cuts) + 1

    def keys(self, start: int, stop: int) -> Keys:
        """Return the keys of rows ``start`` to ``stop``."""
        return _keys(self.secret, start, stop)

    def of_rows(self, start: int, stop: int) -> NDArray[np.intp]:
        """Return the bins of rows ``start`` to ``stop``."""
        keys = self.keys(start, stop)
        bins: NDArray[np.intp] = self.bin_of[keys >> _TOP]
        unsure = np.flatnonzero(bins < 0)
        bins[unsure] = np.searchsorted(self.cuts, keys[unsure], side="right")
        return bins


def secret_bins(sizes: Sequence[int], noise: NoiseSource) -> SecretBins:
    """Put sum(sizes) rows into bins of these sizes, each way with the same probability.

    Equal keys at a cut would leave a bin too small: then all are drawn again.
    """
    ranks = np.cumsum(sizes)[:-1]
    total = int(sum(sizes))
    key = noise.key()
    for attempt in count():
        secret = hashlib.shake_256(key + attempt.to_bytes(8, "little")).digest(32)
        cuts = _cuts(secret, total, ranks)
        if cuts is not None:
            return SecretBins(secret, cuts, _bin_of(cuts))
    raise AssertionError  # count() does not end


def _keys(secret: bytes, start: int, stop: int) -> Keys:
    first, last = start // KEYS_PER_DIGEST, -(-stop // KEYS_PER_DIGEST)
    parts = []
    for number in range(first, last):
        used = min(stop - number * KEYS_PER_DIGEST, KEYS_PER_DIGEST)
        digest = hashlib.shake_256(secret + number.to_bytes(8, "little")).digest(8 * used)
        parts.append(np.frombuffer(digest, dtype="<u8"))
    keys = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint64), *parts])
    return keys[start - first * KEYS_PER_DIGEST :]


def _cuts(secret: bytes, total: int, ranks: NDArray[np.intp]) -> Keys | None:
    """Return the keys of these ranks among all; None if one of them occurs twice."""
    counts = np.zeros(_LEADING, dtype=np.int64)
    for keys in _pieces(secret, total):
        counts += np.bincount((keys >> _TOP).astype(np.intp), minlength=_LEADING)
    up_to = np.cumsum(counts)
    # a rank that is not below the total (the last bins are empty) is above every key
    leading = np.searchsorted(up_to, np.minimum(ranks, total - 1), side="right")
    wanted = np.zeros(_LEADING, dtype=np.bool_)
    wanted[leading] = True
    near = [keys[wanted[keys >> _TOP]] for keys in _pieces(secret, total)]
    found = np.sort(np.concatenate([np.empty(0, np.uint64), *near]))
    skipped = np.cumsum(np.where(wanted, 0, counts))[leading]  # keys below that were not kept
    places = np.minimum(ranks, total - 1) - skipped
    cuts: Keys = found[places]
    twice = (places > 0) & (found[places - 1] == cuts) & (ranks < total)
    if twice.any():
        return None
    if (ranks >= total).any() and found[-1] == np.uint64(2**64 - 1):
        return None
    return np.where(ranks < total, cuts, np.uint64(2**64 - 1))


def _bin_of(cuts: Keys) -> NDArray[np.intp]:
    """Return the bin of all keys that begin with given bits, -1 where they are parted."""
    edges = np.arange(_LEADING, dtype=np.uint64) << _TOP
    bins = np.searchsorted(cuts, edges, side="right")
    bins[cuts >> _TOP] = -1
    return bins


def _pieces(secret: bytes, total: int) -> Iterator[Keys]:
    starts = range(0, total, KEYS_PER_DIGEST)

    def piece(start: int) -> Keys:
        return _keys(secret, start, min(start + KEYS_PER_DIGEST, total))

    workers = os.cpu_count() or 1
    if total <= _QUICK or workers == 1:
        yield from map(piece, starts)
        return
    with ThreadPoolExecutor(workers) as pool:  # hashing releases the interpreter
        for first in range(0, len(starts), 64):  # few at a time: keys are not to be held
            yield from pool.map(piece, starts[first : first + 64])
