"""One job in this process, so that its peak memory is its own; prints JSON."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import pickle
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.data import COLUMNS

FEW = np.random.default_rng(0).random((200, len(COLUMNS)))
BINS = 256  # as many as a default test of many rows has


class NotThere(Exception):
    """The job needs something that this version does not have."""


def read(paths: list[str], columns: list[str]) -> None:
    """Decode with Arrow's own threads."""
    import pyarrow.dataset as ds  # noqa: PLC0415

    for batch in ds.dataset(paths).scanner(columns=columns).to_batches():
        del batch


def read_by_groups(paths: list[str], columns: list[str]) -> None:
    """Decode with one thread for each row group, as our engine does."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    def group(asked: tuple[str, int]) -> None:
        with pq.ParquetFile(asked[0]) as file:
            for batch in file.iter_batches(
                1 << 16, row_groups=[asked[1]], columns=columns, use_threads=False
            ):
                del batch

    groups = [(path, g) for path in paths for g in range(pq.read_metadata(path).num_row_groups)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(group, groups))


def order(paths: list[str]) -> None:
    """Find the cut points of secret orders: two passes over keys that are hashed."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    from privatest.core.noise import SecureNoise  # noqa: PLC0415
    from privatest.core.secret_order import secret_bins  # noqa: PLC0415

    for path in paths:
        rows = pq.read_metadata(path).num_rows
        sizes = np.full(BINS, rows // BINS)
        sizes[: rows % BINS] += 1
        secret_bins(sizes.tolist(), SecureNoise())


def test_of(job: str) -> tuple[Callable[..., object], list[str]]:
    """Return the test, ready but for its samples, and the columns that it reads."""
    import privatest as pt  # noqa: PLC0415

    common: dict[str, Any] = {"epsilon": 1.0, "bounds": (0, 1)}
    if job == "mmd":
        return lambda x, y: pt.mmd_test(x, y, **common), list(COLUMNS)
    if job == "hotelling":
        return lambda x, y: pt.hotelling_test(x, y, **common), list(COLUMNS)
    has_grid = "grid" in inspect.signature(pt.ks_2samp).parameters
    if job == "ks-grid" and not has_grid:
        raise NotThere
    options: dict[str, Any] = {"grid": 1024} if job == "ks-grid" else {}
    return lambda x, y: pt.ks_2samp(x, y, **common, **options), list(COLUMNS[:1])


def prepared(job: str, paths: list[str], workers: dict[str, Any]) -> Callable[[], object]:
    """Return what is timed; imports, and the start of workers, are not."""
    name, _, first = job.partition(":")
    if name in ("read", "read-groups"):
        import pyarrow.dataset  # noqa: F401, PLC0415 -- not to be timed

        columns = list(COLUMNS[: int(first or len(COLUMNS))])
        function = read if name == "read" else read_by_groups
        return lambda: function(paths, columns)
    if name == "order":
        return lambda: order(paths)
    from privatest.data.files import scan  # noqa: PLC0415

    test, columns = test_of(name)
    warm(name)
    if workers:
        client_of(workers).run(warm, name)
    return lambda: test(*(scan(path, **workers).select(columns) for path in paths))


def warm(job: str) -> None:
    """Load what the test needs."""
    import pyarrow.parquet  # noqa: F401, PLC0415

    test, columns = test_of(job)
    test(FEW[:, : len(columns)], FEW[:, : len(columns)] / 2)


def client_of(workers: dict[str, Any]) -> Any:
    from privatest.data.engines import EngineConfig, connected  # noqa: PLC0415

    return connected(EngineConfig(**workers))


def peak() -> int:
    """Most bytes of memory that this process has had."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    raise NotThere


def watch_summaries(engine: type) -> list[int]:
    """Note how many bytes the summaries of each pass have."""
    sizes: list[int] = []
    original: Any = engine.run  # type: ignore[attr-defined]

    def run(self: Any, jobs: Any, totals: Any) -> None:
        original(self, jobs, totals)
        sizes.append(sum(len(pickle.dumps(each)) for each in totals))

    engine.run = run  # type: ignore[attr-defined]
    return sizes


def measured(job: str, paths: list[str], workers: dict[str, Any]) -> dict[str, Any]:
    """Measure the first call of a process, and a second one."""
    from privatest.data.engines import DaskEngine, LocalEngine  # noqa: PLC0415

    call = prepared(job, paths, workers)
    sizes = watch_summaries(DaskEngine if workers else LocalEngine)
    before = client_of(workers).run(time.process_time) if workers else {}
    seconds, processor = timed(call)
    result: dict[str, Any] = {"seconds": seconds, "processor": processor}
    if workers:
        after = client_of(workers).run(time.process_time)
        result["worker_processor"] = [after[each] - before[each] for each in after]
    # a process has asked for its memory by now, and has made its tables of public numbers
    again, again_processor = timed(call)
    result |= {"again": again, "again_processor": again_processor, "memory": peak()}
    if workers:
        result["worker_memory"] = max(client_of(workers).run(peak).values())
    return result | {"summary_bytes": sizes[: len(sizes) // 2]}


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return seconds by the clock, and of this process's processors."""
    start, busy = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - busy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", help="read, read-groups, order, mmd, hotelling, ks, ks-grid")
    parser.add_argument("paths", nargs="+", help="Parquet files, one for each sample")
    parser.add_argument("--workers", type=int, help="processes of a Dask cluster on this machine")
    asked = parser.parse_args()
    workers = {"engine": "dask", "threads": asked.workers} if asked.workers else {}
    try:
        print(json.dumps(measured(asked.job, asked.paths, workers)))
    except NotThere:
        print("null")


if __name__ == "__main__":
    main()
