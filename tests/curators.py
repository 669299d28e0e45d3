"""A small curator for tests: 40 people in two regions, on two plans."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from privatest.curator import Curator

SCHEMA = """\
rows_per_person = 1

[columns.visits]
type = "numeric"
bounds = [0, 80]

[columns.age]
type = "numeric"
bounds = [0, 120]
integer = true

[columns.plan]
type = "categorical"
categories = ["basic", "plus"]

[columns.region]
type = "categorical"
categories = ["north", "south", "west"]
membership = "public"
"""
CONFIG = """\
ledger = "ledger.db"

[datasets.people]
source = "people.csv"
schema = "people.toml"
epsilon = 3
delta = 1e-6

[datasets.people.policy]
largest_epsilon = 1

[analysts.ada]
datasets = ["people"]
epsilon = 2
delta = 1e-6

[analysts.bob]
datasets = ["people"]
"""
PRIVATE = {"group": "plan", "columns": ["visits"]}


def table(**changes: Any) -> pa.Table:
    columns = {
        "visits": [float(2 * i) for i in range(40)],
        "age": [20 + i for i in range(40)],
        "plan": ["basic", "plus"] * 20,
        "region": ["north"] * 20 + ["south"] * 16 + ["west"] * 4,
    }
    return pa.table(columns | changes)


def write(folder: Path, config: str = CONFIG, schema: str = SCHEMA, **changes: Any) -> Path:
    """Write all files; return the one to open."""
    pyarrow.csv.write_csv(table(**changes), folder / "people.csv")
    (folder / "people.toml").write_text(schema, encoding="utf-8")
    path = folder / "curator.toml"
    path.write_text(config, encoding="utf-8")
    return path


def opened(folder: Path, config: str = CONFIG, schema: str = SCHEMA, **changes: Any) -> Curator:
    """Return a curator with its data registered."""
    with ExitStack() as cleanup:
        path = write(folder, config, schema, **changes)
        curator = cleanup.enter_context(Curator.open(path, create=True))
        for name in curator.config.datasets:
            curator.register(name)
        cleanup.pop_all()
    return curator


def request(question: str = "two-sample", method: str = "ks", **document: Any) -> dict[str, Any]:
    """Return a cheap request; without other words, about a private group."""
    about = PRIVATE if question == "two-sample" else {}
    head = {"dataset": "people", "question": question, "method": method, "epsilon": 0.1}
    return {**head, **about, **document}
