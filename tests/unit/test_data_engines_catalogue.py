"""Every test of the catalogue: the same answer from memory, from threads and from a cluster.

To the last bit, under the same simulated noise, for any cut into parts and any size of batches. A
new test is here as soon as it is in the catalogue. (Rows of more than one block, and options that
the catalogue does not have, are compared in test_data_engines_streams.py.)
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather

from privatest.core.noise import SimulatedNoise
from privatest.data import engines
from privatest.data.engines import EngineConfig
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.data.sources import Part, Source
from privatest.numerics import order as value_cells
from privatest.numerics import order as value_order
from privatest.requests.catalogue import METHODS
from privatest.requests.prepare import prepare
from privatest.requests.request import Request

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore:cryptography is not installed")

MANY, FEW = 12_000, 2_000  # from 10,000 rows on MMD is a sum of features
SLOW = {"hsic", "tot", "sarrm", "family", "auto", "tables", "subspace", "features"}
# Tests that put all rows in order do so in memory, up to a number that is lower here.
BY_PASSES = {"ks", "kuiper", "mann-whitney", "kruskal", "median", "wilcoxon"}

SCHEMA = Schema(
    {
        "u": NumericColumn(0, 1),
        "v": NumericColumn(-2, 3),
        "hit": NumericColumn(0, 1, integer=True),
        "arm": CategoricalColumn(("new", "old"), membership="public"),
        "plan": CategoricalColumn(("basic", "plus")),
        "site": CategoricalColumn(("a", "b", "c")),
    }
)


@cache
def rows(count: int) -> pa.Table:
    rng = np.random.default_rng(count)
    u = rng.beta(2, 3, size=count)
    return pa.table(
        {
            "u": u,
            "v": np.round(u + rng.normal(size=count), 1),  # ties, and beyond the bounds
            "hit": rng.integers(2, size=count),
            "arm": np.array(["new", "old"])[rng.integers(2, size=count)],
            "plan": np.array(["basic", "plus"])[(u + rng.random(count) > 1).astype(int)],
            "site": np.array(["a", "b", "c"])[rng.integers(3, size=count)],
        }
    )


@dataclass(frozen=True)
class Stored(Part):
    """Some rows of a file, in batches of one size."""

    path: str
    start: int
    rows: int
    batch: int
    label: str = "a part"

    def batches(self, columns):
        held = feather.read_table(self.path, columns=list(columns), memory_map=True)
        yield from held.slice(self.start, self.rows).to_batches(max_chunksize=self.batch)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("catalogue")
    paths = {}
    for count in (FEW, MANY):
        paths[count] = str(folder / f"{count}.feather")
        feather.write_feather(rows(count), paths[count], compression="uncompressed")
    yield paths
    engines.disconnect_all()


def source(paths, count, cuts, batch, workers):
    edges = [0, *sorted(min(cut, count) for cut in cuts), count]
    parts = tuple(Stored(paths[count], a, b - a, batch) for a, b in pairwise(edges))
    return Source(tuple(rows(count).column_names), parts, workers)


def document(question: str, method: str, group: str) -> dict[str, Any]:
    entry = METHODS[question][method]
    compared = ["site"] if method == "tv" else ["hit"] if entry.outcomes else ["v"]
    sides = {"x": ["plan"], "y": ["site"]} if entry.categorical else {"x": ["u"], "y": ["v"]}
    target = {"dist": {"dist": "norm(0.5, 1)"}, "family": {"family": "norm"}}
    parts: dict[str, dict[str, Any]] = {
        "two-sample": {"group": group, "columns": compared},
        "independence": sides | ({"given": ["site"]} if entry.part == "given" else {}),
        "paired": {"before": "u", "after": "v"},
        "fit": {"column": "v"} | target.get(entry.part, {"column": "site", "shares": "equal"}),
        "mean": {"columns": compared if entry.one_column or entry.outcomes else ["u", "v"]},
        "release": {"columns": ["u", "site"], "delta": 1e-6},
    }
    usual = {"permutations": 19, "points": 20, "locations": 3, "low": -0.1, "high": 0.1}
    wanted = {*entry.needed, *({"permutations", "points"} & entry.options.keys())}
    options = {name: usual[name] for name in wanted} | ({"success": 1} if entry.outcomes else {})
    head = {"question": question, "method": method, "epsilon": 1}
    return head | parts[question] | options


def entries():
    for question, methods in METHODS.items():
        for method, entry in methods.items():
            groups = ["arm", "plan"] if question == "two-sample" else [""]
            yield from (
                (question, method, group)
                for group in groups
                if group != "plan" or not entry.public_groups
            )


def answer(question, method, group, table):
    prepared = prepare(Request.from_dict(document(question, method, group)), SCHEMA)
    taken = inspect.signature(prepared.request.entry.function).parameters
    more: dict[str, Any] = {"rng": 0} if "rng" in taken else {}
    more |= {name: 99 for name in ("n_bootstrap", "n_simulations", "n_resamples") if name in taken}
    result = prepared.run(table.select(prepared.reads), noise=SimulatedNoise(3), **more)
    if question == "release":
        return repr([np.asarray(getattr(result, n)).tolist() for n in ("points", "weights")])
    return repr(result.to_dict())


@cache
def from_memory(question, method, group, count):
    return answer(question, method, group, rows(count))


@pytest.mark.parametrize(("question", "method", "group"), [*entries()])
@settings(
    max_examples=1,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.integers(0, MANY), max_size=3), st.integers(500, 2 * MANY))
def test_answers_do_not_depend_on_who_reads(
    files, monkeypatch, question, method, group, cuts, batch
):
    count = FEW if method in SLOW else MANY
    if method in BY_PASSES:
        monkeypatch.setattr(value_order, "HELD_ROWS", 1_000)
        monkeypatch.setattr(value_order, "SLICE_ROWS", 5_000)
        monkeypatch.setattr(value_cells, "CELLS", 1 << 12)
    expected = from_memory(question, method, group, count)
    for workers in (EngineConfig(threads=2), EngineConfig("dask", threads=2)):
        streamed = source(files, count, cuts, batch, workers)
        assert answer(question, method, group, streamed) == expected
