"""Tests on a line of rows that are read as they pass: the same numbers as in memory."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privatest as pt
from privatest.data.columns import Encoder
from privatest.data.encoding import encode_sample
from privatest.data.engines import EngineConfig
from privatest.data.schema import NumericColumn, equal_cuts
from privatest.data.sources import Part, Source
from privatest.noise import SimulatedNoise
from privatest.numerics.cells import cell_counts, counts_of

ROWS = np.random.default_rng(3).normal(size=140_000)
SMALL = ROWS[:4_000]


class Cut(Part):
    """Values of an array, in batches of one size."""

    rows: int
    label: str

    def __init__(self, values, batch):
        self.held, self.batch, self.rows, self.label = values, batch, len(values), "a part"

    def batches(self, columns):
        for start in range(0, len(self.held), self.batch):
            part = self.held[start : start + self.batch]
            yield pa.record_batch(dict.fromkeys(columns, part))


def source(values, cuts=(), batch=1_000, threads=1):
    edges = [0, *sorted(cuts), len(values)]
    parts = tuple(Cut(values[a:b], batch) for a, b in pairwise(edges))
    return Source(("a",), parts, EngineConfig(threads=threads))


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(0, len(ROWS)), max_size=4),
    st.integers(5_000, 90_000),
    st.integers(1, 3),
)
def test_counts_are_the_same_for_any_cut(cuts, batch, threads):
    points = equal_cuts(-3, 3, 100)
    sample = encode_sample(source(ROWS, cuts, batch, threads), (-4, 4), units="own")
    (found,) = counts_of((sample,), points)
    np.testing.assert_array_equal(found, cell_counts(np.clip(ROWS, -4, 4), points))


TWO: dict[str, tuple[Any, dict[str, Any]]] = {
    "ks": (pt.ks_2samp, {}),
    "ks, grid": (pt.ks_2samp, {"grid": 64}),
    "kuiper, grid": (pt.ks_2samp, {"grid": 64, "statistic": "kuiper"}),
    "ks, private groups": (pt.ks_2samp, {"adjacency": "row", "n_permutations": 19, "rng": 1}),
    "mannwhitneyu": (pt.mannwhitneyu, {}),
    "median_test": (pt.median_test, {}),
    "kruskal": (pt.kruskal, {}),
}


@pytest.mark.parametrize("name", TWO)
def test_two_samples(name):
    test, options = TWO[name]
    x, y = SMALL[:1_500], SMALL[1_500:] + 0.1
    common: dict[str, Any] = {"bounds": (-4, 4), "epsilon": 1} | options
    held = test(x, y, noise=SimulatedNoise(7), **common)
    read = test(source(x, [70, 900]), source(y, batch=33), noise=SimulatedNoise(7), **common)
    assert (read.pvalue, read.statistic) == (held.pvalue, held.statistic)
    assert read.parameters == held.parameters


@pytest.mark.parametrize("grid", [None, 64])
@pytest.mark.parametrize("statistic", ["ks", "kuiper", "cvm", "wasserstein"])
def test_one_sample(grid, statistic):
    common: dict[str, Any] = {"bounds": (-4, 4), "epsilon": 1, "grid": grid, "rng": 1}
    common["statistic"] = statistic
    held = pt.ks_1samp(SMALL, "norm(0, 1)", noise=SimulatedNoise(7), **common)
    read = pt.ks_1samp(source(SMALL, [9]), "norm(0, 1)", noise=SimulatedNoise(7), **common)
    assert (read.pvalue, read.statistic) == (held.pvalue, held.statistic)


def test_data_is_read_once(monkeypatch):
    read: list[int] = []
    original = Cut.batches

    def counted(self, columns):
        read.append(self.rows)
        return original(self, columns)

    monkeypatch.setattr(Cut, "batches", counted)
    x, y = source(SMALL[:1_500]), source(SMALL[1_500:])
    for options in ({"bounds": None}, {"grid": 16}, {"adjacency": "row", "n_permutations": 9}):
        read.clear()
        pt.ks_2samp(x, y, **{"bounds": (-4, 4), "epsilon": 1} | options)  # type: ignore[arg-type]
        assert sorted(read) == [1_500, 2_500]
    for grid in (None, 16):
        read.clear()
        pt.ks_1samp(x, "norm(0, 1)", bounds=(-4, 4), epsilon=1, grid=grid)
        assert read == [1_500]


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, 3.0), (-2.0, -1.0), (-0.5, 40.0), None])
@pytest.mark.parametrize("units", ["box", "own"])
def test_a_column_alone_is_encoded_as_beside_another(kind, bounds, units):
    column = None if bounds is None else NumericColumn(*bounds)
    values = (40 * ROWS[:70_000]).astype(kind)
    alone, both = np.empty((len(values), 1)), np.empty((len(values), 2))
    batch = pa.record_batch({"a": values, "b": values})
    Encoder((column,), ("a",), units).encode_batch(batch.select(["a"]), alone)
    Encoder((column, column), ("a", "b"), units).encode_batch(batch, both)
    assert np.array_equal(alone, both[:, :1])
    expected = values.astype(np.float64)
    if bounds is not None:
        expected = np.clip(expected, *bounds)
        if units == "box":
            expected = (expected - bounds[0]) / (bounds[1] - bounds[0])
    assert np.array_equal(alone[:, 0], expected)
    if np.issubdtype(kind, np.floating):
        values[-1] = np.nan
        with pytest.raises(pt.DataError, match="a has a missing value"):
            Encoder((column,), ("a",), units).encode_batch(pa.record_batch({"a": values}), alone)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.float16()])
def test_numbers_are_found_where_arrow_has_them(kind):
    """A slice of a column of any kind, and one without rows."""
    column = pa.array(np.arange(50)).cast(kind)
    out = np.empty((20, 1))
    Encoder((None,), ("a",), "own").encode_batch(pa.record_batch({"a": column}).slice(7, 20), out)
    assert out[:, 0].tolist() == list(range(7, 27))
    Encoder((None,), ("a",), "own").encode_batch(pa.record_batch({"a": column[:0]}), out[:0])


@pytest.mark.e2e
def test_reading_does_not_load_pandas(tmp_path):
    """Which takes half a second, in every process of a cluster."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": np.linspace(0, 1, 50)}), path)
    code = f"""
import sys, privatest as pt
pt.ks_2samp(*[pt.scan({str(path)!r})] * 2, epsilon=1, bounds=(0, 1), grid=8)
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)
