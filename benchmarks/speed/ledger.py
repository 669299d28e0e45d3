"""How many requests a ledger takes a second, and how quickly a long one is shown.

What is granted must be on the disk first, so the figures depend on how long the disk takes to
say so; that time is measured too, and the same work is timed on a file system in memory.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import best_time, save, start
from benchmarks.report import print_table
from privatest.accounting import Pure
from privatest.core.privacy import Budget
from privatest.ledger import Ledger
from privatest.ledger.state import Spent, Sums, canonical, digest

PAIRS = 400
MANY_PAIRS = 4000  # of several clients, so that opening the ledger does not count
LONG = 1_000_000
EACH = Pure("0.001")
MEMORY = Path("/dev/shm")


def flush_time(folder: Path) -> float:
    """Median seconds until the disk says that a page is written."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    return sorted(times)[25]


def pairs(location: str, dataset: str, count: int) -> None:
    with Ledger.open(location) as ledger:
        for _ in range(count):
            ledger.commit(ledger.reserve(dataset, EACH), released={"reject": True})


def rate(location: str, clients: int, datasets: int) -> float:
    """Reserve/commit pairs a second, by some clients on some data sets."""
    names = [f"{os.urandom(4).hex()}{i}" for i in range(datasets)]
    with Ledger.open(location, create=True) as ledger:
        for name in names:
            ledger.create_dataset(name, Budget(10**6))
    if clients == 1:
        pairs(location, names[0], 10)
        return PAIRS / best_time(lambda: pairs(location, names[0], PAIRS), 2)
    with multiprocessing.get_context("spawn").Pool(clients) as pool:
        work = [(location, names[i % datasets], MANY_PAIRS // clients) for i in range(clients)]
        pool.starmap(pairs, [(location, name, 2) for _, name, _ in work], chunksize=1)  # imports
        seconds = best_time(lambda: pool.starmap(pairs, work, chunksize=1), 2)
    return MANY_PAIRS / seconds


def long_ledger(path: Path) -> None:
    """Write a ledger of a million entries, as reserve would, but without waiting for the disk."""
    with Ledger.open(path, create=True) as ledger:
        ledger.create_dataset("long", Budget(10**6))
        head, now = ledger.totals("long").head, ledger.totals("long").time
    known = Spent.on(EACH, Budget(EACH.epsilon))
    many = LONG - 1
    total = Spent(known.epsilon * many, known.delta, known.rho * many, known.rho_delta, many)
    last, rows = head.hash, []
    event = {"kind": "pure", "epsilon": "0.001"}
    fixed = {"dataset": "long", "kind": "reserved", "event": event, "epsilon": "0.001"}
    for sequence in range(2, LONG + 1):
        key = f"{sequence:032x}"
        body = canonical(fixed | {"delta": "0", "opens": key, "sequence": sequence, "time": now})
        last = digest(last, body)
        rows.append((1, sequence, "reserved", key, None, None, body, last))
    connection = sqlite3.connect(path)
    connection.executemany("INSERT INTO privatest_entries VALUES (?,?,?,?,?,?,?,?)", rows)
    connection.execute(
        "UPDATE privatest_datasets SET sequence = ?, hash = ?, sums = ?",
        (LONG, last, canonical(Sums(total).to_dict())),
    )
    connection.commit()
    connection.close()


def measured() -> Iterator[tuple[str, float, str | None]]:
    """What was measured, its value, what was asked for."""
    from tests.e2e import postgres  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        yield "one flush of the disk, in ms", 1e3 * flush_time(Path(folder)), None
        yield "SQLite, pairs a second", rate(f"{folder}/a.db", 1, 1), "at least 200"
        if MEMORY.is_dir():
            with tempfile.TemporaryDirectory(dir=MEMORY) as memory:
                start = time.process_time()
                figure = rate(f"{memory}/a.db", 1, 1)
                used = (time.process_time() - start) / (2 * PAIRS)
                yield "the same in memory (no disk to wait for)", figure, None
                yield "processor time of a pair, in ms", 1e3 * used, None
        if postgres.binaries() is not None:
            with postgres.server() as server:
                for datasets in (1, 8):
                    figure = rate(server.database(f"bench{datasets}"), 8, datasets)
                    title = f"PostgreSQL, 8 clients, {datasets} data sets, pairs a second"
                    yield title, figure, "at least 500"
        path = Path(folder) / "long.db"
        long_ledger(path)
        with Ledger.open(path) as ledger:
            shown = best_time(lambda: (ledger.totals("long"), ledger.history("long")), 3)
            yield f"totals and last entries of {LONG:,}, in s", shown, "below 1"
            yield f"verify {LONG:,} entries, in s", best_time(ledger.verify, 1), None
        more = best_time(lambda: pairs(str(path), "long", 100), 1)
        yield "pairs a second after a million", 100 / more, None


def main() -> None:
    """Measure, print the table, write the JSON."""
    rows = []
    for row in measured():
        print(*row, flush=True)
        rows.append(row)
    print_table("ledger", ["case", "value", "asked for"], rows)
    names = ("case", "value", "target")
    save("speed-ledger", [dict(zip(names, row, strict=True)) for row in rows])


if __name__ == "__main__":
    start(main, __doc__)
