"""Speed of ks_family: the whole call, secure noise and all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measure import best_time, save, start
from benchmarks.report import print_table
from privatest.methods.fit_families import FamilyStatistic, ks_family

TARGET = 0.5  # seconds, normal, KS, n = 100,000


def call(n: int, family: str, statistic: FamilyStatistic) -> Callable[[], object]:
    """Return a test of normal data."""
    x = np.random.default_rng(n).normal(size=n)
    return lambda: ks_family(x, family, bounds=(-10, 10), epsilon=1, statistic=statistic)


def main() -> None:
    """Measure, print the table, write the JSON."""
    call(100, "norm", "ks")()  # imports and caches
    rows: list[list[object]] = []
    for n in (1_000, 10_000, 100_000):
        for family, statistic in (("norm", "ks"), ("laplace", "ks"), ("norm", "kuiper")):
            seconds = best_time(call(n, family, statistic), 3)  # type: ignore[arg-type]
            asked = TARGET if (n, family, statistic) == (100_000, "norm", "ks") else None
            rows.append([f"{family}, {statistic}, n = {n:,}", seconds, asked])
    print_table("ks_family on normal data", ["case", "seconds", "at most"], rows)
    save(
        "speed-family",
        [dict(zip(("case", "seconds", "target"), row, strict=True)) for row in rows],
    )


if __name__ == "__main__":
    start(main, __doc__)
