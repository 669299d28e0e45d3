"""A private second moment by its entries, or by eigenvalues and axes: which is nearer?

Both as shipped, at the same epsilon, on second moments of rows in [-1, 1]^d: root mean square
error in the Frobenius norm, relative to that of the matrix. Then level and power of
``hotelling_test`` with either, for two and three columns.

Run: python -m benchmarks.power.covariance [--runs 60] [--test-runs 100]. Writes
results/power-covariance.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.mechanisms import moments as release
from privatest.mechanisms.additive import entries_scale, entry_noise
from privatest.mechanisms.covariance import assembled, ed_replicates, ed_scales
from privatest.mechanisms.moments import nearest_psd
from privatest.noise import SimulatedNoise

Floats = NDArray[np.float64]
EPSILON, SIZES, COLUMNS = 0.3, (100, 1000, 10_000, 100_000), (2, 3, 5, 10)
TESTS = (("equal", 300, 0.08), ("correlated", 2000, 0.015), ("off centre", 2000, 0.015))


def covariances(dimension: int) -> Iterator[tuple[str, Floats]]:
    """Equal variances, wide and narrow; falling ones; correlated columns."""
    yield "equal variances, .3²", 0.09 * np.eye(dimension)
    yield "equal variances, .05²", 0.0025 * np.eye(dimension)
    yield "halved from .25 on", np.diag(np.maximum(0.25 * 0.5 ** np.arange(dimension), 0.002))
    yield "correlations .8^|i-j|", 0.09 * _correlations(dimension)


def _correlations(dimension: int) -> Floats:
    places = np.arange(dimension)
    found: Floats = 0.8 ** np.abs(np.subtract.outer(places, places))
    return found


def errors(matrix: Floats, n: int, runs: int, rng: np.random.Generator) -> tuple[float, float]:
    """Relative error by eigenvalues and axes, and by entries."""
    dimension, many = len(matrix), np.repeat(matrix[None], runs, axis=0)
    unit = dimension / n
    by_axes = unit * assembled(
        *ed_replicates(many / unit, ed_scales(n, dimension, epsilon=EPSILON), rng)
    )
    noise = entry_noise(dimension, entries_scale(n, epsilon=EPSILON), runs, rng)
    size = float(np.linalg.norm(matrix))

    def error(found: Floats) -> float:
        return float(np.sqrt(np.square(found - matrix).sum(axis=(1, 2)).mean())) / size

    return error(by_axes), error(nearest_psd(many + noise))


def rows(law: str, dimension: int, n: int, shift: float, rng: np.random.Generator) -> Floats:
    """Draw a sample for a test."""
    x = rng.normal(size=(n, dimension))
    if law == "correlated":
        x = x @ np.linalg.cholesky(_correlations(dimension)).T
    x = 0.5 + 0.06 * x if law == "off centre" else 0.3 * x
    return np.clip(x + shift * np.where(np.arange(dimension) % 2, -1, 1), -1, 1)


def rate(law: str, dimension: int, n: int, shift: float, runs: int) -> float:
    """How often ``hotelling_test`` rejects at epsilon 1."""
    rng, rejected = np.random.default_rng(1000 * dimension + n), 0
    for seed in range(runs):
        x, y = (rows(law, dimension, n, by, rng) for by in (0.0, shift))
        noise: Any = {"noise": SimulatedNoise(seed), "rng": seed, "n_bootstrap": 199}
        bounds = [(-1, 1)] * dimension
        rejected += pt.hotelling_test(x, y, bounds=bounds, epsilon=1, **noise).reject
    return rejected / runs


def rejection_rates(runs: int) -> list[dict[str, Any]]:
    """Level and power with either mechanism."""
    found, kept = [], release.ENTRIES_UP_TO
    for dimension in (2, 3):
        for law, n, shift in TESTS:
            row: dict[str, Any] = {"columns": dimension, "law": law, "n": n}
            for name, up_to in (("axes", 1), ("entries", kept)):
                release.ENTRIES_UP_TO = up_to
                row[name] = [rate(law, dimension, n, by, runs) for by in (0.0, shift)]
            print(row, flush=True)
            found.append(row)
    release.ENTRIES_UP_TO = kept
    return found


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--test-runs", type=int, default=100)
    options, rng = parser.parse_args(), np.random.default_rng(0)
    cells: list[dict[str, Any]] = []
    for dimension in COLUMNS:
        for name, matrix in covariances(dimension):
            found = {str(n): errors(matrix, n, options.runs, rng) for n in SIZES}
            cells.append({"columns": dimension, "covariance": name, "errors": found})
    shown = [
        [cell["columns"], cell["covariance"], *(a / b for a, b in cell["errors"].values())]
        for cell in cells
    ]
    title = "error by eigenvalues and axes over that by entries"
    print_table(title, ("columns", "covariance", *map(str, SIZES)), shown)
    result = {"epsilon": EPSILON, "runs": options.runs, "errors": cells}
    save("power-covariance", result)
    result |= {"test runs": options.test_runs, "tests": rejection_rates(options.test_runs)}
    save("power-covariance", result)


if __name__ == "__main__":
    main()
