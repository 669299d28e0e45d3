"""Time and memory of a call, and where results are kept."""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

RESULTS = Path(__file__).parent / "results"


def best_time(call: Callable[[], object], repeats: int) -> float:
    """Shortest of some runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def processor_time(call: Callable[[], object], repeats: int) -> float:
    """Least processor time of some runs, in seconds: all threads, whatever else is running."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def peak_memory(call: Callable[[], object]) -> int:
    """Most bytes of resident memory above those at the start."""
    process = psutil.Process()
    start = peak = process.memory_info().rss
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        done.set()
        watcher.join()
    return int(max(peak, process.memory_info().rss) - start)


def start(main: Callable[[], None], about: str | None) -> None:
    """Run a benchmark that takes no options; ``--help`` says what it measures, and runs nothing."""
    argparse.ArgumentParser(description=about).parse_args()
    main()


def save(name: str, result: Any) -> None:
    """Write a result as JSON beside the benchmarks."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def stored(name: str, runs: int) -> list[dict[str, Any]]:
    """Return the cells that were measured before with as many runs."""
    path = RESULTS / f"{name}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    rows: list[dict[str, Any]] = found["rows"] if found.get("runs") == runs else []
    return rows


def missing(rows: list[dict[str, Any]], case: dict[str, Any]) -> bool:
    """Whether a cell is still to be measured."""
    return not any(case.items() <= row.items() for row in rows)
