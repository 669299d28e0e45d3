"""A table of PostgreSQL through ADBC, and its Parquet export: the same answers, what each takes.

    python -m benchmarks.scale.database --url postgresql://user@host/database

Makes a table of its own there, and drops it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import privatest as pt
from benchmarks.measure import save
from privatest.noise import SimulatedNoise

NAME = "privatest_benchmark"
MADE = (
    f"create table {NAME} as select 50 + 10 * sin(i * i::double precision) as age,"
    " 5 + 3 * cos(i * 1.7) as visits, case when i %% 3 = 0 then 'new' else 'old' end as arm"
    " from generate_series(1, %d) i"
)
BOUNDS = {"age": (0, 100), "visits": (0, 20)}


def tests(data: Any) -> dict[str, tuple[dict[str, Any], dict[str, float]]]:
    """Answers under one seed of simulated noise, seconds, and processor seconds."""
    shared: dict[str, Any] = {"group": "arm", "groups": ["new", "old"], "adjacency": "one"}
    asked: dict[str, Callable[[SimulatedNoise], Any]] = {
        "mmd_test": lambda n: pt.mmd_test(data, bounds=BOUNDS, epsilon=1, rng=1, noise=n, **shared),
        "hotelling_test": lambda n: pt.hotelling_test(
            data, bounds=BOUNDS, epsilon=1, rng=1, noise=n, **shared
        ),
        "ks_2samp": lambda n: pt.ks_2samp(data, columns="age", epsilon=1, noise=n, **shared),
    }
    found = {}
    for name, run in asked.items():
        wall, processor = time.perf_counter(), time.process_time()
        answer = run(SimulatedNoise(5)).to_dict()
        seconds = time.perf_counter() - wall
        taken = {"seconds": seconds, "processor_seconds": time.process_time() - processor}
        found[name] = answer, taken
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--rows", type=int, default=2_000_000)
    chosen = parser.parse_args()
    import psycopg  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    with psycopg.connect(chosen.url, autocommit=True) as connection:
        connection.execute(MADE % chosen.rows)
        connection.execute(f"analyze {NAME}")
    try:
        table = pt.scan_sql(chosen.url, table=NAME).select(["age", "visits", "arm"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "export.parquet"
            pq.write_table(table.load(), path)
            sides = {"postgresql": tests(table), "parquet": tests(pt.scan(path))}
        del table
    finally:
        with psycopg.connect(chosen.url, autocommit=True) as connection:
            connection.execute(f"drop table {NAME}")
    report: dict[str, Any] = {"rows": chosen.rows, "runs": 1}
    for name, (answer, _) in sides["postgresql"].items():
        report[name] = {
            "same_answer": answer == sides["parquet"][name][0],
            "pvalue": answer["pvalue"],
            **{
                f"{side}_{kind}": round(taken, 2)
                for side, found in sides.items()
                for kind, taken in found[name][1].items()
            },
        }
    save("scale-database", report)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
