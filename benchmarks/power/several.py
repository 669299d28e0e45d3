"""Power of tests of several groups beside the private ANOVA of Swanberg et al. (2019).

Three groups of equal size with means .35, .5 and .65, deviation .15, clipped to [0, 1]: the
problem of Swanberg et al. and of Couch et al. (2019). Their F1 = (SA/(k-1))/(SE/(N-k)) with
absolute values: SA moves by 4 and SE by 3, 0.7 of epsilon for SA; its law is simulated from the
released spread. ``kruskal`` is the absolute Kruskal–Wallis test of Couch et al.

Run: python -m benchmarks.power.several [--runs 300]. Writes results/power-several.json
after each cell; f_oneway with 199 draws of its bootstrap.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

import privatest as pt
from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise

Floats = NDArray[np.float64]
MEANS, SPREAD, GROUPS = (0.35, 0.5, 0.65), 0.15, 3
CASES = [(0.1, 100), (0.1, 200), (0.1, 400), (1.0, 10), (1.0, 20), (1.0, 40), (10.0, 5), (10.0, 8)]
SHARE, REFERENCE = 0.7, 999


def absolute_sums(values: Floats) -> tuple[Floats, Floats]:
    """SA and SE of draws × groups × rows."""
    size = values.shape[-1]
    means = values.mean(axis=-1)
    middle = values.mean(axis=(-1, -2))[..., None]
    between = size * np.abs(means - middle).sum(axis=-1)
    return between, np.abs(values - means[..., None]).sum(axis=(-1, -2))


def swanberg(groups: Floats, epsilon: float, rng: np.random.Generator) -> float:
    """Return the p-value of F1."""

    def noisy(values: Floats) -> tuple[Floats, Floats]:
        between, within = absolute_sums(values)
        shape = np.shape(between)
        return (
            between + rng.laplace(scale=4 / (SHARE * epsilon), size=shape),
            within + rng.laplace(scale=3 / ((1 - SHARE) * epsilon), size=shape),
        )

    def ratio(between: Floats, within: Floats) -> Floats:
        freedom = groups.size - GROUPS
        spread = np.where(within > 0, within / freedom, 1.0)
        # noise may leave no spread: that is no evidence, here and in the reference
        return np.where(within > 0, (between / (GROUPS - 1)) / spread, 0.0)

    between, within = noisy(groups[None])
    spread = np.sqrt(np.pi / 2) * max(float(within[0]), 0.0) / (groups.size - GROUPS)
    if spread == 0:
        return 1.0
    null = rng.normal(0.5, spread, size=(REFERENCE, *groups.shape))
    draws = ratio(*noisy(null))
    return float((1 + np.sum(draws >= ratio(between, within)[0])) / (REFERENCE + 1))


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    rows: list[dict[str, Any]] = []
    for epsilon, n in track(CASES, description="power"):
        for shift, means in (("none", (0.5,) * GROUPS), ("means", MEANS)):
            rejected = dict.fromkeys(("f_oneway", "kruskal", "swanberg"), 0)
            for seed in range(runs):
                rng = np.random.default_rng([seed, n])
                drawn = rng.normal(np.array(means)[:, None], SPREAD, size=(GROUPS, n))
                groups = np.clip(drawn, 0, 1)
                options: Any = {"epsilon": epsilon, "rng": seed, "noise": SimulatedNoise(seed)}
                own: Any = {"bounds": (0, 1), "n_bootstrap": 199}
                found = {
                    "f_oneway": pt.f_oneway(*groups, **own, **options).pvalue,
                    "kruskal": pt.kruskal(*groups, n_resamples=999, **options).pvalue,
                    "swanberg": swanberg(groups, epsilon, rng),
                }
                for name, pvalue in found.items():
                    rejected[name] += pvalue <= 0.05
            shares = {name: count / runs for name, count in rejected.items()}
            rows.append({"epsilon": epsilon, "n_each": n, "shift": shift} | shares)
            save("power-several", {"runs": runs, "rows": rows})
    print_table(f"power ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
