"""A secret random order of rows that nobody has to hold.

Every row has a secret random key, and the order of the keys is the order of the rows. Keys come
from one secret by a block cipher, so that any worker can find those of its own rows, in any
batches, twice if need be. Which rows come first is decided by cut points: the keys of given rank,
which are found in two passes over the keys. Proof: docs/proofs/secret-order.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource

KEYS_AT_ONCE = 1 << 16
_TOP = np.uint64(48)  # the highest 16 bits say nearly always which bin it is
_LEADING = 1 << 16
_LAST = np.uint64(2**64 - 1)
_QUICK, _PIECE = 1 << 18, 1 << 20  # keys that one thread finds alone, and at a time

Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show the secret
class SecretBins:
    """Which bin each row is in: as many rows as asked for in each, uniformly at random."""

    secret: bytes
    first: int  # the number among all keys that row 0 has
    cuts: Keys  # rows with keys below the first are in bin 0, and so on
    bin_of: NDArray[np.int32] | None  # by the highest bits of a key; -1 where a cut has the same

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.cuts) + 1

    def keys(self, start: int, stop: int) -> Keys:
        """Return the keys of rows ``start`` to ``stop``."""
        return _keys(self.secret, self.first + start, self.first + stop)

    def of_rows(self, start: int, stop: int) -> NDArray[np.intp]:
        """Return the bins of rows ``start`` to ``stop``."""
        keys = self.keys(start, stop)
        if self.bin_of is None:
            return np.searchsorted(self.cuts, keys, side="right")
        bins = np.take(self.bin_of, _leading(keys), mode="clip")  # the other modes are slower
        unsure = np.flatnonzero(bins < 0)
        bins[unsure] = np.searchsorted(self.cuts, keys[unsure], side="right")
        return bins.astype(np.intp)

    def between(self, start: int, stop: int, bins: range) -> tuple[NDArray[np.intp], Keys]:
        """Return which of rows ``start`` to ``stop`` are in neighbouring bins, and their keys."""
        keys = self.keys(start, stop)
        mine = np.ones(len(keys), dtype=np.bool_)
        if bins.start > 0:
            mine &= keys >= self.cuts[bins.start - 1]
        if bins.stop < self.count:
            mine &= keys < self.cuts[bins.stop - 1]
        found = np.flatnonzero(mine)
        return found, keys[found]

    def order(self, keys: Keys, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the order of rows with these keys and numbers."""
        return _order(self.secret, keys, rows)


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show who was chosen
class SecretFew:
    """A few rows of many, in a random order: each such list with the same probability."""

    rows: NDArray[np.intp]  # in the order of the data
    places: NDArray[np.intp]  # of each in the random order

    @classmethod
    def of(cls, chosen: NDArray[np.intp]) -> SecretFew:
        """Take these rows, in this order."""
        order = np.argsort(chosen)
        return cls(chosen[order], order)

    def of_rows(self, start: int, stop: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which of rows ``start`` to ``stop`` were chosen, and their places."""
        first, last = np.searchsorted(self.rows, (start, stop))
        return self.rows[first:last] - start, self.places[first:last]


def secret_few(count: int, total: int, noise: NoiseSource) -> SecretFew:
    """Choose ``count`` of ``total`` rows and put them in a random order.

    Uniform numbers are drawn, and those that came before are left out: no row needs a key.
    """
    if total <= 4 * count:
        chosen = noise.permutation(total)[:count]
    else:
        few, found = _secret_numbers(noise.key(), total, 2 * count), np.empty(0, np.intp)
        while len(found) < count:
            drawn = np.concatenate([found, next(few)])
            found = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
        chosen = found[:count]
    return SecretFew.of(chosen)


def _secret_numbers(key: bytes, limit: int, size: int) -> Iterator[NDArray[np.intp]]:
    """Yield independent uniform numbers below ``limit``: words cut to its bits, if below it."""
    bits = np.uint64(max(limit - 1, 1).bit_length())
    for start in count(0, size):
        words = _keys(key, start, start + size) >> (np.uint64(64) - bits)
        yield words[words < limit].astype(np.intp)


def secret_bins(sizes: Sequence[int], noise: NoiseSource) -> SecretBins:
    """Put sum(sizes) rows into bins of these sizes, each way with the same probability.

    Equal keys at a cut would leave a bin too small: then all are drawn again.
    """
    ranks, total = np.cumsum(sizes)[:-1], int(sum(sizes))
    for secret in _secrets(noise):
        cuts = _cuts(secret, 0, total, ranks)
        if cuts is not None:
            return SecretBins(secret, 0, cuts, _bin_of(cuts, total))
    raise AssertionError  # there is no end of secrets


def secret_order(total: int, noise: NoiseSource) -> NDArray[np.intp]:
    """Return rows in the order of their keys: that of :func:`secret_bins` with the same noise."""
    secret = next(_secrets(noise))
    return _order(secret, _keys(secret, 0, total), np.arange(total))


def _order(secret: bytes, keys: Keys, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Sort keys; where they are equal, a hash of each row's number decides, not its place."""
    order = np.argsort(keys)
    ordered = keys[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    for key in np.unique(ordered[same]):
        first, last = (int(np.searchsorted(ordered, key, side=side)) for side in ("left", "right"))
        tied = order[first:last]
        hashes = [_row_hash(secret, int(number)) for number in rows[tied]]
        order[first:last] = tied[sorted(range(len(tied)), key=hashes.__getitem__)]
    return order


def _row_hash(secret: bytes, row: int) -> bytes:
    return hashlib.shake_256(secret + b"row" + row.to_bytes(8, "little")).digest(32)


def secret_pair_bins(
    n: int, m: int, sizes: Sequence[int], noise: NoiseSource
) -> tuple[SecretBins, SecretBins]:
    """Put n + m rows into secret bins of pairs; say who has a partner of the other kind.

    The first n rows are of one kind. All rows are put in a uniform order, of which neighbours
    make pairs, and bins hold ``sizes`` rows each (even numbers, but for the last). In the bins of
    the result, 2b holds the rows of bin b whose partner is of the other kind, 2b + 1 the others.

    How many pairs of a bin are mixed depends on the order of kinds alone. Given that number, the
    rows of one kind in them are a uniform choice, so they may be those with the lowest keys.
    """
    ranks, total = np.cumsum(sizes)[:-1], n + m
    for secret in _secrets(noise):
        cuts = _cuts(secret, 0, total, ranks)
        if cuts is None:
            continue
        counts = _counts(SecretBins(secret, 0, cuts, _bin_of(cuts, total)), n)
        mixed = [
            _mixed(int(own), int(size), noise) for own, size in zip(counts, sizes, strict=True)
        ]
        found = []
        for first, stop, rows in ((0, n, counts), (n, total, np.asarray(sizes) - counts)):
            ends = np.cumsum(np.stack([mixed, rows - mixed], axis=1).ravel())[:-1]
            own_cuts = _cuts(secret, first, stop, ends)
            if own_cuts is not None:
                found.append(SecretBins(secret, first, own_cuts, _bin_of(own_cuts, total)))
        if len(found) == 2:
            return found[0], found[1]
    raise AssertionError  # there is no end of secrets


def _secrets(noise: NoiseSource) -> Iterator[bytes]:
    key = noise.key()
    for attempt in count():
        yield hashlib.shake_256(key + attempt.to_bytes(8, "little")).digest(32)


def _mixed(own: int, size: int, noise: NoiseSource) -> int:
    """Draw the number of pairs with one of ``own`` rows, of ``size`` rows in a random order."""
    kinds = noise.permutation(size)[: size - size % 2].reshape(-1, 2) < own
    return int((kinds[:, 0] != kinds[:, 1]).sum())


def _counts(bins: SecretBins, rows: int) -> NDArray[np.int64]:
    """Count the first ``rows`` rows by bin."""
    counts = np.zeros(bins.count, dtype=np.int64)
    for start in range(0, rows, KEYS_AT_ONCE):
        found = bins.of_rows(start, min(start + KEYS_AT_ONCE, rows))
        counts += np.bincount(found, minlength=bins.count)
    return counts


def row_coins(key: bytes, start: int, stop: int) -> NDArray[np.bool_]:
    """Return a fair, secret coin of each of the rows ``start`` to ``stop``."""
    first, last = start // KEYS_AT_ONCE, -(-stop // KEYS_AT_ONCE)
    parts = [np.empty(0, np.uint8)]
    for number in range(first, last):
        digest = hashlib.shake_256(key + b"coins" + number.to_bytes(8, "little"))
        parts.append(np.frombuffer(digest.digest(KEYS_AT_ONCE // 8), dtype=np.uint8))
    coins = np.unpackbits(np.concatenate(parts)).view(np.bool_)
    return coins[start - first * KEYS_AT_ONCE : stop - first * KEYS_AT_ONCE]


def secret_shares(key: bytes, count: int) -> NDArray[np.float64]:
    """Return uniform, secret numbers in [0, 1); fewer of one key are the first of them."""
    words = hashlib.shake_256(key + b"shares").digest(8 * count)
    keys = np.frombuffer(words, dtype="<u8") >> np.uint64(11)
    return keys.astype(np.float64) * 2.0**-53


def _keys(secret: bytes, start: int, stop: int) -> Keys:
    """Return the 64-bit words from ``start`` to ``stop`` of AES-256 in counter mode."""
    # not needed to import privatest
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415

    first, words = start // 2, max(stop - start // 2 * 2, 0)  # a block has two words
    counter = modes.CTR(first.to_bytes(16, "big"))
    stream = Cipher(algorithms.AES(secret), counter).encryptor()
    return np.frombuffer(stream.update(bytes(8 * words)), dtype="<u8")[start % 2 :]


def _leading(keys: Keys) -> NDArray[np.intp]:
    """Return the highest 16 bits of each key."""
    return (keys >> _TOP).astype(np.intp)


def _cuts(secret: bytes, first: int, stop: int, ranks: NDArray[np.intp]) -> Keys | None:
    """Return keys by rank, among rows ``first`` to ``stop``; None if one occurs twice."""
    asked, total = (secret, first, stop), stop - first
    if total == 0:
        return np.full(len(ranks), _LAST)
    if total <= KEYS_AT_ONCE:
        return _of_rank(np.sort(_keys(secret, first, stop)), ranks, ranks, total)
    counts = np.zeros(_LEADING, dtype=np.int64)
    for own in _by_pieces(lambda keys: np.bincount(_leading(keys), minlength=_LEADING), *asked):
        counts += own
    up_to = np.cumsum(counts)
    # a rank that is not below the total (the last bins are empty) is above every key
    leading = np.searchsorted(up_to, np.minimum(ranks, total - 1), side="right")
    wanted = np.zeros(_LEADING, dtype=np.bool_)
    wanted[leading] = True
    near = _by_pieces(lambda keys: keys[np.take(wanted, _leading(keys), mode="clip")], *asked)
    found = np.sort(np.concatenate([np.empty(0, np.uint64), *near]))
    skipped = np.cumsum(np.where(wanted, 0, counts))[leading]  # keys below that were not kept
    return _of_rank(found, ranks - skipped, ranks, total)


def _of_rank(
    found: Keys, places: NDArray[np.intp], ranks: NDArray[np.intp], total: int
) -> Keys | None:
    """Return the keys at these places, which have these ranks; None if one occurs twice.

    A rank that no key has is above all of them: the last bins are empty.
    """
    inside = ranks < total
    places = np.minimum(places, len(found) - 1)
    cuts: Keys = found[places]
    if (inside & (places > 0) & (found[places - 1] == cuts)).any():
        return None
    if not inside.all() and found[-1] == _LAST:
        return None
    return np.where(inside, cuts, _LAST)


def _bin_of(cuts: Keys, total: int) -> NDArray[np.int32] | None:
    """Return the bin of all keys that begin with given bits, -1 where they are parted.

    None for few rows, of which it would take longer than looking them up.
    """
    if total <= KEYS_AT_ONCE:
        return None
    edges = np.arange(_LEADING, dtype=np.uint64) << _TOP
    bins = np.searchsorted(cuts, edges, side="right").astype(np.int32)
    bins[cuts >> _TOP] = -1
    return bins


def _by_pieces(
    function: Callable[[Keys], NDArray[Any]], secret: bytes, first: int, stop: int
) -> Iterator[NDArray[Any]]:
    """Yield what the function returns for the keys of rows ``first`` to ``stop``, by pieces."""
    size = KEYS_AT_ONCE if stop - first <= _QUICK else _PIECE
    starts = range(first, stop, size)

    def piece(start: int) -> NDArray[Any]:
        return function(_keys(secret, start, min(start + size, stop)))

    workers = 1 if stop - first <= _QUICK else os.cpu_count() or 1  # counting takes a while
    if workers == 1:
        yield from map(piece, starts)
        return
    with ThreadPoolExecutor(workers) as pool:
        for step in range(0, len(starts), 8):  # few at a time: keys are not to be held
            yield from pool.map(piece, starts[step : step + 8])
