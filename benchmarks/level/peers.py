"""Level of what others offer for everyday tests, beside ours on data of the same laws.

DPrivStats (R package, version 0.1.0, 2026): its formulas for the two-sample t-test, one-way ANOVA,
the chi-squared test and the Kolmogorov–Smirnov test, written anew. They add noise to counts, means,
second moments, cells or distribution functions and use the classical laws, as if there were none.
(Some of that noise is smaller than the guarantee asks for: a replaced row moves two cells of a
table, and 100 points of a distribution function at once. It was left as it is.) OpenDP (0.16): its
p-value and interval for a binomial share from a count with canonical noise, run as they are; the
noise is drawn here, as its own mechanism crashed. Every null hypothesis is true.

Run: python -m benchmarks.level.peers [--runs 2000] [--own-runs 100] [--interval-runs 40]. Writes
results/level-peers.json after each cell, and goes on from there. Ours have more runs in the other
scripts of this folder.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import special, stats

import privatest as pt
from benchmarks.level.tables import margin, rejects, tables
from benchmarks.measure import missing, save, stored
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest.mechanisms.additive import count_noise
from privatest.methods.tables import independence_statistic
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import LatticeTulap

Floats = NDArray[np.float64]
Generator = np.random.Generator

ALPHA, GRID = 0.05, 100
# of values in [0, 1]
LAWS: dict[str, Callable[[Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(0.5, 0.1, n),
    "skewed": lambda rng, n: np.minimum(rng.exponential(0.1, n), 1.0),
    "rare": lambda rng, n: (rng.random(n) < 0.02).astype(np.float64),
}
OURS = {"t": "ttest_ind", "anova": "f_oneway", "ks": "ks_2samp"}
SAMPLES = [
    (law, n, epsilon)
    for law, n, epsilon in (
        ("normal", 20, 10.0), ("normal", 100, 1.0), ("normal", 1000, 0.1), ("normal", 1000, 1.0),
        ("normal", 10_000, 0.05), ("normal", 10_000, 1.0), ("rare", 100, 10.0), ("rare", 1000, 1.0),
        ("skewed", 20, 1.0), ("skewed", 1000, 10.0),
    )
]  # fmt: skip
TABLES = [
    ((2, 2), "balanced", 100, 1.0), ((2, 2), "balanced", 1000, 0.1), ((2, 2), "rare", 1000, 1.0),
    ((3, 4), "balanced", 100, 1.0), ((3, 4), "balanced", 1000, 0.3), ((3, 4), "rare", 100, 10.0),
    ((3, 4), "rare", 1000, 1.0), ((6, 5), "rare", 1000, 10.0),
]  # fmt: skip
SHARES = [
    (20, 0.01, 1.0), (20, 0.5, 1.0), (20, 0.5, 10.0), (100, 0.01, 10.0), (100, 0.5, 0.1),
    (100, 0.5, 1.0), (1000, 0.01, 1.0), (1000, 0.5, 0.1),
]  # fmt: skip


def laplace(scale: float, shape: Any, rng: Generator) -> Floats:
    """Draw Laplace noise."""
    return np.asarray(rng.laplace(scale=scale, size=shape))


def summaries(x: Floats, epsilon: float, rng: Generator) -> tuple[Floats, Floats, Floats]:
    """Noisy size, mean and variance of each row of x, in [0, 1], a part of epsilon for each."""
    runs, n = x.shape
    size = np.maximum(n + laplace(1 / epsilon, runs, rng), 2)
    mean = x.mean(axis=1) + laplace(1 / (n * epsilon), runs, rng)
    again = x.mean(axis=1) + laplace(2 / (n * epsilon), runs, rng)
    second = (x**2).mean(axis=1) + laplace(2 / (n * epsilon), runs, rng)
    return size, mean, np.maximum(second - again**2, 0)


def dprivstats_t(samples: Sequence[Floats], epsilon: float, rng: Generator) -> Floats:
    """P-values of two samples: Student's t with noisy sizes, means and variances."""
    (n, mean, v), (m, other, w) = (summaries(x, epsilon / 3, rng) for x in samples)
    error = np.sqrt(v / n + w / m)
    t = np.where(error > 0, (mean - other) / np.where(error > 0, error, 1), 0)
    return np.asarray(2 * stats.t.sf(np.abs(t), n + m - 2))


def dprivstats_anova(samples: Sequence[Floats], epsilon: float, rng: Generator) -> Floats:
    """P-values of several samples: F with noisy sizes, means and variances."""
    k = len(samples)
    found = [summaries(x, epsilon / (3 * k), rng) for x in samples]
    size, mean, variance = (np.stack(part) for part in zip(*found, strict=True))
    centre = (size * mean).sum(axis=0) / size.sum(axis=0)
    between = (size * (mean - centre) ** 2).sum(axis=0) / (k - 1)
    rest = size.sum(axis=0) - k
    within = ((size - 1) * variance).sum(axis=0) / rest
    return np.asarray(stats.f.sf(between / np.maximum(within, 2.2e-16), k - 1, rest))


def dprivstats_ks(samples: Sequence[Floats], epsilon: float, rng: Generator) -> Floats:
    """P-values of two samples: Kolmogorov's law for noisy distribution functions on a grid."""
    grid, noisy = np.linspace(0, 1, GRID), []
    for x in samples:
        n = x.shape[1]
        shares = np.stack([np.searchsorted(np.sort(row), grid, side="right") for row in x]) / n
        noisy.append(np.clip(shares + laplace(2 / (n * epsilon), shares.shape, rng), 0, 1))
    distance = np.abs(noisy[0] - noisy[1]).max(axis=1)
    n, m = (x.shape[1] for x in samples)
    return np.asarray(special.kolmogorov(distance * np.sqrt(n * m / (n + m))))


def dprivstats_chi2(counts: Floats, epsilon: float, rng: Generator) -> Floats:
    """P-values of tables: chi-squared of noisy counts, cut at 0 and rounded.

    R's test has Yates' correction for two by two; a table with an empty row or column has none.
    """
    noisy = np.rint(np.maximum(counts + laplace(1 / epsilon, counts.shape, rng), 0))
    total = noisy.sum(axis=(1, 2), keepdims=True)
    expected = noisy.sum(axis=1, keepdims=True) * noisy.sum(axis=2, keepdims=True)
    expected = expected / np.maximum(total, 1)
    away = np.abs(noisy - expected)
    if noisy.shape[1:] == (2, 2):
        away = away - np.minimum(0.5, away)
    value = (away**2 / np.maximum(expected, 1e-300)).sum(axis=(1, 2))
    degrees = (noisy.shape[1] - 1) * (noisy.shape[2] - 1)
    found = stats.chi2.sf(value, degrees)
    return np.where((expected > 0).all(axis=(1, 2)), found, 1.0)


PEERS: dict[str, tuple[Callable[..., Floats], int]] = {
    "t": (dprivstats_t, 2),
    "anova": (dprivstats_anova, 3),
    "ks": (dprivstats_ks, 2),
}


def peer_rate(test: str, law: str, n: int, epsilon: float, runs: int) -> float:
    """How often DPrivStats' formula rejects samples of one law, 100 data sets at a time."""
    formula, groups = PEERS[test]
    rng, rejected = np.random.default_rng([n, int(100 * epsilon), len(law)]), 0
    for start in range(0, runs, 100):
        size = min(100, runs - start)
        data = [np.clip(LAWS[law](rng, size * n), 0, 1).reshape(size, n) for _ in range(groups)]
        rejected += int((formula(data, epsilon, rng) <= ALPHA).sum())
    return rejected / runs


def own_rate(test: str, law: str, n: int, epsilon: float, runs: int) -> float:
    """How often our test rejects."""
    rng, rejected = np.random.default_rng([n, int(100 * epsilon), len(law), 1]), 0
    given: Any = {} if test == "ks" else {"bounds": (0, 1)}
    given |= {"n_bootstrap": 199} if test == "anova" else {}
    for seed in range(runs):
        data = [LAWS[law](rng, n) for _ in range(PEERS[test][1])]
        noise = SimulatedNoise(seed)
        found = getattr(pt, OURS[test])(*data, epsilon=epsilon, noise=noise, **given)
        rejected += found.reject
    return rejected / runs


def sample_rates(
    test: str, law: str, n: int, epsilon: float, own: int, runs: int
) -> dict[str, float]:
    """How often both reject."""
    ours = own_rate(test, law, n, epsilon, own)
    return {"ours": ours, "peer rate": peer_rate(test, law, n, epsilon, runs)}


def table_rates(
    shape: Any, kind: str, n: int, epsilon: float, runs: int, own: int
) -> dict[str, float]:
    """The same for tables of independent columns."""
    rng = np.random.default_rng([*shape, n])
    shares, law = (
        np.outer(*(margin(k, kind) for k in shape)),
        count_noise(shape[0] * shape[1], Budget(epsilon)),
    )
    counts = rng.multinomial(n, shares.ravel(), size=runs).reshape(runs, *shape)
    peer = float((dprivstats_chi2(counts.astype(float), epsilon, rng) <= ALPHA).mean())
    noisy = tables(shares, n, law, own, rng)
    values = independence_statistic(noisy, n, law.variance)
    found = [rejects(t, s, n, law, rng) for t, s in zip(noisy, values, strict=True)]
    return {"ours": float(np.mean(found)), "peer rate": peer}


def share_rates(n: int, p: float, epsilon: float, runs: int, intervals: int) -> dict[str, float]:
    """Level and coverage for one share; OpenDP's interval may find no boundary."""
    from opendp.extras.numpy.canonical import BinomialCND  # noqa: PLC0415

    rng, law = np.random.default_rng([n, int(100 * epsilon)]), LatticeTulap(1, epsilon)
    found = dict.fromkeys(("ours", "peer rate", "covered", "peer covered"), 0)
    found["peer without interval"] = 0
    for run in range(runs):
        outcomes = rng.uniform(size=n) < p
        own = pt.binom_test(outcomes, p=p, epsilon=epsilon, noise=SimulatedNoise(run))
        found["ours"] += own.reject
        noisy = float(outcomes.sum() + law.quantile(rng.uniform()))
        peer = BinomialCND(noisy, 1.0, (epsilon, 0.0), n)
        found["peer rate"] += peer.p_value(p) <= ALPHA
        found["covered"] += own.estimates["lower"] <= p <= own.estimates["upper"]
        if run < intervals:
            try:
                low, high = peer.confidence_interval(ALPHA)  # type: ignore[misc]
                found["peer covered"] += low <= p <= high
            except ValueError:  # "the decision boundary of the predicate is outside the bounds"
                found["peer without interval"] += 1
    few = ("peer covered", "peer without interval")
    rates = {k: float(v) / (intervals if k in few else runs) for k, v in found.items()}
    return rates | {"peer runs": runs, "interval runs": intervals}


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="of DPrivStats")
    parser.add_argument(
        "--own-runs", type=int, default=100, help="of ours; ten times for exact laws"
    )
    parser.add_argument("--interval-runs", type=int, default=40, help="of OpenDP; slow")
    options = parser.parse_args()
    rows = stored("level-peers", options.runs)

    def add(case: dict[str, Any], own: int, measure: Callable[[], dict[str, float]]) -> None:
        if missing(rows, case):
            rows.append(case | {"own runs": own, "peer runs": options.runs} | measure())
            save("level-peers", {"runs": options.runs, "rows": rows})

    for test in PEERS:
        own = options.own_runs * (10 if test == "ks" else 1)
        for law, n, epsilon in track(SAMPLES, description=test):
            case = {"test": OURS[test], "peer": "DPrivStats", "data": law, "n": n}
            case |= {"epsilon": epsilon}
            given = (test, law, n, epsilon)
            add(case, own, partial(sample_rates, *given, own=own, runs=options.runs))
    for shape, kind, n, epsilon in track(TABLES, description="tables"):
        case = {"test": "chi2_contingency", "peer": "DPrivStats"}
        case |= {"data": f"{shape[0]} x {shape[1]}, {kind}", "n": n, "epsilon": epsilon}
        given_ = (shape, kind, n, epsilon, options.runs, options.own_runs)
        add(case, options.own_runs, partial(table_rates, *given_))
    for n, p, epsilon in track(SHARES, description="shares"):
        case = {"test": "binom_test", "peer": "OpenDP", "data": f"p = {p:g}", "n": n}
        own = 10 * options.own_runs
        shares = partial(share_rates, n, p, epsilon, own, options.interval_runs)
        add(case | {"epsilon": epsilon}, own, shares)
    print_table("peers", list(rows[-1]), [[r.get(k) for k in rows[-1]] for r in rows])


if __name__ == "__main__":
    main()
