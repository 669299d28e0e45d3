"""On paper: a default MMD test of a billion rows on fifty workers, from measured rates.

Reads benchmarks/results/scale.json (`make bench-scale`). Processor seconds are taken to grow with
the number of rows, and those of workers with the number of columns too.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from benchmarks.measure import RESULTS
from benchmarks.report import print_table
from benchmarks.scale.data import GROUP_ROWS

NETWORK = 125e6  # bytes a second that reach a worker: 1 Gbit/s


def line(result: dict[str, Any], job: str, what: str = "processor") -> tuple[float, float]:
    """Return fixed seconds, and seconds for each row of both samples."""
    cells = [each for each in result["rows"] if each["job"] == job]
    rows = np.array([2.0 * each["rows"] for each in cells])
    slope, fixed = np.polyfit(rows, [each[what] for each in cells], 1)
    return max(float(fixed), 0.0), float(slope)


def stages(
    result: dict[str, Any], rows: float, columns: int, workers: int
) -> list[tuple[str, str, float, float]]:
    """Return each stage with who does it, bytes that move, and seconds."""
    wider = columns / result["columns"]
    content = 8.0 * rows * columns
    fixed, all_of_it = line(result, "mmd")
    reading = line(result, f"read-groups:{result['columns']}")[1]
    keys = line(result, "order", "seconds")[1]  # with all cores of a coordinator like this one
    hashing = line(result, "order")[1]
    sums = max(all_of_it - reading - hashing, 0.0)
    largest = max((each for each in result["rows"] if each["job"] == "mmd"), key=_rows)
    summary = max(largest["summary_bytes"], default=0)
    jobs = rows / (4 * GROUP_ROWS)  # 64 blocks, the largest job
    return [
        ("cut points of the secret order", "coordinator", 0.0, keys * rows),
        ("bytes from storage", "each worker", content, content / workers / NETWORK),
        ("decoding", "each worker", 0.0, reading * wider * rows / workers),
        ("features and sums", "each worker", 0.0, sums * wider * rows / workers),
        ("merging", "workers", jobs * summary / 2, jobs * summary / 2 / workers / NETWORK),
        ("permutations and noise", "coordinator", float(summary), fixed),
    ]


def _rows(each: dict[str, Any]) -> int:
    return int(each["rows"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e9, help="of both samples")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--workers", type=int, default=50, help="of one thread each")
    asked = parser.parse_args()
    result = json.loads((RESULTS / "scale.json").read_text())
    found = stages(result, asked.rows, asked.columns, asked.workers)
    print_table(
        f"{asked.rows:,.0f} rows × {asked.columns} columns on {asked.workers} workers",
        ["stage", "who", "GB moved", "s"],
        [[name, who, moved / 1e9 or None, seconds] for name, who, moved, seconds in found],
    )
    print("Reading and computing overlap: a worker needs the larger of the two, not their sum.")


if __name__ == "__main__":
    main()
