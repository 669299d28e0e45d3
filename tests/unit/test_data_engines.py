"""One pass over rows: the same sums whatever the batches, the threads and the cuts."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from dataclasses import is_dataclass
from itertools import pairwise, permutations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privatest
from privatest import ks_2samp
from privatest.core.errors import DataError
from privatest.core.noise import SimulatedNoise
from privatest.core.secret_order import (
    _keys,
    row_coins,
    secret_bins,
    secret_few,
    secret_pair_bins,
)
from privatest.data.encoding import encode_sample
from privatest.data.engines import BLOCK_ROWS, EngineConfig
from privatest.data.files import scan
from privatest.data.reading import Grouping, split_source
from privatest.data.sources import Part, Source
from privatest.data.summaries import FixedPoint, summarise
from privatest.numerics.permutation import bin_order


class Total:
    """Sum of the rows, each times its number."""

    def __init__(self):
        self.sums = FixedPoint((2,), 1e12)
        self.starts: list[int] = []

    def update(self, rows, start):
        numbers = np.arange(start, start + len(rows), dtype=float)
        self.sums.add(numbers @ rows)
        self.starts.append(start)

    def merge(self, other):
        self.sums.merge(other.sums)
        self.starts += other.starts


ROWS = np.random.default_rng(3).uniform(size=(3 * BLOCK_ROWS + 17, 2))


class Cut(Part):
    """Rows of an array, in batches of one size."""

    rows: int
    label: str

    def __init__(self, rows, batch, claimed=None):
        self.held, self.batch = rows, batch
        self.rows = len(rows) if claimed is None else claimed
        self.label = "a part"

    def batches(self, columns):
        for start in range(0, len(self.held), self.batch):
            part = self.held[start : start + self.batch]
            table = {"a": part[:, 0], "b": part[:, 1]}
            yield pa.record_batch({name: table[name] for name in columns})


def cut_source(cuts, batch, threads):
    edges = [0, *sorted(cuts), len(ROWS)]
    parts = tuple(Cut(ROWS[a:b], batch) for a, b in pairwise(edges))
    return Source(("a", "b"), parts, EngineConfig(threads=threads))


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(0, len(ROWS)), max_size=4),
    st.integers(5_000, 200_000),
    st.integers(1, 3),
)
def test_a_pass_gives_the_same_sums_for_any_cut(cuts, batch, threads):
    sample = encode_sample(cut_source(cuts, batch, threads), (0, 1))
    (streamed,) = summarise((sample, Total))
    (held,) = summarise((encode_sample(ROWS, (0, 1)), Total))
    np.testing.assert_array_equal(streamed.sums.units, held.sums.units)
    assert sorted(streamed.starts) == [0, BLOCK_ROWS, 2 * BLOCK_ROWS, 3 * BLOCK_ROWS]
    np.testing.assert_array_equal(sample.rows, ROWS)


@pytest.mark.parametrize("claimed", [100, 102])
def test_a_part_with_another_number_of_rows_is_refused(claimed):
    source = Source(("a", "b"), (Cut(ROWS[:101], 50, claimed), Cut(ROWS[:9], 9)))
    with pytest.raises(DataError, match="a part does not have the number of rows"):
        summarise((encode_sample(source, (0, 1)), Total))


def test_parquet_is_read_by_row_groups(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1]}), path, row_group_size=70_000)
    (streamed,) = summarise((encode_sample(scan(path), (0, 1)), Total))
    (held,) = summarise((encode_sample(ROWS, (0, 1)), Total))
    np.testing.assert_array_equal(streamed.sums.units, held.sums.units)


def test_watchers_are_told_how_far_a_pass_is():
    told: list[tuple[int, int]] = []
    source = cut_source([], 50_000, 2).with_progress(lambda *seen: told.append(seen))
    summarise((encode_sample(source, (0, 1)), Total))
    assert told[-1] == (len(ROWS), len(ROWS))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 3))
def test_secret_bins_have_the_sizes_asked_for(sizes, seed):
    bins = secret_bins([*sizes, 0], SimulatedNoise(seed))
    total = sum(sizes)
    found = bins.of_rows(0, total)
    assert np.bincount(found, minlength=len(sizes) + 1).tolist() == [*sizes, 0]
    middle = total // 2
    both = np.concatenate([bins.of_rows(0, middle), bins.of_rows(middle, total)])
    np.testing.assert_array_equal(both, found)


def test_secret_bins_are_a_uniform_assignment():
    """Each of the 6 ways to put 4 rows in two bins of 2 comes up 1/6 of the time.

    Chi-squared with 5 degrees of freedom; false alarm 1e-6, and the seeds are fixed.
    """
    ways = [
        tuple(secret_bins([2, 2], SimulatedNoise(seed)).of_rows(0, 4).tolist())
        for seed in range(3000)
    ]
    counts = np.unique(ways, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert (np.square(counts - 500) / 500).sum() < 35.9


@pytest.mark.parametrize("total", [4, 12])  # all rows put in order, and numbers drawn
def test_a_few_rows_are_a_uniform_choice_in_a_uniform_order(total):
    """Of 2 rows: each ordered pair equally often, chi-squared, false alarm 1e-6; seeds fixed."""
    ways = total * (total - 1)
    draws = 100 * ways
    found = Counter[tuple[int, ...]]()
    noise = SimulatedNoise(total)
    for _ in range(draws):
        few = secret_few(2, total, noise)
        found[tuple(few.rows[np.argsort(few.places)].tolist())] += 1
    assert len(found) == ways
    squares = sum((count - 100) ** 2 / 100 for count in found.values())
    assert squares < ways + 5 * np.sqrt(2 * ways) + 25


def test_a_few_of_many_rows_are_found_where_they_are():
    few = secret_few(5000, 10**6, SimulatedNoise(3))
    assert len(np.unique(few.rows)) == 5000
    assert 0 <= few.rows[0] < few.rows[-1] < 10**6
    assert sorted(few.places) == list(range(5000))
    parts = [few.of_rows(a, a + 300_000) for a in range(0, 10**6, 300_000)]
    starts = range(0, 10**6, 300_000)
    rows = np.concatenate([a + mine for a, (mine, _) in zip(starts, parts, strict=True)])
    np.testing.assert_array_equal(rows, few.rows)
    np.testing.assert_array_equal(np.concatenate([places for _, places in parts]), few.places)


def test_keys_do_not_depend_on_where_one_begins():
    keys = _keys(bytes(32), 0, 101)
    for start, stop in ((0, 0), (1, 1), (1, 2), (7, 101), (8, 100)):
        np.testing.assert_array_equal(_keys(bytes(32), start, stop), keys[start:stop])


def test_many_blocks_of_keys_have_exact_cuts():
    sizes = [100_000, 1, 199_999, 12_345]
    bins = secret_bins(sizes, SimulatedNoise(1))
    found = np.concatenate(
        [bins.of_rows(a, min(a + 50_000, sum(sizes))) for a in range(0, sum(sizes), 50_000)]
    )
    assert np.bincount(found).tolist() == sizes


def test_fixed_point_does_not_depend_on_the_order():
    values = np.random.default_rng(0).normal(size=1000)
    forwards, backwards = FixedPoint((), 4e3), FixedPoint((), 4e3)
    for value in values:
        forwards.add(value)
    for value in values[::-1]:
        backwards.add(value)
    assert forwards.value == backwards.value
    assert abs(forwards.value - values.sum()) <= 1000 * forwards.step


def test_mixed_pairs_have_the_law_of_a_uniform_order():
    """Against all 720 orders of three rows of each kind, in bins of two pairs and of one.

    Chi-squared with 35 degrees of freedom; false alarm 1e-6, and the seeds are fixed.
    """
    expected: Counter[tuple[int, ...]] = Counter()
    for order in permutations(range(6)):
        bins = [0] * 6
        for place in range(0, 6, 2):
            first, second = order[place : place + 2]
            mixed = (first < 3) != (second < 3)
            bins[first] = bins[second] = 2 * (place >= 4) + (0 if mixed else 1)
        expected[tuple(bins)] += 1
    runs, found = 4000, Counter[tuple[int, ...]]()
    for seed in range(runs):
        x, y = secret_pair_bins(3, 3, [4, 2], SimulatedNoise(seed))
        found[(*x.of_rows(0, 3).tolist(), *y.of_rows(0, 3).tolist())] += 1
    assert found.keys() == expected.keys()
    mean = {bins: count * runs / 720 for bins, count in expected.items()}
    assert sum((found[bins] - mean[bins]) ** 2 / mean[bins] for bins in mean) < 91.1


@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0), (1, 1), (70_001, 80_000)])
def test_mixed_pairs_have_as_many_rows_of_each_kind(n, m):
    total = n + m
    half = total // 4 * 2
    sizes = [half, total // 2 * 2 - half, total % 2]
    x, y = secret_pair_bins(n, m, sizes, SimulatedNoise(2))
    counts = [np.bincount(side.of_rows(0, rows), minlength=6) for side, rows in ((x, n), (y, m))]
    np.testing.assert_array_equal(counts[0][::2], counts[1][::2])
    np.testing.assert_array_equal((counts[0] + counts[1]).reshape(-1, 2).sum(axis=1), sizes)


def test_coins_of_rows_are_fair_and_their_own():
    """100,000 coins in two blocks: sums beyond five standard deviations, 6e-7 each; seeded."""
    coins = row_coins(b"a secret", 0, 2 * BLOCK_ROWS)
    assert abs(coins.sum() - BLOCK_ROWS) < 5 * np.sqrt(2 * BLOCK_ROWS) / 2
    agree = (coins[:BLOCK_ROWS] == coins[BLOCK_ROWS:]).sum()
    assert abs(agree - BLOCK_ROWS / 2) < 5 * np.sqrt(BLOCK_ROWS) / 2
    np.testing.assert_array_equal(row_coins(b"a secret", 65_000, 66_000), coins[65_000:66_000])
    assert (row_coins(b"another", 0, 100) != coins[:100]).any()


def test_more_bins_than_short_integers_have():
    bins = np.random.default_rng(0).integers(80_000, size=200_000)
    for count in (80_000, 1 << 16):
        found = bins % count
        order, edges = bin_order(found, count)
        np.testing.assert_array_equal(order, np.argsort(found, kind="stable"))
        np.testing.assert_array_equal(edges, np.searchsorted(found[order], np.arange(count + 1)))


def test_what_is_said_of_chosen_rows_does_not_depend_on_how_many_they_are(monkeypatch):
    """A private group of one row or of all but one: the same words, the same refusal."""
    monkeypatch.setattr("privatest.data.sources._MOST_LOADED", 30)
    words = set()
    for members in (1, 39):
        arm = np.repeat(["a", "b"], [members, 40 - members])
        frame = scan(pa.table({"arm": arm, "v": np.arange(40.0)}))
        groups = split_source(frame, Grouping("arm", ("a", "b"), False, "private"))
        sample = encode_sample(groups[0], (0, 40))
        with pytest.raises(DataError, match="40 rows of 1 columns") as refused:
            sample.rows  # noqa: B018
        words.add((repr(groups[0]), str(refused.value)))
    assert len(words) == 1


def test_constant_time_under_a_curator(monkeypatch):
    """Exact KS of many rows is quicker for some values; within a curator it is not tried."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=40), rng.normal(size=50)
    monkeypatch.setattr("privatest.methods.ks._WHOLE_ROWS", 10)
    taken: list[int] = []

    def quick(*_: object) -> int:
        taken.append(1)
        return 0

    monkeypatch.setattr("privatest.methods.ks.two_sample_cells", quick)
    ks_2samp(x, y, epsilon=1, noise=SimulatedNoise(0, constant_time=True))
    assert not taken
    ks_2samp(x, y, epsilon=1, noise=SimulatedNoise(0))
    assert taken


def test_nothing_that_passes_over_rows_shows_them():
    """A summary may get into a log or a traceback of a cluster: no repr that dataclasses make."""
    shown, seen = [], 0
    for module in pkgutil.walk_packages(privatest.__path__, "privatest."):
        if module.name.endswith("__main__"):
            continue
        for name, found in vars(importlib.import_module(module.name)).items():
            if isinstance(found, type) and is_dataclass(found) and hasattr(found, "update"):
                seen += 1
                shown += [name] if found.__repr__ is not object.__repr__ else []
    assert seen > 2
    assert shown == []
