"""Power of the correlation tests beside hsic_test, the test of tests and what people do.

Run: python -m benchmarks.power.correlation [--runs 200]. Writes results/power-correlation.json and
draws results/power-correlation.png; goes on from there when it is started again with as many runs.

Peers: the test of tests with SciPy's pearsonr on subsets; the Monte Carlo F test of Alabi and
Vadhan (2022), "noisy moments": five moments with Laplace noise (theirs is Gaussian, which is larger
at these budgets), the F statistic of the slope, and a parametric bootstrap of normal columns; it
does not reject if a variance is not positive. "naive" compares Pearson's correlation from noisy
moments with the classical critical value, as if there were no noise. Correlation 0 shows the level.
"""

from __future__ import annotations

import argparse
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

import privatest as pt
from benchmarks.level.correlation import BOX, Pair, draw, fine
from benchmarks.measure import RESULTS, missing, save, stored
from benchmarks.report import print_table
from privatest.data.encoding import Sample
from privatest.methods.regression import line_moments
from privatest.noise import SimulatedNoise

DRAWS = 199
CASES = ((100, 0.3), (500, 0.15), (500, 0.3), (2000, 0.15), (500, 0.0))
EPSILONS, LAW = (0.1, 0.3, 1.0, 3.0), "normal"


def laplace_moments(data: Pair, epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Release five moments of columns on [-1, 1], a fifth of epsilon for each."""
    n = len(data[0])
    found = line_moments(Sample((np.column_stack(data) / 4 + 1) / 2, None))
    return found + rng.laplace(scale=5 * 2 / (n * epsilon), size=5)


def parts(moments: Any) -> tuple[Any, Any, Any]:
    """Return variances and covariance of moments, along the first axis."""
    x, y, xx, xy, yy = moments
    return (xx + 1) / 2 - x**2, (yy + 1) / 2 - y**2, xy - x * y


def f_value(moments: Any, n: int) -> Any:
    """Return the F statistic of the slope; 0 where a variance is not positive."""
    vx, vy, c = parts(moments)
    rest = vx * vy - c**2
    possible = (vx > 0) & (rest > 0)
    return np.where(possible, (n - 2) * c**2 / np.where(possible, rest, 1.0), 0.0)


def noisy_moments(x: Any, y: Any, *, epsilon: float, noise: SimulatedNoise) -> bool:
    """Run the Monte Carlo F test of Alabi and Vadhan."""
    del noise
    n, rng = len(x), np.random.default_rng(int(1e6 * abs(x[0])))
    released = laplace_moments((x, y), epsilon, rng)
    vx, vy, _ = parts(released)
    own = float(f_value(released, n))
    if own == 0:
        return False
    # moments of n normal rows without correlation: normal means, and Bartlett's decomposition
    z = rng.standard_normal((3, DRAWS))
    a, b = np.sqrt(rng.chisquare(n - 1, DRAWS)), np.sqrt(rng.chisquare(n - 2, DRAWS))
    mx, my = released[0] + math.sqrt(vx / n) * z[0], released[1] + math.sqrt(vy / n) * z[1]
    xx, xy = vx * a**2 / n + mx**2, math.sqrt(vx * vy) * a * z[2] / n + mx * my
    yy = vy * (z[2] ** 2 + b**2) / n + my**2
    drawn = np.stack([mx, my, 2 * xx - 1, xy, 2 * yy - 1])
    drawn += rng.laplace(scale=5 * 2 / (n * epsilon), size=drawn.shape)
    return bool((1 + (f_value(drawn, n) >= own).sum()) / (DRAWS + 1) <= 0.05)


def naive(x: Any, y: Any, *, epsilon: float, noise: SimulatedNoise) -> bool:
    """Compare a noisy correlation with the critical value of one without noise."""
    del noise
    rng = np.random.default_rng(int(1e6 * abs(x[0])))
    vx, vy, c = parts(laplace_moments((x, y), epsilon, rng))
    r, n = float(c / math.sqrt(max(vx, 1e-9) * max(vy, 1e-9))), len(x)
    if abs(r) >= 1:
        return True
    return bool(stats.t.sf(abs(r) * math.sqrt((n - 2) / (1 - r**2)), n - 2) <= 0.025)


def _hsic(**options: Any) -> Callable[..., bool]:
    def run(x: Any, y: Any, *, epsilon: float, noise: SimulatedNoise) -> bool:
        given = BOX | {"n_permutations": 199} | options
        return bool(pt.hsic_test(x, y, **given, epsilon=epsilon, noise=noise, rng=0).reject)

    return run


def _ranked(test: Callable[..., pt.Outcome], **options: Any) -> Callable[..., bool]:
    return lambda x, y, **given: test(x, y, **options, **given).reject


def tests_of_tests(x: Any, y: Any, *, epsilon: float, noise: SimulatedNoise) -> bool:
    """Run SciPy's pearsonr on parts of the data."""
    own: Any = {"pvalue": stats.pearsonr, "scheme": "independence", "rng": 0}
    return pt.test_of_tests(x, y, **own, epsilon=epsilon, noise=noise).reject


TESTS: dict[str, Callable[..., bool]] = {
    "kendall": _ranked(pt.kendalltau),
    "kendall, greater": _ranked(pt.kendalltau, alternative="greater"),
    "spearman": _ranked(pt.spearmanr),
    "pearson": _ranked(pt.pearsonr, **BOX, n_simulations=999),
    "hsic trend, p-value": _hsic(statistics="trend"),
    "hsic, decision": _hsic(release="decision"),
    "test of tests": tests_of_tests,
    "noisy moments": noisy_moments,
    "naive": naive,
    "without privacy": lambda x, y, **_: bool(stats.pearsonr(x, y).pvalue <= 0.05),
}


def measure(n: int, correlation: float, epsilon: float, runs: int) -> dict[str, float]:
    """Return how often each test rejects; all see the same data."""
    rng, found = np.random.default_rng(n), dict.fromkeys(TESTS, 0)
    for seed in range(runs):
        data: Pair = draw(LAW, correlation, n, rng)
        for name, test in TESTS.items():
            found[name] += test(*data, epsilon=epsilon, noise=SimulatedNoise(seed))
    return {name: count / runs for name, count in found.items()}


def plot(rows: list[dict[str, Any]]) -> None:
    """Draw power against epsilon for each problem."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(13, 3.6), layout="constrained")
    styles = {"naive": "k:", "without privacy": "k--", "pearson": "o-", "test of tests": "s--"}
    for axes, (n, r) in zip(figure.subplots(1, len(CASES), sharey=True), CASES, strict=True):
        own = [row for row in rows if (row["n"], row["correlation"]) == (n, r)]
        for name in TESTS:
            power = [row[name] for row in own]
            axes.plot(EPSILONS, power, styles.get(name, "-"), label=name, markersize=4)
        axes.set(xscale="log", ylim=(-0.02, 1.02), xlabel="epsilon")
        axes.set_title(f"n = {n}, correlation {r:g}", fontsize=9)
    figure.axes[-1].legend(fontsize=6, loc="center right")
    figure.axes[0].set_ylabel("rejections")
    figure.savefig(RESULTS / "power-correlation.png", dpi=110)


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    fine({"_ANGLES": 3, "_CORRELATIONS": 3, "_STEPS": 0})  # intervals are not looked at
    rows = stored("power-correlation", runs)
    cases = [(n, r, e) for n, r in CASES for e in EPSILONS]
    for n, r, epsilon in track(cases, description="power"):
        case = {"law": LAW, "n": n, "correlation": r, "epsilon": epsilon}
        if missing(rows, case):
            rows.append(case | measure(n, r, epsilon, runs))
            save("power-correlation", {"runs": runs, "rows": rows})
    print_table(f"power ({runs} runs)", list(rows[0]), [list(row.values()) for row in rows])
    plot(rows)


if __name__ == "__main__":
    main()
