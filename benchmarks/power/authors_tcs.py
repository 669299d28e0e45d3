"""TCS-ME on Kim and Schrab's own data sets, with the one draw of noise that all their runs share.

Their published program seeds the split of the rows, the start of the ascent and the noise by
constants, so that 200 runs have one draw of each. Only the thousand rows of which it takes a median
distance are others here. Run: python -m benchmarks.power.authors_tcs. Goes on with the points that
are not in results/power-authors-tcs.json yet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import missing, save, start, stored
from benchmarks.power.authors_data import SIZES, chained, perturbed, split, uniform
from benchmarks.report import print_table
from privatest.core.privacy import Budget
from privatest_papers.raj import noise_ratio, paper_sensitivity, paper_statistic
from privatest_papers.raj_locations import climbed_locations
from privatest_papers.results import published

Floats = NDArray[np.float64]
Words = NDArray[np.uint32]
_NAME, _RUNS, _SCALE, _ALPHA, _DRAWS = "power-authors-tcs", 200, 4.0, 0.05, 100_000
_ORDER, _PART, _START, _NOISE = 46, 47, 48, 1049  # seeds of their program
_COLUMNS = (1, 3, 5, 7, 9)
_LOCATIONS, _SETTINGS = 5, {"gamma": 1e-5, "kappa": 1.0}
DRAWN = float(np.random.RandomState(_NOISE).normal())  # .647, in units of the noise


def data_sets(key: Words, n: int, d: int, amplitude: float) -> tuple[Floats, Floats]:
    """Draw all data sets, the bump in the first column of x."""
    keys = split(key, 3)
    x = perturbed(keys[0], n, 1, amplitude)
    if d > 1:
        more = uniform(keys[1], _RUNS * n * (d - 1)).reshape(_RUNS, n, d - 1)
        x = np.concatenate([x, more], axis=2)
    return x, uniform(keys[2], _RUNS * n * d).reshape(_RUNS, n, d)


def key_at(seed: int, place: int) -> Words:
    """Return the key of the data of a point: each before it took a key and one for each run."""
    key, own = np.array([0, seed], np.uint32), np.zeros(2, np.uint32)
    for _ in range(place + 1):
        key, own = split(key)
        key, _ = chained(key, _RUNS)
    return own


def statistic(x: Floats, y: Floats) -> float:
    """Return the statistic without noise, by their split and start."""
    n = len(x)
    order = np.random.RandomState(_ORDER).choice(n, n, replace=False)
    chosen = np.zeros(n, dtype=bool)
    chosen[np.random.RandomState(_PART).choice(n, n // 5, replace=False)] = True
    rows = np.concatenate([order[chosen], order[~chosen]])
    # the older generator has the same methods
    rng: Any = np.random.RandomState(_START)
    locations, variance, left = climbed_locations(_SCALE * x[rows], _SCALE * y[rows], rng)
    return paper_statistic(*left, locations, variance=variance, gamma=_SETTINGS["gamma"])


def rates(values: Floats, n: int, epsilon: float) -> tuple[float, float]:
    """Return how often they reject: with the one draw of noise, and with fresh noise."""
    rng = np.random.default_rng(0)
    step = paper_sensitivity(n - n // 5, _LOCATIONS, **_SETTINGS)
    scale = step * noise_ratio(Budget(epsilon, 1e-5), analytic=True)
    null = rng.chisquare(_LOCATIONS, _DRAWS) + rng.normal(scale=scale, size=_DRAWS)
    limit = np.quantile(null, 1 - _ALPHA)
    fresh = values[:, None] + rng.normal(scale=scale, size=(len(values), 1000))
    return float(np.mean(values + scale * DRAWN > limit)), float(np.mean(fresh > limit))


def cases() -> list[tuple[str, str, int, int, int, float, int, list[float]]]:
    """Return figure, array, n, d, seed, amplitude, place of the data sets, and epsilons."""
    first, grown = "uniform_mmd_power_vary_privacy_appendix", "uniform_mmd_power_vary_n_appendix"
    epsilons = published("kim-schrab.json")["arrays"][first]["x"]
    found = [("figure 12", first, 3000, 1, 42, 1.0, 0, epsilons)]
    for place, n in enumerate(SIZES):
        found.append(("figure 12", grown, n, 1, 43, 1.0, place, [n**0.5 / 10]))
    for figure, array, n, amplitude in (
        ("figure 12", "uniform_mmd_power_vary_d_appendix", 5000, 1.0),
        ("figure 4", "uniform_mmd_power_vary_d_low", 3000, 0.2),
    ):
        for place, d in enumerate(_COLUMNS):
            found.append((figure, array, n, d, 43, amplitude, place, [n**0.5 / 10]))
    return found


def main() -> None:
    """Measure the points of figure 12, and of the last panel of figure 4."""
    arrays = published("kim-schrab.json")["arrays"]
    rows = stored(_NAME, _RUNS)
    for figure, array, n, d, seed, amplitude, place, epsilons in cases():
        about: dict[str, Any] = {"figure": figure, "array": array, "n": n, "d": d}
        if not missing(rows, about):
            continue
        x, y = data_sets(key_at(seed, place), n, d, amplitude)
        values = np.array([statistic(*both) for both in zip(x, y, strict=True)])
        for where, epsilon in enumerate(epsilons, place):
            shared, fresh = rates(values, n, epsilon)
            paper = arrays[array]["rates"]["TCS-ME"][where]
            more = {"epsilon": round(epsilon, 4), "published": paper}
            rows.append(about | more | {"one draw": shared, "fresh noise": round(fresh, 4)})
        save(_NAME, {"runs": _RUNS, "draw": round(DRAWN, 4), "rows": rows})
    print_table("TCS-ME on the authors' data", list(rows[0]), [list(r.values()) for r in rows])


if __name__ == "__main__":
    start(main, __doc__)
