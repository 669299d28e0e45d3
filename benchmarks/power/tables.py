"""Power of chi2_contingency beside published private tests of independence, at equal epsilon and n.

Run: python -m benchmarks.power.tables [--runs 200]. Writes results/power-tables.json and draws
results/power-tables.png. Goes on from there when it is started again with as many runs.

Peers: MCIndep of Gaboardi et al. (2016) with Laplace noise (Pearson's statistic of the noisy table,
Monte Carlo; its two-step estimate uses the nearest table in the Euclidean distance); the projected
statistic of Rogers and Kifer (2017) with plug-in margins, by Monte Carlo; both keep the null
hypothesis if an estimated expected count is below 5. "naive": chi-squared of the noisy table as if
it had no noise. hsic_test (a p-value), and test_of_tests with SciPy's chi-squared on subsets.
The strength 0 shows the level.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy.stats import chi2, chi2_contingency

import privatest as pt
from benchmarks.level.tables import ALPHA, SIMULATIONS, associated, margin, rejects
from benchmarks.measure import RESULTS, missing, save, stored
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.data.schema import CategoricalColumn
from privatest.mechanisms.additive import CountNoise, count_noise
from privatest.methods.tables import independence_statistic, on_simplex, simulate, with_total
from privatest.noise import SimulatedNoise

Floats = NDArray[np.float64]

SMALLEST = 5
# table, margins, Cramér's V
PROBLEMS = (
    ((2, 2), "balanced", 0.15),
    ((4, 4), "balanced", 0.15),
    ((3, 4), "rare", 0.3),
    ((3, 4), "rare", 0.0),
)
SIZES, EPSILONS = (300, 1000, 3000), (0.1, 0.5)


def product_of_margins(tables: Floats) -> Floats:
    """Expected shares under independence of tables of shares."""
    found: Floats = tables.sum(axis=-1)[..., :, None] * tables.sum(axis=-2)[..., None, :]
    return found


def nearest(tables: Floats, n: int) -> Floats:
    """The nearest tables of shares."""
    flat = (tables / n).reshape(*tables.shape[:-2], -1)
    return on_simplex(flat).reshape(tables.shape)


def pearson(tables: Floats, n: int) -> tuple[Floats, Floats]:
    """Pearson's statistic of noisy tables by the two-step estimate, and its expected counts."""
    expected = n * product_of_margins(nearest(tables, n))
    return ((tables - expected) ** 2 / np.maximum(expected, 1e-9)).sum(axis=(-2, -1)), expected


def projected(tables: Floats, n: int, law: CountNoise) -> tuple[Floats, Floats]:
    """The quadratic form by the inverse of the covariance, projected; and expected counts."""
    expected = n * product_of_margins(nearest(tables, n))
    cells = tables.shape[-2] * tables.shape[-1]
    theta = expected.reshape(*tables.shape[:-2], cells) / n
    away = with_total(tables, n).reshape(theta.shape) - n * theta
    spread = -n * theta[..., :, None] * theta[..., None, :] + law.variance * np.eye(cells)
    spread[..., np.arange(cells), np.arange(cells)] += n * theta
    return (away * np.linalg.solve(spread, away[..., None])[..., 0]).sum(axis=-1), expected


def monte_carlo(
    statistic: Callable[[Floats], tuple[Floats, Floats]],
    table: Floats,
    n: int,
    law: CountNoise,
    rng: np.random.Generator,
) -> bool:
    """Reject if the statistic is large among tables with the estimated margins."""
    own, expected = statistic(table)
    if expected.min() < SMALLEST:
        return False
    noise = law.draws((SIMULATIONS, *table.shape), rng)
    drawn, _ = statistic(simulate(expected / n, n, noise, rng))
    return bool((1 + (drawn >= own).sum()) / (SIMULATIONS + 1) <= ALPHA)


def naive(table: Floats) -> bool:
    """Pearson's chi-squared as if there were no noise."""
    seen = np.maximum(table, 0)
    expected = product_of_margins(seen / max(seen.sum(), 1)) * seen.sum()
    kept = expected > 0
    value = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
    dof = (table.shape[0] - 1) * (table.shape[1] - 1)
    return bool(chi2.sf(value, dof) <= ALPHA)


def subset_pvalue(x: Floats, y: Floats) -> float:
    """SciPy's chi-squared of a subset; categories that do not occur are left out."""
    table = np.zeros((int(x.max()) + 1, int(y.max()) + 1))
    np.add.at(table, (x.astype(int), y.astype(int)), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 1.0
    return float(chi2_contingency(table, correction=False).pvalue)


def by_rows(shares: Floats, n: int, epsilon: float, seed: int) -> dict[str, bool]:
    """Run the peers that take rows."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(shares.size, size=n, p=shares.ravel())
    x, y = np.divmod(cells, shares.shape[1])
    sides = [
        pt.Schema({name: CategoricalColumn(tuple(range(size)))})
        for name, size in zip("xy", shares.shape, strict=True)
    ]
    common: dict[str, Any] = {"epsilon": epsilon, "rng": seed, "noise": SimulatedNoise(seed)}
    common |= {"bounds_x": sides[0], "bounds_y": sides[1]}
    tot = pt.test_of_tests(x, y, pvalue=subset_pvalue, scheme="independence", **common)
    hsic = pt.hsic_test(x, y, n_permutations=199, **common)
    return {"hsic_test": hsic.reject, "test of tests": tot.reject}


def measure(shares: Floats, n: int, epsilon: float, runs: int) -> dict[str, float]:
    """Share of rejections of each test."""
    rng = np.random.default_rng([n, int(100 * epsilon), shares.size])
    law = count_noise(shares.size, Budget(epsilon))
    drawn = simulate(shares, n, law.draws((runs, *shares.shape), rng), rng)
    own = independence_statistic(drawn, n, law.variance)
    found: dict[str, list[bool]] = {}
    for table, value in zip(drawn, own, strict=True):
        each = {
            "chi2_contingency": rejects(table, value, n, law, rng),
            "Gaboardi et al.": monte_carlo(lambda t: pearson(t, n), table, n, law, rng),
            "Kifer, Rogers": monte_carlo(lambda t: projected(t, n, law), table, n, law, rng),
            "naive": naive(table),
        }
        for name, decision in each.items():
            found.setdefault(name, []).append(decision)
    for seed in range(runs // 4):  # slower
        for name, decision in by_rows(shares, n, epsilon, seed).items():
            found.setdefault(name, []).append(decision)
    return {name: float(np.mean(decisions)) for name, decisions in found.items()}


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw power against n for the problems with dependence."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    problems = [each for each in PROBLEMS if each[2] > 0]
    figure = Figure(figsize=(11, 6), layout="constrained")
    panels = figure.subplots(len(EPSILONS), len(problems), sharey=True)
    names = [name for name in rows[0] if name not in ("table", "margins", "V", "n", "epsilon")]
    for line, epsilon in zip(panels, EPSILONS, strict=True):
        for axes, ((r, c), kind, v) in zip(line, problems, strict=True):
            key = {"table": f"{r} x {c}", "margins": kind, "V": v, "epsilon": epsilon}
            own = [row for row in rows if all(row[k] == value for k, value in key.items())]
            for name in names:
                style = "k:" if name == "naive" else "o-"
                axes.plot(SIZES, [row[name] for row in own], style, label=name)
            axes.set(xscale="log", ylim=(-0.02, 1.02), xlabel="rows")
            axes.set_title(f"{r} x {c}, {kind}, V = {v}, epsilon = {epsilon:g}", fontsize=9)
    panels[0][0].legend(fontsize=7)
    panels[0][0].set_ylabel("power")
    figure.savefig(RESULTS / "power-tables.png", dpi=110)


def main() -> None:
    """Measure all problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    cases = [(*problem, n, e) for problem in PROBLEMS for n in SIZES for e in EPSILONS]
    rows = stored("power-tables", runs)
    for (r, c), kind, v, n, epsilon in track(cases, description="power"):
        shares = associated(margin(r, kind), margin(c, kind), v)
        assert shares is not None
        case = {"table": f"{r} x {c}", "margins": kind, "V": v, "n": n, "epsilon": epsilon}
        if not missing(rows, case):
            continue
        rows.append(case | measure(shares, n, epsilon, runs))
        save("power-tables", {"runs": runs, "rows": rows})
    print_table("power", list(rows[0]), [list(row.values()) for row in rows])
    draw(rows)


if __name__ == "__main__":
    main()
