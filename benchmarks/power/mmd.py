"""Power of mmd_test: the perturbed uniform of Kim and Schrab (2023), features, private groups.

Their published curves are beside ours in `privatest reproduce show kim-schrab-2`.
Run: python -m benchmarks.power.mmd [--runs 400] [--part bumps|features|groups]
Writes results/power-mmd-*.json.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # runs are parallel, not their algebra

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise
from privatest_papers.samplers import perturbed_uniform


@dataclass(frozen=True)
class Case:
    """One point of a power curve."""

    label: str
    alternative: str
    n: int
    epsilon: float
    dimension: int = 1
    strength: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    target: float | None = None


def draw(case: Case, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the second sample; the first is uniform."""
    shape = (case.n, case.dimension)
    uniform = rng.uniform(size=shape)
    makers: dict[str, Callable[[], NDArray[np.float64]]] = {
        "none": lambda: uniform,
        "1 bump": lambda: perturbed_uniform(*shape, case.strength, rng, 1),
        "2 bumps": lambda: perturbed_uniform(*shape, case.strength, rng, 2),
        "3 bumps": lambda: perturbed_uniform(*shape, case.strength, rng, 3),
        "beta": lambda: uniform ** (1 / case.strength),
        "shrunk": lambda: 0.5 + (uniform - 0.5) * case.strength,
        "dependent": lambda: _dependent(uniform, case.strength, rng),
    }
    return makers[case.alternative]()


def _dependent(
    uniform: NDArray[np.float64], share: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Every column equals the first one for a share of the rows."""
    rows = uniform.copy()
    equal = rng.uniform(size=len(rows)) < share
    rows[equal] = rows[equal, :1]
    return rows


def rejects(job: tuple[Case, int]) -> bool:
    """Run one test with simulated noise."""
    case, seed = job
    rng = np.random.default_rng([seed, case.n, case.dimension])
    x, y = rng.uniform(size=(case.n, case.dimension)), draw(case, rng)
    options = {"release": "decision"} | case.options
    result = pt.mmd_test(
        x, y, epsilon=case.epsilon, bounds=(0, 1), rng=seed, noise=SimulatedNoise(seed), **options
    )
    return result.reject


def bump_cases() -> list[Case]:
    """The figures that default arguments must reach."""
    asked = {
        ("1 bump", 0.2): (0.50, 0.85, 0.97),
        ("2 bumps", 0.35): (0.75, 0.95, 0.99),
        ("3 bumps", 0.5): (0.80, 0.97, 0.99),
    }
    cases = [
        Case(f"{name}, amplitude {strength}", name, 3000, epsilon, 1, strength, target=target)
        for (name, strength), targets in asked.items()
        for epsilon, target in zip((0.05, 0.1, 0.3), targets, strict=True)
    ]
    return cases + [
        Case("Beta(1.12, 1)", "beta", 2000, epsilon, 1, 1.12, target=target)
        for epsilon, target in ((0.1, 0.27), (0.3, 0.66), (1.0, 0.76))
    ]


def feature_cases() -> list[Case]:
    """Features against the exact kernel, pairwise."""
    scenarios = [
        ("1 bump", 1, 0.1, 0.15),
        ("3 bumps", 1, 0.05, 0.4),
        ("1 bump", 2, 0.1, 0.4),
        ("beta", 2, 0.2, 1.08),
        ("beta", 5, 0.3, 1.07),
        ("dependent", 5, 0.5, 0.05),
        ("beta", 10, 0.5, 1.04),
        ("dependent", 10, 0.5, 0.04),
        ("shrunk", 10, 1.0, 0.95),
    ]
    return [
        Case(name, name, 3000, epsilon, dimension, strength, {"method": method})
        for name, dimension, epsilon, strength in scenarios
        for method in ("exact", "nystrom")
    ]


def group_cases() -> list[Case]:
    """What private group membership costs."""
    return [
        Case(f"1 bump, {adjacency}, {release}", "1 bump", 3000, epsilon, 1, 0.2, options)
        for adjacency in ("one", "row")
        for release in ("decision", "pvalue")
        for epsilon in (0.1, 0.3, 1.0)
        for options in ({"adjacency": adjacency, "release": release},)
    ]


PARTS: dict[str, Callable[[], list[Case]]] = {
    "bumps": bump_cases,
    "features": feature_cases,
    "groups": group_cases,
}


def measure(part: str, runs: int) -> list[dict[str, Any]]:
    """Measure the power of every case of a part."""
    rows = []
    with ProcessPoolExecutor() as pool:
        for case in track(PARTS[part](), description=part):
            power = float(
                np.mean(list(pool.map(rejects, [(case, s) for s in range(runs)], chunksize=8)))
            )
            rows.append(
                {
                    "case": case.label,
                    "n": case.n,
                    "dimension": case.dimension,
                    "epsilon": case.epsilon,
                    "method": case.options.get("method", "auto"),
                    "power": power,
                    "standard_error": (power * (1 - power) / runs) ** 0.5,
                    "compared_with": case.target,
                }
            )
    save(f"power-mmd-{part}", {"runs": runs, "rows": rows})
    print_table(f"power, {part} ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])
    return rows


def main() -> None:
    """Measure the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--part", choices=list(PARTS), action="append")
    arguments = parser.parse_args()
    for part in arguments.part or list(PARTS):
        measure(part, arguments.runs)


if __name__ == "__main__":
    main()
