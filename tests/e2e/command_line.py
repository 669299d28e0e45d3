"""What the tests of the command line share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

# Must never be printed; outside all bounds, so it is clipped. Long, as digits of noise are printed,
# and in one of 10,000 outputs with a thousand of them there are any seven by chance.
CANARY = 8675309246813
KEYS = {
    *("reject", "alpha", "epsilon", "delta", "adjacency", "unit", "method", "null_hypothesis"),
    *("sizes", "parameters", "simulated", "level", "method_id", "rows_per_person"),
    # what a document says besides the result itself
    *("format", "verdict", "compared", "guarantee", "request", "files", "ledger"),
}
# what it says only where that is known
SOMETIMES = {"interval_widening", "noise_note", "noise_to_chance", "schema"}
GROUP = ["--group", "plan", "--groups", "basic", "plus", "--bounds", "visits=0:80"]
CLEAR = ["--epsilon", "1000", "--permutations", "199"]  # so little noise that answers are sure


class Run(NamedTuple):
    """What came out of one command."""

    code: int
    out: str
    err: str


Cli = Callable[..., Run]


def table(**changes: Any) -> pa.Table:
    """40 rows on each of two plans, who differ clearly; None takes a column away."""
    columns = {
        "visits": [CANARY, *range(41, 80), *range(40)],
        "plan": ["basic"] * 40 + ["plus"] * 40,
        "region": ["north", "south"] * 40,
        "note": [str(CANARY)] * 80,
        "age": [*range(80)],
        "visits_2023": [*range(80)],
        "visits_2024": [*range(80)],
    }
    return pa.table({name: v for name, v in (columns | changes).items() if v is not None})


def write(name: str, data: pa.Table) -> str:
    if name.endswith(".parquet"):
        pq.write_table(data, name)
    else:
        pyarrow.csv.write_csv(data, name)
    return name


def refused(run: Run, *fragments: str) -> None:
    """One line that says what is wrong, exit code 2, and nothing else."""
    assert run.code == 2
    assert run.out == ""
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    for fragment in fragments:
        assert fragment in run.err


def released(run: Run) -> dict[str, Any]:
    """Read the one JSON document of a good run."""
    assert run.code == 0, run.err
    assert run.err == ""
    document: dict[str, Any] = json.loads(run.out)
    assert document.keys() >= KEYS - {"request", "files", "ledger"}  # which compare has not
    assert document["simulated"] is False
    return document
