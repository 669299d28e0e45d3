"""Secret orders that give every record the same place in both neighbours.

A secret order is uniform whatever the data is, so neighbours may be compared under a coupling that
treats equal records alike. Tests use an order in three ways; the coupling that fits is the one
under which nothing differs.

Tests of order read many rows in passes and order ties by counts alone (docs/proofs/value-cells.md).
Which of several equal records is where is never known, so that coupling gives labels to the first,
second, third of a group at a value. A record that leaves takes the last label of its group away,
and all others keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource, SimulatedNoise
from privatest.core.secret_order import SecretFew
from privatest.data import summaries
from privatest.methods import embedding
from privatest.numerics import ecdf, independence
from privatest.numerics import order as value_order
from privatest.numerics import permutation as relabelling

if TYPE_CHECKING:
    from privatest.audit.cases import Case

Ints = NDArray[np.intp]
Patch = tuple[Any, str, Any]  # an owner, a name and what takes its place
_AT_ONCE = 5  # rows that are put in order at a time: twelve equal ones take three stretches
_MOST_GROUPS = 8


class FixedBins:
    """Secret bins by given ranks of rows instead of secret keys."""

    def __init__(self, bins: Ints, count: int) -> None:
        self.bins, self.count = bins, count

    def of_rows(self, start: int, stop: int) -> Ints:
        """Return the bins of some rows."""
        return self.bins[start:stop]


@contextmanager
def patched(patches: list[Patch]) -> Iterator[None]:
    """Put things in the place of others for a block."""
    before = [getattr(owner, name) for owner, name, _ in patches]
    try:
        for owner, name, new in patches:
            setattr(owner, name, new)
        yield
    finally:
        for (owner, name, _), old in zip(patches, before, strict=True):
            setattr(owner, name, old)


def in_passes(case: Case) -> Case:
    """Return the case with rows read in passes."""

    def call(*given: Any) -> Any:
        with patched([(value_order, "HELD_ROWS", 0), (value_order, "SLICE_ROWS", _AT_ONCE)]):
            return case.call(*given)

    return replace(case, name=f"{case.name}, in passes", call=call, plain=False)


class OrderedTies:
    """Orders of equal rows from their counts, the same for neighbours but for one row.

    Parameters
    ----------
    stored : ndarray of int
        Which record lies at which place.
    seed : int
        The same seed gives the same labels.
    """

    def __init__(self, stored: Ints, seed: int) -> None:
        rng = np.random.default_rng([seed, len(stored)])
        self._labels = rng.random((_MOST_GROUPS, len(stored)))
        self._coins = (rng.random(len(stored)) < 0.5)[stored]
        self._groups = self._order = np.empty(0, np.intp)  # of the rows of one value
        self._taken = 0  # of them

    def patches(self) -> list[Patch]:
        """Return what takes the place of draws."""
        tied = self._tied(value_order.tied_groups)
        return [
            (value_order, "_shuffled", self._shuffled),
            (value_order, "_drawn", self._drawn),
            (value_order, "secret_bins", self._bins),
            (ecdf, "tied_groups", tied),
            (ecdf, "row_coins", lambda _, start, stop: self._coins[start:stop]),
        ]

    def _shuffled(self, keys: Any, groups: Any, noise: Any) -> Any:
        """Order the groups of each value by their labels; they come sorted."""
        del noise
        runs = np.cumsum(np.append(False, keys[1:] != keys[:-1]))
        begins = np.append(True, (np.diff(runs) != 0) | (np.diff(groups) != 0))
        first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
        labels = self._labels[groups, np.arange(len(groups)) - first]
        return groups[np.lexsort((labels, runs))]

    def _tied(self, usual: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def tied(counts: Any, noise: Any) -> Iterator[Any]:
            self._sort(counts)
            yield from usual(counts, noise)

        return tied

    def _sort(self, counts: Any) -> None:
        self._groups = np.repeat(np.arange(len(counts)), counts)
        places = np.concatenate([np.arange(own) for own in counts])
        self._order, self._taken = np.argsort(self._labels[self._groups, places]), 0

    def _bins(self, sizes: Any, noise: Any) -> FixedBins:
        del noise
        ranks = np.argsort(self._order)
        return FixedBins(np.searchsorted(np.cumsum(sizes)[:-1], ranks, side="right"), len(sizes))

    def _drawn(self, counts: Any, noise: Any) -> Any:
        """Return the next rows of a value; the bins have counted as many of each group."""
        del noise
        begin, self._taken = self._taken, self._taken + int(counts.sum())
        found = self._groups[self._order[begin : self._taken]].astype(np.int16)
        if np.bincount(found, minlength=len(counts)).tolist() != list(counts):
            raise AssertionError("stretches of a value hold other rows than their bins say")
        return found


Coupling = Literal["places", "ranks", "sorted ranks"]
COUPLINGS: tuple[Coupling, ...] = ("places", "ranks", "sorted ranks")
# from which argument on they are public; how many uniforms axes take is not promised
_PUBLIC_ARGUMENTS = {"laplace": 1, "gaussian": 1, "discrete_laplace": 0, "below": 0}


@contextmanager
def coupled(
    stored: Ints, groups: tuple[Ints, ...], seed: int, how: Coupling
) -> Iterator[list[tuple[Any, ...]]]:
    """Let all secret orders of a block follow the records; return what is asked of the noise.

    Parameters
    ----------
    stored : ndarray of int
        Which record lies at which place: one group after the other.
    groups : tuple of ndarray
        The records of each group, in the order in which they lie; there may be none.
    seed : int
        The same seed gives records the same order, wherever they lie.
    how : {"places", "ranks", "sorted ranks"}
        Whether an order lists places, or gives each place its rank; sorted, if ``stored`` is.
    """
    asked: list[tuple[Any, ...]] = []
    orders, usual = _orders(stored, groups, seed), SimulatedNoise.permutation

    def permutation(self: SimulatedNoise, size: int) -> Ints:
        order = orders(size, how)
        return usual(self, size) if order is None else order

    first = np.argsort(stored)[np.random.default_rng(seed).permutation(len(stored))]
    of_all, pair_bins, few = bins_by_rank(first)

    def bins(sizes: Any, noise: Any) -> FixedBins:
        order = None if sum(sizes) == len(stored) else orders(int(sum(sizes)), "places")
        return of_all(sizes, noise) if order is None else bins_by_rank(order)[0](sizes, noise)

    def secret_order(total: int, noise: NoiseSource) -> Ints:
        order = orders(total, "places")
        return noise.permutation(total) if order is None else order

    patches: list[Patch] = [
        (SimulatedNoise, "permutation", permutation),
        (relabelling, "secret_bins", bins),
        (relabelling, "secret_few", few),
        (embedding, "secret_bins", bins),
        (relabelling, "secret_pair_bins", pair_bins),
        (summaries, "secret_order", secret_order),
        (independence, "secret_order", secret_order),
        *((SimulatedNoise, name, _listed(name, asked)) for name in _PUBLIC_ARGUMENTS),
    ]
    with patched([*patches, *OrderedTies(stored, seed).patches()]):
        yield asked


def _listed(name: str, asked: list[tuple[Any, ...]]) -> Callable[..., Any]:
    """Return a method of the noise source that writes down what it is asked, values left out."""
    usual, first = getattr(SimulatedNoise, name), _PUBLIC_ARGUMENTS[name]

    def method(self: SimulatedNoise, *arguments: Any) -> Any:
        asked.append((name, *arguments[first:]))
        return usual(self, *arguments)

    return method


def _orders(
    stored: Ints, groups: tuple[Ints, ...], seed: int
) -> Callable[[int, Coupling], Ints | None]:
    """Return orders of all records, of those of either group in turn, and of two for each."""
    rng, turn = np.random.default_rng(seed), [0]
    ids = [np.argsort(np.argsort(own)) for own in groups]  # the same for a replaced record

    def order(size: int, how: Coupling) -> Ints | None:
        places, fitting = stored, [own for own in ids if len(own) == size]
        if size == 2 * len(stored):
            places = np.concatenate([stored, stored + len(stored)])
        elif size != len(stored):
            if not fitting:
                return None
            places = fitting[turn[0] % len(fitting)]
            turn[0] += 1
        records = rng.permutation(size)
        by_place = how == "places" and size != 2 * len(stored)
        found: Ints = np.argsort(places)[records] if by_place else records[places]
        return found

    return order


def bins_by_rank(
    order: Ints,
) -> tuple[
    Callable[..., FixedBins], Callable[..., tuple[FixedBins, ...]], Callable[..., SecretFew]
]:
    """Return what gives bins their rows, if the row at rank i lies at place order[i].

    Of samples, of pairs with two labels, and of a few rows that are kept.
    """
    ranks = np.argsort(order)

    def bins(sizes: Any, noise: Any) -> FixedBins:
        del noise
        ends = np.cumsum(sizes)[:-1]
        return FixedBins(np.searchsorted(ends, ranks, side="right"), len(sizes))

    def pair_bins(n: int, m: int, sizes: Any, noise: Any) -> tuple[FixedBins, ...]:
        del noise
        of_x = np.append(order < n, False)  # by rank; a leftover row has no partner
        partner = np.minimum(np.arange(n + m) ^ 1, n + m)
        alone = np.arange(n + m) >= (n + m) // 2 * 2
        apart = ((of_x[:-1] == of_x[partner]) | alone).astype(int)
        found = 2 * np.searchsorted(np.cumsum(sizes)[:-1], np.arange(n + m), side="right") + apart
        sides = slice(0, n), slice(n, n + m)
        return tuple(FixedBins(found[ranks][own], 2 * len(sizes)) for own in sides)

    def few(count: int, total: int, noise: Any) -> SecretFew:
        del noise
        assert total == len(order)
        return SecretFew.of(order[:count])

    return bins, pair_bins, few
