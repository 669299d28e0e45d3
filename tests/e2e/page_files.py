"""The files that pages of the documentation take for granted: made up, from a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from privatest.datasets import randhie

PENGUINS = Path(__file__).resolve().parent.parent / "data" / "penguins.csv"
VISITS = """rows_per_person = 1
[columns.visits]
type = "numeric"
bounds = [0, 80]
integer = true
[columns.age]
type = "numeric"
bounds = [18, 90]
[columns.plan]
type = "categorical"
categories = ["basic", "plus"]
[columns.arm]
type = "categorical"
categories = ["treated", "control"]
[columns.region]
type = "categorical"
categories = ["north", "south"]
membership = "public"
"""


def fill(folder: Path) -> None:
    """Write visits of 400 people on two plans, in a file and in folders; clinics; penguins."""
    rng = np.random.default_rng(11)
    plus = np.arange(400) % 2 == 0
    table = pa.table(
        {
            "visits": np.minimum(rng.poisson(np.where(plus, 14, 8)), 80),
            "age": rng.integers(18, 90, size=400),
            "income": np.round(rng.lognormal(10, 0.5, size=400)),
            "plan": np.where(plus, "plus", "basic"),
            "arm": np.where(plus, "treated", "control"),
            "region": np.where(np.arange(400) % 4 < 2, "north", "south"),
        }
    )
    pyarrow.csv.write_csv(table, folder / "visits.csv")
    (folder / "visits.toml").write_text(VISITS, encoding="utf-8")
    for file in (PENGUINS, *randhie()):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "visits").mkdir()
    pq.write_table(table, folder / "visits" / "part.parquet")
    np.savetxt(folder / "pilot.csv", np.minimum(rng.poisson(9, size=60), 80))
    _clinics(folder, rng)
    for name, rows in (("treated", plus), ("control", ~plus)):
        (folder / name).mkdir()
        pq.write_table(table.filter(pa.array(rows)), folder / name / "part.parquet")


def _clinics(folder: Path, rng: np.random.Generator) -> None:
    """Write three clinics, of which the last has other visits."""
    for name, rows, visits in (("north", 4000, 6), ("south", 3000, 6), ("west", 3500, 8)):
        clinic = {"visits": rng.poisson(visits, size=rows), "age": rng.integers(18, 90, size=rows)}
        pyarrow.csv.write_csv(pa.table(clinic), folder / f"{name}.csv")
