"""On paper: a default MMD test of a billion rows on fifty workers, from measured rates.

Reads benchmarks/results/scale.json (`make bench-scale`). Processor seconds are taken to grow with
the number of rows, and those of workers with the number of columns too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import RESULTS
from benchmarks.report import print_table
from benchmarks.scale.data import GROUP_ROWS
from benchmarks.scale.table import spread

NETWORK = 125e6  # bytes a second that reach a worker: 1 Gbit/s
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "scale.md"
NAMES = {
    "mmd": "`mmd_test`, default",
    "hotelling": "`hotelling_test`",
    "ks": "`ks_2samp`, one column",
    "ks-grid": "`ks_2samp`, `grid=1024`",
}


_BUSY = (
    " The machine was busy with other work, so processor times are shown, and their ratio to that "
    "of reading."
)


class Stage(NamedTuple):
    name: str
    who: str
    moved: float  # bytes
    seconds: float


def line(result: dict[str, Any], job: str, what: str = "processor") -> tuple[float, float]:
    """Return fixed seconds, and seconds for each row of both samples."""
    cells = [each for each in result["rows"] if each["job"] == job]
    rows = np.array([2.0 * each["rows"] for each in cells])
    slope, fixed = np.polyfit(rows, [each[what] for each in cells], 1)
    return max(float(fixed), 0.0), float(slope)


def stages(result: dict[str, Any], rows: float, columns: int, workers: int) -> list[Stage]:
    """Return what is done one after the other, but for reading and computing, which overlap."""
    wider = columns / result["columns"]
    content = 8.0 * rows * columns
    fixed, all_of_it = line(result, "mmd")
    reading = line(result, f"read-groups:{result['columns']}")[1]
    hashing = line(result, "order")[1]
    sums = max(all_of_it - reading - hashing, 0.0)
    summary = max(largest(result, "mmd")["summary_bytes"], default=0)
    merged = rows / (4 * GROUP_ROWS) * summary / 2  # jobs of 64 blocks, the largest
    return [
        Stage("cut points of the secret order", "coordinator, one core", 0.0, hashing * rows),
        Stage("fetching columns", "each worker", content, content / workers / NETWORK),
        Stage("decoding them", "each worker", 0.0, reading * wider * rows / workers),
        Stage("features and sums", "each worker", 0.0, sums * wider * rows / workers),
        Stage("merging", "workers", merged, merged / workers / NETWORK),
        Stage("permutations and noise", "coordinator", float(summary), fixed),
    ]


def largest(result: dict[str, Any], job: str) -> dict[str, Any]:
    found: dict[str, Any] = max(
        (each for each in result["rows"] if each["job"] == job), key=lambda each: each["rows"]
    )
    return found


def measured_text(result: dict[str, Any]) -> str:
    """Say what was measured, for the docs."""
    machine, rows = result["machine"], max(each["rows"] for each in result["rows"])
    lines = [
        f"Measured (`make bench-scale`, {machine['cores']} cores, Python {machine['python']}, "
        f"files in memory where they fit): two samples of {rows:,} rows × {result['columns']} "
        "columns of Parquet, beside reading and decoding the same columns with Arrow alone."
        + (_BUSY if machine["load_before"] > 1 else ""),
        "",
        "| test | seconds | again | times reading | again | processor ns a row | peak memory, GB |",
        "|---|---|---|---|---|---|---|",
    ]
    jobs = {each["job"] for each in result["rows"]}
    busy = machine["load_before"] > 1
    for job in [job for job in NAMES if job in jobs]:
        each = largest(result, job)
        times = [f"{each[when]:.1f}" for when in ("seconds", "again", "ratio", "again_ratio")]
        if busy:
            read = largest(result, f"read-groups:{1 if job.startswith('ks') else 10}")
            ratio = each["processor"] / read["processor"]
            again = each["again_processor"] / read["again_processor"]
            times = ["–", "–", f"{ratio:.1f}", f"{again:.1f}"]
        lines.append(
            f"| {NAMES[job]} | {' | '.join(times)} | "
            f"{each['processor'] / (2 * each['rows']) * 1e9:,.0f} | {each['memory'] / 1e9:.2f} |"
        )
    one, two = result["dask"]
    speed = (
        f"{one['seconds']:.1f} s with one worker, {two['seconds']:.1f} s with two "
        f"({result['speedup']:.2f} times as fast; again {one['again']:.1f} and "
        f"{two['again']:.1f} s, {result['again_speedup']:.2f} times); "
    )
    spreads = ", ".join(
        f"{NAMES[job]} {spread(result, job, 'seconds'):.1f} and {spread(result, job, 'again'):.1f}"
        for job in NAMES
        if job in jobs
    )
    lines += [
        "",
        '"Again" is the second time in the same process: the first includes memory that the system '
        "has yet to give, and tables of public numbers. Time a row, largest over least of three "
        f"sizes, the first time and again: {spreads}; reading ten columns "
        f"{spread(result, 'read-groups:10', 'seconds'):.1f} and "
        f"{spread(result, 'read-groups:10', 'again'):.1f}.",
        "",
        f"The first on Dask: {'' if busy else speed}a worker had "
        f"{two['worker_memory'] / 1e9:.2f} GB at most.",
    ]
    return "\n".join(lines)


def projected_text(result: dict[str, Any]) -> str:
    """Say what would be, for the docs."""
    found = stages(result, 1e9, 20, 50)
    computing = sum(stage.seconds for stage in found[2:4])
    total = found[0].seconds + max(found[1].seconds, computing) + sum(s.seconds for s in found[4:])
    workers = 50 * max(found[1].seconds, computing) / found[0].seconds
    first = max(
        (computing, "computing on the workers, which more workers make shorter"),
        (found[0].seconds, "the cut points of the secret order, which the coordinator finds alone"),
        (found[1].seconds, "the network to the workers"),
    )[1]
    lines = [
        "On paper, from the rates above (`python -m benchmarks.scale.projection`): 10⁹ rows × 20 "
        "columns of doubles in both samples together, 160 GB, the default MMD test, 50 workers of "
        "one thread, 1 Gbit/s to each. Processor time is taken to grow with rows, and that of "
        "workers with columns. It has not been run.",
        "",
        "| stage | who | GB moved | seconds |",
        "|---|---|---|---|",
    ]
    for stage in found:
        moved = f"{stage.moved / 1e9:.3g}" if stage.moved else "–"
        lines.append(f"| {stage.name} | {stage.who} | {moved} | {stage.seconds:.3g} |")
    lines += [
        "",
        f"Fetching and computing overlap, so about {total:.0f} s in all. What takes longest is "
        f"{first}. With more workers it is the cut points: they take as long with any number "
        f"(beyond about {workers:.0f} workers, longer than all that workers do). Merging, and "
        "what comes back, hardly matter.",
    ]
    return "\n".join(lines)


def write(result: dict[str, Any]) -> None:
    """Put both texts in the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, text in (("measured", measured_text(result)), ("projected", projected_text(result))):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e9, help="of both samples")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--workers", type=int, default=50, help="of one thread each")
    parser.add_argument("--write", action="store_true", help="put both tables in the docs")
    asked = parser.parse_args()
    result = json.loads((RESULTS / "scale.json").read_text())
    found = stages(result, asked.rows, asked.columns, asked.workers)
    print_table(
        f"{asked.rows:,.0f} rows × {asked.columns} columns on {asked.workers} workers",
        ["stage", "who", "GB moved", "s"],
        [[stage.name, stage.who, stage.moved / 1e9 or None, stage.seconds] for stage in found],
    )
    if asked.write:
        write(result)


if __name__ == "__main__":
    main()
