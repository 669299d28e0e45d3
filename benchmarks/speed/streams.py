"""What a test of a Parquet file costs, against reading and decoding the same columns.

Two files of 2,000,000 rows of 10 doubles are made in a temporary folder. Times are of all
threads together, so that other programs on the machine change them little.

Run: python -m benchmarks.speed.streams. Writes results/speed-streams.json.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privatest as pt
from benchmarks.measure import processor_time, save, start
from benchmarks.report import print_table
from privatest.data.files import scan

ROWS, COLUMNS = 2_000_000, 10
BOX = (0.0, 1.0)
ASKED = {"hotelling_test": 2.5, "hotelling_test, delta > 0": 2.5}
OWN: dict[str, Any] = {"epsilon": 1, "rng": 0}
QUICK: dict[str, Any] = OWN | {"n_bootstrap": 19}
DELTA: dict[str, Any] = {"delta": 1e-6}

Files = tuple[Path, Path]
Case = tuple[int, Sequence[int], Callable[..., object]]
"""How many files are read, which columns, and the test of sources of them."""

CASES: dict[str, Case] = {
    "hotelling_test": (2, range(10), lambda x, y: pt.hotelling_test(x, y, bounds=BOX, **QUICK)),
    "hotelling_test, delta > 0": (
        2,
        range(10),
        lambda x, y: pt.hotelling_test(x, y, bounds=BOX, **QUICK, **DELTA),
    ),
    "private_mean": (1, range(10), lambda x: pt.private_mean(x, bounds=BOX, **OWN)),
    "ttest_ind": (2, [0], lambda x, y: pt.ttest_ind(x, y, bounds=BOX, **OWN)),
    "ttest_rel": (
        1,
        [0, 1],
        lambda x: pt.ttest_rel(x.select(["c0"]), x.select(["c1"]), bounds=BOX, **OWN),
    ),
    "pearsonr": (
        1,
        [0, 1],
        lambda x: pt.pearsonr(
            x.select(["c0"]), x.select(["c1"]), bounds_x=BOX, bounds_y=BOX, **OWN
        ),
    ),
    "sign_test": (1, [0, 1], lambda x: pt.sign_test(x.select(["c0"]), x.select(["c1"]), epsilon=1)),
    "private_median": (1, [0], lambda x: pt.private_median(x, bounds=BOX, epsilon=1)),
    "proportions_test": (
        2,
        [0],
        lambda x, y: pt.proportions_test(x, y, bounds=BOX, success=0.5, **OWN),
    ),
    "me_test": (
        2,
        range(10),
        lambda x, y: pt.me_test(x, y, bounds=BOX, locations=5, **OWN, **DELTA),
    ),
    "me_permutation_test": (
        2,
        range(10),
        lambda x, y: pt.me_permutation_test(x, y, bounds=BOX, locations=5, **OWN),
    ),
    "share": (
        1,
        range(10),
        lambda x: pt.share(x, bounds=BOX, epsilon=1, locations=5, **DELTA),
    ),
}


def main() -> None:
    """Measure, print the table, write the JSON."""
    with tempfile.TemporaryDirectory() as folder:
        files = _files(Path(folder))
        rows = [_row(name, files) for name in CASES]
    head = ["case", "columns", "reading", "seconds", "ratio", "target"]
    print_table(f"{ROWS:,} rows a sample, processor seconds", head, rows)
    save("speed-streams", [dict(zip(head, row, strict=True)) for row in rows])


def _files(folder: Path) -> Files:
    found = folder / "x.parquet", folder / "y.parquet"
    for seed, path in enumerate(found):
        values = np.random.default_rng(seed).uniform(size=(COLUMNS, ROWS))
        table = pa.table({f"c{place}": column for place, column in enumerate(values)})
        pq.write_table(table, path, row_group_size=1 << 18)
    return found


def _row(name: str, files: Files) -> list[Any]:
    count, places, test = CASES[name]
    columns = [f"c{place}" for place in places]

    def read() -> None:
        for path in files[:count]:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(1 << 16, columns=columns):
                    for column in batch.columns:
                        column.to_numpy()

    def run() -> object:
        return test(*(scan(path).select(columns) for path in files[:count]))

    reading, own = processor_time(read, 5), processor_time(run, 3)
    return [name, len(columns), reading, own, own / reading, ASKED.get(name)]


if __name__ == "__main__":
    start(main, __doc__)
