"""EngineConfig of a cluster: the same sums as in memory, whatever happens to the workers."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privatest as pt
from privatest.core.errors import DataError, EngineError
from privatest.core.noise import SimulatedNoise
from privatest.core.secret_order import SecretBins, secret_bins
from privatest.data import engines
from privatest.data.encoding import beside, encode_pairs, encode_sample
from privatest.data.engines import BLOCK_ROWS, EngineConfig
from privatest.data.files import scan
from privatest.data.sources import Part, Source
from privatest.data.summaries import FixedPoint, in_secret_order, summarise
from privatest.numerics.dependence import Bases, cross_sums

pytest.importorskip("distributed")

TWO = EngineConfig("dask", threads=2)
ROWS = np.random.default_rng(5).uniform(size=(11 * BLOCK_ROWS + 17, 2))


class BinSums:
    """Sums by secret bins, and how often each block was seen."""

    def __init__(self, bins: SecretBins) -> None:
        self.bins = bins
        self.sums = FixedPoint((bins.count, 2), 1e7)
        self.seen: dict[int, int] = {}

    def update(self, rows, start):
        of_rows = self.bins.of_rows(start, start + len(rows))
        for column in range(2):
            sums = np.bincount(of_rows, rows[:, column], minlength=self.bins.count)
            self.sums.add(sums.astype(float), (slice(None), column))
        self.seen[start] = self.seen.get(start, 0) + 1

    def merge(self, other):
        self.sums.merge(other.sums)
        for start, count in other.seen.items():
            self.seen[start] = self.seen.get(start, 0) + count


BINS = secret_bins([len(ROWS) // 3] * 2 + [len(ROWS) - 2 * (len(ROWS) // 3)], SimulatedNoise(2))
empty = partial(BinSums, BINS)


def in_worker():
    return multiprocessing.parent_process() is not None


@dataclass(frozen=True)
class Stored(Part):
    """Rows of a file, in batches; ``trouble`` is what happens before they are read."""

    path: str
    start: int
    rows: int
    batch: int = 50_000
    trouble: str = ""

    @property
    def label(self):
        return f"row group {self.start} of rows.npy"

    def batches(self, columns):
        if self.trouble:
            self.fail(Path(self.trouble))
        held = np.load(self.path, mmap_mode="r")[self.start : self.start + self.rows]
        for start in range(0, self.rows, self.batch):
            part = np.array(held[start : start + self.batch])
            yield pa.record_batch({"a": part[:, 0], "b": part[:, 1]}).select(list(columns))

    def fail(self, flag):
        if flag.name == "corrupt":
            raise DataError(f"{self.label} cannot be read.")
        if flag.name == "slow":
            time.sleep(0.5)
        elif in_worker() and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "rows.npy"
    np.save(path, ROWS)
    yield str(path)
    engines.disconnect_all()


def sample_of(path, cuts, workers=TWO, batch=50_000, trouble=""):
    """The stored rows in parts; the middle one has trouble."""
    edges = [0, *sorted(cuts), len(ROWS)]
    parts = [Stored(path, a, b - a, batch) for a, b in pairwise(edges)]
    middle = parts[len(parts) // 2]
    parts[len(parts) // 2] = Stored(path, middle.start, middle.rows, batch, str(trouble))
    return encode_sample(Source(("a", "b"), tuple(parts), workers), (0, 1))


@cache
def in_memory():
    (held,) = summarise((encode_sample(ROWS, (0, 1)), empty))
    return held


def assert_the_same(found):
    np.testing.assert_array_equal(found.sums.units, in_memory().sums.units)
    assert found.seen == dict.fromkeys(range(0, len(ROWS), BLOCK_ROWS), 1)


EVERY_BLOCK = [*range(BLOCK_ROWS, len(ROWS), BLOCK_ROWS)]


@settings(max_examples=5)
@given(st.lists(st.integers(0, len(ROWS)), max_size=8), st.integers(20_000, 200_000))
def test_a_cluster_gives_the_same_sums_for_any_cut(stored, cuts, batch):
    (found,) = summarise((sample_of(stored, cuts, batch=batch), empty))
    assert_the_same(found)
    (local,) = summarise((sample_of(stored, cuts, EngineConfig(threads=2), batch), empty))
    assert_the_same(local)


def test_many_jobs_are_merged_by_the_workers(stored, monkeypatch):
    monkeypatch.setattr(engines, "_MERGED", 2)
    told: list[tuple[int, int]] = []
    workers = replace(TWO, progress=lambda done, total: told.append((done, total)))
    (found,) = summarise((sample_of(stored, EVERY_BLOCK, workers), empty))
    assert_the_same(found)
    assert told[-1] == (len(ROWS), len(ROWS))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_worker_that_dies_changes_nothing(stored, tmp_path):
    trouble = tmp_path / "once"
    (found,) = summarise((sample_of(stored, EVERY_BLOCK, trouble=trouble), empty))
    assert trouble.exists()  # it did die
    assert_the_same(found)


class Lazy:
    """Keeps what it merges first, as summaries may."""

    def __init__(self, sums=None):
        self.sums = sums

    def merge(self, other):
        if self.sums is None:
            self.sums = other.sums
        else:
            self.sums += other.sums


def test_merging_again_counts_nothing_twice():
    work = engines._Work(None, Lazy, engines.versions())  # type: ignore[arg-type]
    parts = [Lazy(np.ones(2)), Lazy(np.ones(2))]
    for _ in range(2):
        np.testing.assert_array_equal(engines._merged(work, *parts).sums, 2)  # type: ignore[arg-type, attr-defined]


def test_rows_in_memory_stay_in_this_process(stored):
    streamed, held = summarise(
        (sample_of(stored, EVERY_BLOCK), empty), (encode_sample(ROWS, (0, 1)), empty)
    )
    assert_the_same(streamed)
    assert_the_same(held)


class Here(Stored):
    """Rows that only this process can read."""

    travels = False

    def batches(self, columns):
        assert not in_worker()
        return super().batches(columns)


@dataclass(frozen=True)
class Wrapped(Part):
    """A part that takes its rows from another."""

    part: Here
    rows: int = len(ROWS)
    label: str = "a part"

    @property
    def travels(self):
        return self.part.travels

    def batches(self, columns):
        return self.part.batches(columns)


@pytest.mark.parametrize("wrap", [lambda part: part, Wrapped])
def test_parts_that_cannot_travel_are_read_here(stored, wrap):
    source = Source(("a", "b"), (wrap(Here(stored, 0, len(ROWS))),), TWO)
    (found,) = summarise((encode_sample(source, (0, 1)), empty))
    assert_the_same(found)


def test_an_error_of_a_worker_is_the_error_and_ends_the_rest(stored):
    sample = sample_of(stored, EVERY_BLOCK, trouble="corrupt")
    with pytest.raises(DataError, match=r"row group \d+ of rows.npy cannot be read"):
        summarise((sample, empty))
    client = engines.connected(TWO)
    for _ in range(100):
        if not any(client.processing().values()):
            break
        time.sleep(0.05)
    assert not any(client.processing().values())
    (found,) = summarise((sample_of(stored, EVERY_BLOCK), empty))
    assert_the_same(found)


class Failing(BinSums):
    """A summary with a mistake."""

    def update(self, rows, start):
        raise RuntimeError(f"the value was {1.234}")


def test_words_of_other_errors_stay_with_the_worker(stored):
    sample = sample_of(stored, EVERY_BLOCK)
    with pytest.raises(EngineError, match="failed with RuntimeError; ") as caught:
        summarise((sample, partial(Failing, BINS)))
    assert "1.234" not in str(caught.value)


def test_an_interrupted_run_leaves_nothing_to_do(stored):
    def interrupt(done, total):
        raise KeyboardInterrupt

    workers = replace(TWO, progress=interrupt)
    sample = sample_of(stored, EVERY_BLOCK, workers, trouble="slow")
    with pytest.raises(KeyboardInterrupt):
        summarise((sample, empty))
    (found,) = summarise((sample_of(stored, EVERY_BLOCK), empty))
    assert_the_same(found)


def test_a_corrupt_row_group_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    table = pa.table({"a": ROWS[:400_000, 0], "b": ROWS[:400_000, 1]})
    pq.write_table(table, path, row_group_size=100_000, use_dictionary=False, compression="snappy")
    where = pq.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[where : where + 4000] = b"\xff" * 4000
    path.write_bytes(content)
    sample = encode_sample(scan(path, engine="dask", threads=2), (0, 1))
    with pytest.raises(DataError, match=r"row group 2 of rows\.parquet") as caught:
        summarise((sample, partial(BinSums, secret_bins([400_000], SimulatedNoise(0)))))
    assert "0xff" not in str(caught.value)


@pytest.mark.parametrize("many", [10**6, 10**5])  # features of rows, and of their codes
def test_a_test_has_the_same_answer_from_memory_threads_and_a_cluster(tmp_path, monkeypatch, many):
    monkeypatch.setattr("privatest.methods.mmd._MANY_ROWS", many)
    x, y = ROWS[:70_000], ROWS[70_000:136_000]
    for name, rows in (("x", x), ("y", y)):
        table = pa.table({"a": rows[:, 0], "b": rows[:, 1]})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=30_000)

    def answer(first, second):
        options: dict[str, Any] = {
            "bounds": (0, 1),
            "epsilon": 1,
            "n_permutations": 99,
            "statistics": "kernel" if many == 10**6 else None,
        }
        return pt.mmd_test(first, second, **options, rng=1, noise=SimulatedNoise(1)).pvalue

    def stored_at(name, **workers):
        return pt.scan(tmp_path / f"{name}.parquet", **workers)

    held = answer(x, y)
    assert answer(stored_at("x"), stored_at("y", threads=2)) == held
    cluster_of_two = {"engine": "dask", "threads": 2}
    assert answer(stored_at("x", **cluster_of_two), stored_at("y", **cluster_of_two)) == held
    assert answer(stored_at("x", **cluster_of_two), y) == held  # y stays in memory


def test_an_unreachable_scheduler_is_said_within_seconds(monkeypatch):
    assert engines._TIMEOUT <= 5
    monkeypatch.setattr(engines, "_TIMEOUT", 1.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    start = time.monotonic()
    with pytest.raises(EngineError, match="no Dask scheduler answers at 'tcp://127"):
        engines.check_workers(EngineConfig("dask", scheduler=address))
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("address", ["nonsense", "what://127.0.0.1:1", "tcp://127.0.0.1:none"])
def test_addresses_that_are_none(address):
    with pytest.raises(EngineError, match="no Dask scheduler answers"):
        engines.check_workers(EngineConfig("dask", scheduler=address))


def test_a_cluster_is_reached_by_its_address(stored):
    own = engines.connected(TWO)
    if own.scheduler.address.startswith("tls"):
        pytest.skip("its certificates are in memory")
    by_address = EngineConfig("dask", scheduler=own.scheduler.address)
    engines.check_workers(by_address)
    assert engines.connected(by_address) is engines.connected(by_address)
    assert engines.DaskEngine(by_address).size() == 2
    (found,) = summarise((sample_of(stored, EVERY_BLOCK, by_address), empty))
    assert_the_same(found)


def test_other_versions_are_refused(monkeypatch):
    engines.check_workers(TWO)
    monkeypatch.setattr(engines, "versions", lambda: ("3.0", "9.9", "9.9"))
    with pytest.raises(EngineError, match=r"NumPy \S+ instead of 9.9"):
        engines._require_same_versions(Client({"a": ("3.0", np.__version__, "9.9")}))
    with pytest.raises(EngineError, match="cannot load privatest"):
        engines._require_same_versions(Client({"a": ImportError()}))


class Client:
    """Answers for workers that are not there."""

    def __init__(self, answers):
        self.answers = answers

    def wait_for_workers(self, count, timeout):
        pass

    def run(self, function, on_error):
        return self.answers


def test_nothing_is_shown_of_what_is_sent():
    work = engines._Work(None, empty, engines.versions())  # type: ignore[arg-type]
    sealed = engines._Sealed(BINS.secret)
    assert "Stored" not in repr(work)
    assert repr(BINS.secret)[2:10] not in repr(sealed)


def nobody():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize(
    "test",
    [
        lambda d: pt.ks_2samp(d, d, bounds=(0, 1), epsilon=1),
        lambda d: pt.permutation_test(
            (d, d), lambda x, y: x.mean() - y.mean(), sensitivity=0.1, bounds=(0, 1), epsilon=1
        ),
        lambda d: pt.test_of_tests(d, d, pvalue="mannwhitneyu", epsilon=1),
        lambda d: pt.hsic_test(d, d, bounds_x=(0, 1), bounds_y=(0, 1), epsilon=1),
    ],
    ids=["one column", "own statistic", "test of tests", "hsic"],
)
def test_tests_that_hold_rows_look_for_the_scheduler_first(test, stored, monkeypatch):
    """Nothing is read before."""
    monkeypatch.setattr(engines, "_TIMEOUT", 0.5)
    monkeypatch.setattr(Stored, "batches", None)
    source = Source(("a",), (Stored(stored, 0, 500),), EngineConfig("dask", scheduler=nobody()))
    with pytest.raises(EngineError, match="no Dask scheduler answers"):
        test(source)


def test_dependence_on_a_cluster_is_that_in_memory(stored, monkeypatch):
    """In slices of the secret order, which each worker takes from all rows."""
    monkeypatch.setattr("privatest.data.summaries._LEAST_SLICE", BLOCK_ROWS)
    rows = 3 * BLOCK_ROWS
    parts = (Stored(stored, 0, 70_000), Stored(stored, 70_000, rows - 70_000, 30_000))
    found: list[Any] = []
    for x, y in (
        (Source(("a",), parts, TWO), Source(("b",), parts, TWO)),
        (ROWS[:rows, 0], ROWS[:rows, 1]),
    ):
        sides = encode_pairs(x, y, (0, 1), (0, 1))
        ordered = in_secret_order(beside(*sides), SimulatedNoise(1))
        bases = Bases(_column, _column, (1, 1))
        (sums,) = cross_sums(ordered, 1, [(bases, 32)])
        found.append(sums)
    np.testing.assert_array_equal(found[0].products.units, found[1].products.units)
    assert found[0].left.units == found[1].left.units


def _column(rows):
    return rows[:, :1]
