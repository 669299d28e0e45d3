"""Power of hotelling_test on the data of Dunsche, Kutta and Dette (2022), section 4, with a = 1.

Against the paper's constants, and against one private t-test for each of ten columns with
Bonferroni's correction at the same total epsilon.

Run: python -m benchmarks.power.hotelling [--runs 200]. Writes results/power-hotelling.json after
every cell, goes on from there when it is started again, and draws results/power-hotelling.png.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

from typing import Any

import numpy as np
from rich.progress import track

from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.methods.means import hotelling_test, ttest_ind
from privatest.noise import SimulatedNoise
from privatest_papers.dunsche import hotelling_decision
from privatest_papers.samplers import cubes

ALPHA, REPLICATES, DELTA = 0.05, 999, 1e-6
NAME = "power-hotelling"
# dimension, n, epsilon and the power that is asked for
TARGETS = {(10, 300, 1.0): 0.75, (10, 3000, 0.1): 0.9, (30, 1000, 1.0): 0.9}
CURVE = (100, 150, 200, 300, 500, 800, 1500)  # sizes at d = 10, epsilon 1

Case = tuple[str, int, int, float]


def rejects(case: Case, seed: int) -> bool:
    """Run one test."""
    method, dimension, n, epsilon = case
    rng = np.random.default_rng([seed, dimension, n])
    x, y, reach = cubes(dimension, n, rng, apart=1.0)
    noise = SimulatedNoise(seed)
    if method == "paper":
        return hotelling_decision(x, y, bound=reach, epsilon=epsilon, rng=seed, noise=noise)
    common: dict[str, Any] = {"bounds": (-reach, reach), "rng": seed, "noise": noise}
    if method == "t-tests":
        common |= {"epsilon": epsilon / dimension, "alpha": ALPHA / dimension}
        common |= {"n_bootstrap": REPLICATES}
        tests = (ttest_ind(x[:, j], y[:, j], **common) for j in range(dimension))
        return any(test.reject for test in tests)
    delta = DELTA if method == "gaussian" else 0.0
    common |= {"epsilon": epsilon, "delta": delta, "alpha": ALPHA, "n_bootstrap": REPLICATES}
    return hotelling_test(x, y, **common).reject


def cases() -> list[Case]:
    """What the issue asks for, then the curves."""
    asked = [(method, *cell) for cell in TARGETS for method in ("pure", "gaussian", "paper")]
    curves = [(method, 10, n, 1.0) for n in CURVE for method in ("pure", "gaussian", "t-tests")]
    return list(dict.fromkeys([*asked, *curves]))


def draw(done: dict[str, Any]) -> None:
    """Draw power against size for the tests of ten columns."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    names = {
        "pure": "Hotelling",
        "gaussian": f"Hotelling, delta = {DELTA:g}",
        "t-tests": "ten t-tests, Bonferroni",
    }
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for method, name in names.items():
        powers = [done[key((method, 10, n, 1.0))]["power"] for n in CURVE]
        axes.plot(CURVE, powers, "o-", label=name)
    axes.set(xscale="log", xlabel="rows in each sample", ylabel="power", ylim=(-0.02, 1.02))
    axes.set_title("ten columns, means 1 apart, epsilon = 1 in all")
    axes.legend()
    figure.savefig(RESULTS / f"{NAME}.png", dpi=120)


def key(case: Case) -> str:
    """Name of a case in the JSON file."""
    method, dimension, n, epsilon = case
    return f"{method} d={dimension} n={n} epsilon={epsilon:g}"


def main() -> None:
    """Measure every case that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    path = RESULTS / f"{NAME}.json"
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for case in track(cases(), description="power"):
        known = done.get(key(case), {})
        if known.get("runs", 0) >= runs and known.get("replicates") == REPLICATES:
            continue
        rate = float(np.mean([rejects(case, seed) for seed in range(runs)]))
        asked = TARGETS.get(case[1:]) if case[0] == "pure" else None
        done[key(case)] = {
            "power": rate,
            "runs": runs,
            "asked": asked,
            "replicates": REPLICATES,
        }
        save(NAME, done)
    rows = [[name, entry["runs"], entry["power"], entry["asked"]] for name, entry in done.items()]
    print_table("power, a = 1", ["case", "runs", "power", "asked for"], rows)
    draw(done)


if __name__ == "__main__":
    main()
