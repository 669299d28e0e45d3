"""Secret orders that give every record the same place in both neighbours.

A test whose groups are private, or whose rows get a secret order, is compared under a coupling: the
order is uniform whatever the data is, so it may be chosen for each neighbour such that records lie
alike. Three ways to use an order are in use; the coupling that fits is the one under which nothing
differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatest.audit.passes import GivenBins, OrderedTies, Patch, patched
from privatest.core.noise import NoiseSource, SimulatedNoise
from privatest.core.secret_order import SecretFew

__all__ = ["COUPLINGS", "Coupling", "bins_by_rank", "coupled"]

Coupling = Literal["places", "ranks", "sorted ranks"]
COUPLINGS: tuple[Coupling, ...] = ("places", "ranks", "sorted ranks")
Ints = NDArray[np.intp]
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
    from privatest.engines import shuffled  # noqa: PLC0415
    from privatest.methods import embedding as embedding_permutation  # noqa: PLC0415
    from privatest.methods import hsic as family  # noqa: PLC0415
    from privatest.numerics import permutation as bin_sums  # noqa: PLC0415
    from privatest.numerics import permutation as binned_cells  # noqa: PLC0415
    from privatest.numerics import permutation as pair_swaps  # noqa: PLC0415

    asked: list[tuple[Any, ...]] = []
    orders, usual = _orders(stored, groups, seed), SimulatedNoise.permutation

    def permutation(self: SimulatedNoise, size: int) -> Ints:
        order = orders(size, how)
        return usual(self, size) if order is None else order

    first = np.argsort(stored)[np.random.default_rng(seed).permutation(len(stored))]
    of_all, pair_bins, few = bins_by_rank(first)

    def bins(sizes: Any, noise: Any) -> GivenBins:
        order = None if sum(sizes) == len(stored) else orders(int(sum(sizes)), "places")
        return of_all(sizes, noise) if order is None else bins_by_rank(order)[0](sizes, noise)

    def secret_order(total: int, noise: NoiseSource) -> Ints:
        order = orders(total, "places")
        return noise.permutation(total) if order is None else order

    patches: list[Patch] = [
        (SimulatedNoise, "permutation", permutation),
        (bin_sums, "secret_bins", bins),
        (bin_sums, "secret_few", few),
        (binned_cells, "secret_bins", bins),
        (binned_cells, "secret_pair_bins", pair_bins),
        (embedding_permutation, "secret_bins", bins),
        (pair_swaps, "secret_pair_bins", pair_bins),
        (shuffled, "secret_order", secret_order),
        (family, "secret_order", secret_order),
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
    Callable[..., GivenBins], Callable[..., tuple[GivenBins, ...]], Callable[..., SecretFew]
]:
    """Return what gives bins their rows, if the row at rank i lies at place order[i].

    Of samples, of pairs with two labels, and of a few rows that are kept.
    """
    ranks = np.argsort(order)

    def bins(sizes: Any, noise: Any) -> GivenBins:
        del noise
        ends = np.cumsum(sizes)[:-1]
        return GivenBins(np.searchsorted(ends, ranks, side="right"), len(sizes))

    def pair_bins(n: int, m: int, sizes: Any, noise: Any) -> tuple[GivenBins, ...]:
        del noise
        of_x = np.append(order < n, False)  # by rank; a leftover row has no partner
        partner = np.minimum(np.arange(n + m) ^ 1, n + m)
        alone = np.arange(n + m) >= (n + m) // 2 * 2
        apart = ((of_x[:-1] == of_x[partner]) | alone).astype(int)
        found = 2 * np.searchsorted(np.cumsum(sizes)[:-1], np.arange(n + m), side="right") + apart
        sides = slice(0, n), slice(n, n + m)
        return tuple(GivenBins(found[ranks][own], 2 * len(sizes)) for own in sides)

    def few(count: int, total: int, noise: Any) -> SecretFew:
        del noise
        assert total == len(order)
        return SecretFew.of(order[:count])

    return bins, pair_bins, few
