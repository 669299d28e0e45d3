"""Measure how long answers take, on made-up rows.

No private row is read and nothing is spent: a response time that followed from the data would
reveal it. Made-up rows are written to a file of the same kind and registered with a curator of
their own. Each method that a data set offers is then asked through the same workers, with as many
columns as it takes, since more columns take longer.
"""

from __future__ import annotations

import gzip
import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError
from privatest.curator.admission import categories_of
from privatest.curator.config import CuratorConfig, DatasetConfig
from privatest.curator.curator import Curator
from privatest.curator.registration import Registration, load_registrations, made_up_rows
from privatest.curator.timing import MethodTime, ResponseTimes, Sizes
from privatest.curator.worker_pool import WorkerPool
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema, toml_key
from privatest.ledger import Ledger
from privatest.requests.catalogue import METHODS

if TYPE_CHECKING:
    import pyarrow as pa

RUNS = 5
_PRICES = (0.1, 1.0)  # some tests take another way for a small epsilon
_ANALYST = "custodian"
_QUESTIONS_OF_A_LEDGER = 8  # about so many waits for a server in one request
# What methods need that no schema says.
_OPTIONS: Mapping[str, Any] = {
    "locations": 20,
    "low": -1,
    "high": 1,
    "points": 500,
}


Document = dict[str, Any]


def example_requests(dataset: DatasetConfig, rows: int) -> dict[str, list[list[Document]]]:
    """Return requests without a price, by question/method.

    Of each there are alternatives, the largest first: which of them suits is known when it is
    rehearsed. A test of two groups is there twice, for public and for private groups.
    """
    found: dict[str, list[list[Document]]] = {}
    for question, method in sorted(dataset.policy.tests):
        head = {"dataset": dataset.name, "question": question, "method": method}
        kinds = ("public", "private") if question == "two-sample" else ("",)
        found[f"{question}/{method}"] = [
            [
                {**head, **parts, **_options(question, method, dataset, parts, rows)}
                for parts in _parts(question, method, dataset.schema, kind)
            ]
            for kind in kinds
        ]
    return found


def _options(
    question: str, method: str, dataset: DatasetConfig, parts: Mapping[str, Any], rows: int
) -> Document:
    entry = METHODS[question][method]
    usual = {**_OPTIONS, "points": min(_OPTIONS["points"], dataset.policy.points, rows)}
    wanted = {*entry.needed, *({"points"} & entry.options.keys())}
    options = {name: usual[name] for name in wanted if name in usual}
    if entry.outcomes:
        column = dataset.schema.columns[parts["columns"][0]]
        options["success"] = (
            column.upper
            if isinstance(column, NumericColumn)
            else categories_of(dataset.schema, parts["columns"][0])[0]
        )
    return options


def _parts(question: str, method: str, schema: Schema, kind: str) -> Iterator[Document]:
    """Yield columns in the parts of a question."""
    numeric = [n for n, c in schema.columns.items() if isinstance(c, NumericColumn)]
    categorical = [n for n in schema.columns if n not in numeric]
    everything = [*numeric, *categorical]
    if question == "two-sample":
        yield from _two_sample(schema, numeric, categorical, kind)
    elif question == "independence":
        half = max(len(numeric) // 2, 1)
        sides = [(numeric[:half], numeric[half:]), (numeric[:1], numeric[1:2])]
        sides += [(categorical[:1], categorical[1:2]), (everything[:1], everything[1:])]
        if METHODS[question][method].part:
            yield {"x": everything[:1], "y": everything[1:2], "given": everything[2:]}
            return
        yield from ({"x": x, "y": y} for x, y in sides if x and y)
    elif question == "paired":
        yield from ({"before": a, "after": b} for a, b in pairwise(numeric))
    elif question == "fit":
        yield from _fit(method, schema, numeric, categorical)
    else:
        for columns in (everything, numeric, numeric[:1], categorical[:1]):
            if columns:
                yield {"columns": columns}


def _two_sample(
    schema: Schema, numeric: list[str], categorical: list[str], kind: str
) -> Iterator[Document]:
    for group in [n for n in categorical if _membership(schema, n) == kind][:1]:
        labels = categories_of(schema, group)[:2]
        others = [n for n in categorical if n != group]
        for columns in ([*numeric, *others], numeric, numeric[:1], others[:1]):
            if columns:
                yield {"group": group, "groups": labels, "columns": columns}


def _membership(schema: Schema, name: str) -> str:
    column = schema.columns[name]
    assert isinstance(column, CategoricalColumn)
    return column.membership


def _fit(
    method: str, schema: Schema, numeric: list[str], categorical: list[str]
) -> Iterator[Document]:
    for name in numeric:
        column = schema.columns[name]
        assert isinstance(column, NumericColumn)
        width = column.upper - column.lower
        dist = {"dist": f"uniform({column.lower}, {width})"}
        family = METHODS["fit"][method].part == "family"
        yield {"column": name, **({"family": "norm"} if family else dist)}
    for name in categorical:
        yield {"column": name, "shares": "equal"}


def calibrate(
    config: CuratorConfig,
    names: Iterable[str] = (),
    *,
    runs: int = RUNS,
    progress: Callable[[float], None] | None = None,
) -> ResponseTimes:
    """Measure every offered method of data sets, and keep the response times.

    Parameters
    ----------
    config : CuratorConfig
        The curator's file.
    names : iterable of str
        Data sets; none means all that are registered.
    runs : int
        How often each is measured; the longest counts.
    progress : callable, optional
        Is told the finished share.
    """
    known = load_registrations(config.state)
    wanted = list(names) or [name for name in config.datasets if name in known]
    for name in wanted:
        if name not in config.datasets or name not in known:
            raise ParameterError(f"dataset must be one that is registered; got {name!r}.")
    before = ResponseTimes.load(config.times)
    waits = _waits(config)
    measured: dict[str, Mapping[str, MethodTime]] = {}
    for place, name in enumerate(wanted):

        def told(share: float, place: int = place) -> None:
            if progress is not None:
                progress((place + share) / len(wanted))

        found = _measured(config.datasets[name], known[name], runs, told)
        measured[name] = {
            which: replace(each, seconds=each.seconds + waits) for which, each in found.items()
        }
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = {"processors": os.cpu_count(), "python": platform.python_version()}
    times = ResponseTimes(date, machine, {**before.datasets, **measured})
    times.save(config.times)
    return times


def _measured(
    dataset: DatasetConfig,
    registration: Registration,
    runs: int,
    progress: Callable[[float], None],
) -> dict[str, MethodTime]:
    """Measure one data set's methods; those that suit no columns are left out."""
    found: dict[str, MethodTime] = {}
    with tempfile.TemporaryDirectory() as name:
        path = _write_curator(Path(name), dataset, made_up_rows(registration, dataset.schema))
        with Curator.open(path, create=True) as curator:
            made_up = curator.register(dataset.name)
            with WorkerPool(path, count=1, public_times=False) as workers:
                everything = example_requests(curator.config.datasets[dataset.name], made_up.rows)
                for place, (which, series) in enumerate(everything.items()):
                    times = [_longest(workers, curator, made_up, each, runs) for each in series]
                    known = [each for each in times if each is not None]
                    if known:
                        found[which] = max(known, key=lambda each: each.seconds)
                    progress((place + 1) / len(everything))
    return found


def _longest(
    workers: WorkerPool,
    curator: Curator,
    registration: Registration,
    alternatives: list[Document],
    runs: int,
) -> MethodTime | None:
    """Return the longest time of the first request that suits."""
    for document in alternatives:
        times = list(_times(workers, document, runs))
        if times:
            prepared = curator.prepared(with_price(document, 0), analyst=_ANALYST)
            return MethodTime(max(times), Sizes.of(prepared, registration))
    return None


def _times(workers: WorkerPool, document: Document, runs: int) -> Iterator[float]:
    for run in range(runs):
        start = time.monotonic()
        if workers.run(with_price(document, run), analyst=_ANALYST).kind == "answer":
            yield time.monotonic() - start


def with_price(document: Document, run: int) -> Document:
    """Add a price; another one each time, since an answer on record takes no time."""
    entry = METHODS[document["question"]][document["method"]]
    epsilon = _PRICES[run % len(_PRICES)] + run * 1e-6
    return {**document, "epsilon": epsilon, "delta": 1e-6 if entry.needs_delta else 0}


def _waits(config: CuratorConfig) -> float:
    """Return how long a request waits for the ledger's server; a file is measured with the rest."""
    if "://" not in config.ledger:
        return 0.0
    start = time.monotonic()
    with Ledger.open(config.ledger) as ledger:
        ledger.datasets()
    return _QUESTIONS_OF_A_LEDGER * (time.monotonic() - start)


# --- a curator of made-up rows --------------------------------------------------------------------


def _write_curator(folder: Path, dataset: DatasetConfig, rows: pa.Table) -> Path:
    """Write a curator's file, a schema and made-up rows of the same kind."""
    source = _write(folder, dataset, rows)
    (folder / "schema.toml").write_text(dataset.schema.to_toml(), encoding="utf-8")
    name, policy, workers = toml_key(dataset.name), dataset.policy, dataset.workers
    tests = ", ".join(f'"{question}/{method}"' for question, method in sorted(policy.tests))
    lines = [
        f"[datasets.{name}]",
        *(f'{key} = "{value}"' for key, value in source.items()),
        'schema = "schema.toml"',
        "epsilon = 1000000",
        "delta = 0.5",
        *([] if workers is None else [f'engine = "{workers.engine}"']),
        *([] if workers is None or not workers.threads else [f"threads = {workers.threads}"]),
        f"[datasets.{name}.policy]",
        f"tests = [{tests}]",
        f"largest_permutations = {policy.permutations}",
        f"largest_points = {policy.points}",
        f"largest_work = {policy.work}",
        f"[analysts.{_ANALYST}]",
        f'datasets = ["{dataset.name}"]',
    ]
    path = folder / "curator.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _write(folder: Path, dataset: DatasetConfig, rows: pa.Table) -> dict[str, str]:
    """Write rows as the source has them; a folder as one file, a server's table as a file's."""
    from pyarrow import csv, feather, parquet  # noqa: PLC0415

    text = str(dataset.source).lower()
    if dataset.place.is_database:
        return _write_table(folder, rows)
    packed = text.endswith(".gz")
    ending = Path(text.removesuffix(".gz")).suffix
    if ending not in (".csv", ".tsv", ".arrow", ".feather"):
        parquet.write_table(rows, folder / "rows.parquet")
        return {"source": "rows.parquet"}
    path = folder / f"rows{ending}{'.gz' if packed else ''}"
    if ending in (".arrow", ".feather"):
        feather.write_feather(rows, path, compression="uncompressed")
        return {"source": path.name}
    options = csv.WriteOptions(delimiter="\t" if ending == ".tsv" else ",")
    with gzip.open(path, "wb") if packed else path.open("wb") as file:
        csv.write_csv(rows, file, options)
    return {"source": path.name}


def _write_table(folder: Path, rows: pa.Table) -> dict[str, str]:
    names = ", ".join(f'"{name}"' for name in rows.column_names)
    places = ", ".join("?" * rows.num_columns)
    with closing(sqlite3.connect(folder / "rows.db")) as database:
        database.execute(f"CREATE TABLE rows ({names})")
        values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        database.executemany(f"INSERT INTO rows VALUES ({places})", values)
        database.commit()
    return {"source": "sqlite:///rows.db", "table": "rows"}
