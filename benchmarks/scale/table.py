"""Tests on Parquet beside reading it: time, memory, time per row, one and two Dask workers.

Two samples of ten columns are written first, of N, N/4 and N/20 rows, with Arrow's default
encoding and compression. Every job is a process of its own, which does it twice: the first time
includes what a process does once (memory that the system has yet to give, tables of public
numbers), the second does not. Times are of the run with the least first time of --repeats, files
being in the memory of the operating system where they fit. Reading is decoding the
same columns into doubles of Arrow, with as many threads, by the quicker of two ways; they are not
looked at, which would make reading slower and ratios smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from benchmarks.measure import save
from benchmarks.report import print_table
from benchmarks.scale.data import COLUMNS, make, sample_path

# the job, how many columns it reads, and what is asked of it: times of reading
JOBS = {"mmd": (10, 6.0), "hotelling": (10, 2.5), "ks": (1, 5.0), "ks-grid": (1, 2.5)}
MEMORY = 1.5e9  # asked of mmd


def run(job: str, folder: Path, rows: int, repeats: int, workers: int = 0) -> Any:
    """Run a job in fresh processes; return the quickest, or None if it is not there."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale.job", job]
    words += [str(sample_path(folder, name, rows)) for name in "xy"]
    words += ["--workers", str(workers)] if workers else []
    found = []
    for _ in range(repeats):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{job} failed:\n{done.stderr[-2000:]}")
        found.append(json.loads(done.stdout.splitlines()[-1]))
        if found[-1] is None:
            return None
    return min(found, key=lambda each: each["seconds"])


def one_size(folder: Path, rows: int, repeats: int) -> list[dict[str, Any]]:
    """Measure all jobs on samples of one size."""
    measured: list[dict[str, Any]] = []
    reading: dict[int, tuple[float, float]] = {}
    for columns in (len(COLUMNS), 1):
        kinds = [f"read:{columns}", f"read-groups:{columns}"]
        for kind in kinds:
            measured.append({"job": kind, "rows": rows, **run(kind, folder, rows, repeats)})
        least = [min(each[when] for each in measured[-2:]) for when in ("seconds", "again")]
        reading[columns] = least[0], least[1]
    for job, (columns, asked) in JOBS.items():
        found = run(job, folder, rows, repeats)
        if found is None:
            print(f"{job} is not in this version.")
            continue
        first, again = reading[columns]
        ratios = {"ratio": found["seconds"] / first, "again_ratio": found["again"] / again}
        measured.append({"job": job, "rows": rows, **found, **ratios, "asked": asked})
    measured.append({"job": "order", "rows": rows, **run("order", folder, rows, repeats)})
    return measured


def measure(folder: Path, sizes: list[int], repeats: int) -> dict[str, Any]:
    make(folder, sizes)
    others = os.getloadavg()[0]  # who else is at work
    measured = [each for rows in sizes for each in one_size(folder, rows, repeats)]
    clusters = [
        {"workers": count, "rows": sizes[-1], **run("mmd", folder, sizes[-1], repeats, count)}
        for count in (1, 2)
    ]
    return {
        "machine": {
            "cores": os.cpu_count(),
            "load_before": round(others, 1),
            "memory_gb": round(psutil.virtual_memory().total / 1e9),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "pyarrow": pa.__version__,
        },
        "columns": len(COLUMNS),
        "repeats": repeats,
        "rows": measured,
        "dask": clusters,
        "speedup": clusters[0]["seconds"] / clusters[1]["seconds"],
        "again_speedup": clusters[0]["again"] / clusters[1]["again"],
    }


def spread(result: dict[str, Any], job: str, when: str) -> float:
    """Return the largest time a row over the least, of all sizes."""
    own = [each[when] / each["rows"] for each in result["rows"] if each["job"] == job]
    return float(max(own) / min(own))


def show(result: dict[str, Any]) -> None:
    """Print the tables."""
    print_table(
        "Two samples of so many rows; ratio to the quicker way of reading the same columns",
        ["job", "rows", "s", "again", "cpu s", "peak GB", "ratio", "again", "asked"],
        [
            [
                each["job"],
                f"{each['rows']:,}",
                each["seconds"],
                each["again"],
                each["processor"],
                each["memory"] / 1e9,
                each.get("ratio"),
                each.get("again_ratio"),
                each.get("asked"),
            ]
            for each in result["rows"]
        ],
    )
    largest = max(each["rows"] for each in result["rows"])
    rows = []
    for job in ("read-groups:10", *JOBS):
        for when in ("seconds", "again"):
            found = spread(result, job, when)
            label = job if when == "seconds" else "  again"
            rows.append([label, found, "at most 1.15" if job in JOBS else None])
    for each in result["rows"]:
        if each["job"] == "mmd" and each["rows"] == largest:
            rows.append(["mmd: peak GB", each["memory"] / 1e9, f"below {MEMORY / 1e9}"])
    for each in result["dask"]:
        rows.append([f"mmd, {each['workers']} Dask workers: s", each["seconds"], None])
        rows.append(["  again", each["again"], None])
        rows.append(["  peak GB of a worker", each["worker_memory"] / 1e9, None])
    rows.append(["two workers over one", result["speedup"], "at least 1.6"])
    rows.append(["  again", result["again_speedup"], "at least 1.6"])
    print_table("time per row, largest over least; memory; Dask", ["", "found", "asked"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of each sample")
    parser.add_argument("--folder", type=Path, help="where the files are kept; else temporary")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each job; the least counts")
    parser.add_argument("--no-save", action="store_true", help="do not write the JSON")
    asked = parser.parse_args()
    sizes = sorted({max(1, asked.rows // 20), max(1, asked.rows // 4), asked.rows})
    place = nullcontext(asked.folder) if asked.folder else tempfile.TemporaryDirectory()
    with place as folder:
        result = measure(Path(folder), sizes, asked.repeats)
    show(result)
    if not asked.no_save:
        save("scale", result)


if __name__ == "__main__":
    main()
