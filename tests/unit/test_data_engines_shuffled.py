"""Rows in a secret order: the same from memory and from a source, for every way of reading."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise, permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import privatest as pt
from privatest.core import secret_order as orders
from privatest.data import summaries
from privatest.data.encoding import TwoSamples, beside, encode_pairs, encode_sample
from privatest.data.engines import BLOCK_ROWS, EngineConfig
from privatest.data.sources import Part, Shuffled, Source
from privatest.data.summaries import in_secret_order, secret_subsets
from privatest.noise import SimulatedNoise
from privatest.numerics.independence import DependenceQuery, compute, make_plan
from privatest.numerics.kernels import kernel_grid

N = BLOCK_ROWS + 4_321
RNG = np.random.default_rng(8)
ROWS = RNG.uniform(size=(N, 3))
ROWS[:, 2] = np.round(ROWS[:, 0] * ROWS[:, 1], 2)


class Rows(Part):
    rows: int
    label: str

    def __init__(self, start, stop, batch):
        self.start, self.stop, self.batch, self.label = start, stop, batch, "a part"
        self.rows = stop - start

    def batches(self, columns):
        for first in range(self.start, self.stop, self.batch):
            part = ROWS[first : min(first + self.batch, self.stop)]
            yield pa.record_batch({name: part[:, "abc".index(name)].copy() for name in columns})


def source(names, cuts, batch, threads):
    parts = tuple(Rows(a, b, batch) for a, b in pairwise([0, *sorted(cuts), N]))
    return Source(names, parts, EngineConfig(threads=threads))


@pytest.fixture
def small_slices(monkeypatch):
    """Each block of the secret order is a slice of its own."""
    monkeypatch.setattr(summaries, "SLICE_NUMBERS", 1)
    monkeypatch.setattr(summaries, "_LEAST_SLICE", 1)


FIXTURE = [HealthCheck.function_scoped_fixture]
ANY_CUT = given(st.lists(st.integers(0, N), max_size=3), st.integers(3_000, N), st.integers(1, 2))


@settings(
    max_examples=4,
    suppress_health_check=FIXTURE,
    phases=[Phase.generate],
)
@ANY_CUT
def test_the_order_is_the_same_from_a_source(small_slices, cuts, batch, threads):
    del small_slices
    expected = in_secret_order(encode_sample(ROWS, None), SimulatedNoise(4)).rows
    found = in_secret_order(
        encode_sample(source(tuple("abc"), cuts, batch, threads), None), SimulatedNoise(4)
    )
    assert isinstance(found.held, Shuffled)
    assert len(found.held.edges) == 3
    np.testing.assert_array_equal(found.rows, expected)
    assert (expected != ROWS).any()
    np.testing.assert_array_equal(np.sort(expected, axis=0), np.sort(ROWS, axis=0))


def statistics(sides: TwoSamples, shuffle: str):
    kernels = tuple(kernel_grid("gaussian", None, side.domain) for side in sides)
    query = DependenceQuery(None, "v", "auto", shuffle, 99, True, "decision", 0.5, 1.0)  # type: ignore[arg-type]
    plan = make_plan(sides, kernels, query)  # type: ignore[arg-type]
    found = compute(plan, np.random.default_rng(0), SimulatedNoise(6))
    assert found.family is not None
    assert found.trends is not None
    return [found.family.values, found.trends[0]]


@cache
def from_memory(shuffle):
    return statistics(encode_pairs(ROWS[:, :2], ROWS[:, 2], (0, 1), (0, 1)), shuffle)


def assert_the_same(sides, shuffle):
    for found, expected in zip(statistics(sides, shuffle), from_memory(shuffle), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shuffle", ["permute", "swap"])
@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=FIXTURE,
    phases=[Phase.generate],
)
@ANY_CUT
def test_dependence_is_the_same_from_a_source(small_slices, shuffle, cuts, batch, threads):
    del small_slices
    x, y = (source(names, cuts, batch, threads) for names in (("a", "b"), ("c",)))
    assert_the_same(encode_pairs(x, y, (0, 1), (0, 1)), shuffle)


def test_one_side_may_be_in_memory(small_slices):
    del small_slices
    y = source(("c",), [5, 20_000], 30_000, 2)
    assert_the_same(encode_pairs(ROWS[:, :2], y, (0, 1), (0, 1)), "permute")


@pytest.mark.parametrize("method", ["subspace", "features"])
@settings(max_examples=2, deadline=None, suppress_health_check=FIXTURE)
@ANY_CUT
def test_a_release_by_a_kernel_is_the_same_from_a_source(
    small_slices, method, cuts, batch, threads
):
    del small_slices

    def released(data):
        noise = SimulatedNoise(9)
        return pt.release(
            data,
            bounds=(0, 1),
            method=method,
            n_points=9,
            n_frequencies=60,
            epsilon=1,
            delta=1e-6,
            noise=noise,
            rng=0,
        )

    found = released(source(tuple("abc"), cuts, batch, threads))
    expected = released(pa.table(dict(zip("abc", ROWS.T, strict=True))))
    np.testing.assert_array_equal(found.weights, expected.weights)
    for name in "abc":
        np.testing.assert_array_equal(found.columns[name], expected.columns[name])


@pytest.mark.parametrize("numbers", [1, 3 * 9_000, 1 << 25])
@pytest.mark.parametrize("count", [1, 7, 500])
def test_subsets_are_the_same_from_a_source(count, numbers, monkeypatch):
    """Many to a slice, or one."""
    if count == 500 and numbers == 1:
        count = 40  # all is read once for each
    monkeypatch.setattr(summaries, "SLICE_NUMBERS", numbers)
    data = source(tuple("abc"), [70, 40_000], 11_111, 1)
    expected = secret_subsets(encode_sample(ROWS, None), count, SimulatedNoise(2))
    found = secret_subsets(encode_sample(data, None), count, SimulatedNoise(2))
    sizes = []
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
        sizes.append(len(one))
    assert sizes == [len(part) for part in np.array_split(ROWS, count)]


def test_partners_stay_together():
    one = np.arange(1000.0)[:, None]
    both = beside(encode_sample(one, None), encode_sample(2 * one, None))
    rows = in_secret_order(both, SimulatedNoise(1)).rows
    np.testing.assert_array_equal(rows[:, 1], 2 * rows[:, 0])
    assert (rows[:, 0] != one[:, 0]).any()


def test_equal_keys_are_in_every_order_alike(monkeypatch):
    """Not in that of the rows. False alarm: 1e-6, by chi-squared with 5 degrees of freedom."""

    def keys(_secret, start, stop):
        return np.full(stop - start, 7, dtype=np.uint64)

    monkeypatch.setattr(orders, "_keys", keys)
    noise, count = SimulatedNoise(0), 1200
    found = Counter(tuple(orders.secret_order(3, noise).tolist()) for _ in range(count))
    expected = count / 6
    assert sum((found[p] - expected) ** 2 / expected for p in permutations(range(3))) < 35.9


def test_equal_keys_in_a_source(monkeypatch, small_slices):
    """Most rows share their key with others, and the order is that in memory all the same."""
    del small_slices
    own = orders._keys

    def keys(secret, start, stop):
        return own(secret, start, stop) >> np.uint64(48) << np.uint64(48)

    monkeypatch.setattr(orders, "_keys", keys)
    expected = orders.secret_order(N, SimulatedNoise(3))
    all_keys = keys(next(orders._secrets(SimulatedNoise(3))), 0, N)
    assert (np.diff(all_keys[expected]) == 0).mean() > 0.3
    bins = orders.SecretBins(
        next(orders._secrets(SimulatedNoise(3))),
        0,
        np.array([1 << 63], dtype=np.uint64),
        None,
    )
    below = int((all_keys < bins.cuts[0]).sum())
    held = encode_sample(source(tuple("abc"), [10_000], 20_000, 1), None).held
    found = [b for _, b in Shuffled(held, bins, (0, below, N)).blocks(0, below)]  # type: ignore[arg-type]
    np.testing.assert_array_equal(np.vstack(found), ROWS[expected[:below]])
