"""Speed of ks_2samp against SciPy and against Monte Carlo p-values, in one run, as ratios."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import best_time, save, start
from benchmarks.report import print_table
from privatest.methods.ks import ks_2samp, two_sample_law

REPLICATES = 100_000
TIMED = 2_000  # replicates that are timed: they all cost the same


def monte_carlo(n: int, rng: np.random.Generator) -> float:
    """Seconds for 100,000 replicates of T* + N*, extrapolated; sorted uniforms, vectorised."""

    def replicate(count: int) -> NDArray[np.float64]:
        labels = np.tile(np.repeat([1, -1], n), (count, 1))
        rng.permuted(labels, axis=1, out=labels)
        distances = np.abs(np.cumsum(labels, axis=1)).max(axis=1)
        geometric = rng.geometric(1 - np.exp(-1), size=(2, count))
        noisy: NDArray[np.float64] = distances + geometric[0] - geometric[1] + rng.random(count)
        return noisy

    return best_time(lambda: replicate(TIMED), 2) * REPLICATES / TIMED


def main() -> None:
    """Measure, print the table, write the JSON."""
    from scipy.stats import ks_2samp as scipy_ks_2samp  # noqa: PLC0415

    rng = np.random.default_rng(0)
    rows: list[list[object]] = []
    x, y = rng.standard_normal((2, 1_000_000))
    ks_2samp(x[:10], y[:10], epsilon=1)  # imports
    base = best_time(lambda: scipy_ks_2samp(x, y, method="asymp"), 3)
    seconds = best_time(lambda: ks_2samp(x, y, epsilon=1), 3)
    rows.append(["n = m = 1,000,000 over scipy (asymp)", seconds, seconds / base, "at most 2.5"])

    def cold() -> object:
        two_sample_law.cache_clear()
        return ks_2samp(x[:1000], y[:1000], epsilon=1)

    seconds = best_time(cold, 5)
    rows.append(["n = m = 1000, law and all, in s", seconds, seconds, "below .05"])
    ratio = monte_carlo(1000, rng) / seconds
    rows.append(["the same against Monte Carlo", seconds, ratio, "at least 50"])
    for statistic, n, m in (("ks", 1000, 1500), ("kuiper", 1000, 1500), ("ks", 1000, 1501)):
        start = time.perf_counter()
        two_sample_law(statistic, n, m)
        rows.append([f"law of {statistic}, {n} and {m}", time.perf_counter() - start, None, None])
    print_table("ks_2samp", ["case", "seconds", "value", "asked for"], rows)
    save(
        "speed-ks",
        [dict(zip(("case", "seconds", "value", "target"), r, strict=True)) for r in rows],
    )


if __name__ == "__main__":
    start(main, __doc__)
