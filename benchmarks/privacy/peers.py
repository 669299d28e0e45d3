"""The attack on what others release, beside the same attack on ours: is epsilon kept?

Two neighbours (one row is replaced), chosen so that what is released differs most; each is run many
times. An event "larger than a threshold" is chosen on one half of the runs, and the other half
bounds epsilon from below (Clopper and Pearson, confidence 1 - 1e-6). A bound above the declared
epsilon proves a violation; one below it proves nothing.

- DPrivStats (R, 0.1.0): its formulas for tables, the KS statistic and means, written anew in
  NumPy from its sources (:mod:`benchmarks.level.peers` has their levels).
- diffprivlib (0.6.6): as installed; ``pip install diffprivlib "scikit-learn<1.7"``, preferably into
  an environment of its own. Left out if it is not there.
- Ours: the released numbers, with secure noise.

Run: python -m benchmarks.privacy.peers [--times 1] [--only privatest]. What cannot be imported, or
is not asked for, keeps its rows in results/privacy-peers.json, so that the parts can run in
different environments.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[int], Floats]
"""Returns the released number of so many runs on one data set."""

EPSILON, ALARM = 1.0, 1e-6
TARGET = Path(__file__).parents[1] / "results" / "privacy-peers.json"


def bound(first: Floats, second: Floats) -> float:
    """Return the epsilon that is proved; 0 if none is."""
    half = len(first) // 2
    cuts = np.unique(np.quantile(np.concatenate([first[:half], second[:half]]), _LEVELS))
    events = [(cut, above, order) for cut in cuts for above in (1, 0) for order in (1, -1)]

    def proved(event: tuple[float, int, int], part: slice) -> float:
        cut, above, order = event
        often, seldom = [
            int(np.count_nonzero((side[part] > cut) == above)) for side in (first, second)
        ][::order]
        return _proved(often, seldom, len(first[part]))

    best = max(events, key=lambda event: proved(event, slice(None, half)))
    return proved(best, slice(half, None))


_LEVELS = np.linspace(0, 1, 102)[1:-1]


def _proved(often: int, seldom: int, runs: int) -> float:
    """Clopper and Pearson, half of the error on each side."""
    from scipy.stats import beta  # noqa: PLC0415

    if often <= seldom:
        return 0.0
    least = beta.ppf(ALARM / 2, often, runs - often + 1)
    most = beta.isf(ALARM / 2, seldom + 1, runs - seldom)
    return max(0.0, float(np.log(least / most)))


# --- DPrivStats -------------------------------------------------------------------------------


def dprivstats_table(replaced: bool) -> Draw:
    """Two cells of its private table; a replaced row leaves one and enters the other."""
    counts = np.array([10.0, 10.0]) + ([-1, 1] if replaced else [0, 0])

    def draw(runs: int) -> Floats:
        noisy = counts + np.random.default_rng().laplace(scale=1 / EPSILON, size=(runs, 2))
        cells = np.rint(np.maximum(noisy, 0))
        return np.asarray(cells[:, 0] - cells[:, 1])

    return draw


def dprivstats_ks(replaced: bool) -> Draw:
    """Its distance D on 100 points; all rows at the upper bound, or one at the lower."""
    n, points = 100, 100
    shares = np.append(np.full(points - 1, 1 / n if replaced else 0.0), 1.0)

    def draw(runs: int) -> Floats:
        rng, found = np.random.default_rng(), []
        for start in range(0, runs, 1000):
            shape = (min(1000, runs - start), points)
            x, y = (
                np.clip(share + rng.laplace(scale=2 / (n * EPSILON), size=shape), 0, 1)
                for share in (shares, np.append(np.zeros(points - 1), 1.0))
            )
            found.append(np.abs(x - y).max(axis=1))
        return np.concatenate(found)

    return draw


def dprivstats_mean(replaced: bool) -> Draw:
    """Its mean of x within a t-test that is called without bounds: then the range of the data."""
    x, y = np.append(np.zeros(99), 1e6 if replaced else 0.0), np.append(np.zeros(99), 1.0)
    width = max(x.max(), y.max()) - min(x.min(), y.min())

    def draw(runs: int) -> Floats:
        noise = np.random.default_rng().laplace(scale=3 * width / (len(x) * EPSILON), size=runs)
        return np.asarray(np.abs(x.mean() + noise))

    return draw


# --- diffprivlib ------------------------------------------------------------------------------


def diffprivlib_slope(replaced: bool) -> Draw:
    """Its regression through the origin; the bounds of x begin at 0."""
    from diffprivlib.models import LinearRegression  # noqa: PLC0415

    x, y = _line(replaced), np.zeros(20)

    def draw(runs: int) -> Floats:
        found = np.empty(runs)
        for run in range(runs):
            model = LinearRegression(
                epsilon=EPSILON, bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False
            )
            found[run] = abs(float(model.fit(x[:, None], y).coef_[0]))
        return found

    return draw


def _line(replaced: bool) -> Floats:
    x = np.zeros(20)
    x[0], x[1] = 0.01, 1.0 if replaced else 0.0
    return x


def diffprivlib_tool(name: str) -> Callable[[bool], Draw]:
    """Its mean or variance, with bounds."""

    def of(replaced: bool) -> Draw:
        from diffprivlib import tools  # noqa: PLC0415

        x = np.append(np.zeros(19), 1.0 if replaced else 0.0)
        tool = getattr(tools, name)
        return lambda runs: np.array([tool(x, epsilon=EPSILON, bounds=(0, 1)) for _ in range(runs)])

    return of


# --- ours -------------------------------------------------------------------------------------


def ours_table(replaced: bool) -> Draw:
    """The same two cells of the noisy table of ``chi2_contingency``."""
    import privatest as pt  # noqa: PLC0415

    x = ["a"] * (9 if replaced else 10) + ["b"] * (11 if replaced else 10)
    levels: Any = {"categories_x": ("a", "b"), "categories_y": ("a", "b"), "n_simulations": 9}

    def once() -> float:
        counts = pt.chi2_contingency(x, x, epsilon=EPSILON, **levels).estimates["counts"]
        return float(counts[0, 0] - counts[1, 1])

    return lambda runs: np.array([once() for _ in range(runs)])


def ours_ks(replaced: bool) -> Draw:
    """The noisy distance of ``ks_2samp``: half of x is above all of y; one goes below."""
    import privatest as pt  # noqa: PLC0415

    x, y = np.arange(100) + 50.5, np.arange(100.0)  # no ties, whose order is secret
    x[-1] = -1.0 if replaced else x[-1]
    return lambda runs: np.array(
        [pt.ks_2samp(x, y, epsilon=EPSILON).statistic for _ in range(runs)], dtype=float
    )


def ours_slope(replaced: bool) -> Draw:
    """The slope of ``linregress``, on the data that diffprivlib got."""
    import privatest as pt  # noqa: PLC0415

    x, y = _line(replaced), np.zeros(20)
    more: Any = {"bounds_x": (0, 1), "bounds_y": (0, 1), "n_simulations": 19}
    return lambda runs: np.abs(
        [pt.linregress(x, y, epsilon=EPSILON, **more).estimates["slope"] for _ in range(runs)]
    )


def ours_mean(replaced: bool) -> Draw:
    """``private_mean`` of one column."""
    import privatest as pt  # noqa: PLC0415

    x = np.append(np.zeros(19), 1.0 if replaced else 0.0)
    return lambda runs: np.array(
        [
            float(
                np.ravel(pt.private_mean(x, bounds=(0, 1), epsilon=EPSILON, n_bootstrap=19).mean)[0]
            )
            for _ in range(runs)
        ]
    )


CASES: dict[str, tuple[str, Callable[[bool], Draw], int]] = {
    "DPrivStats: table of counts": ("numpy", dprivstats_table, 400_000),
    "DPrivStats: KS distance": ("numpy", dprivstats_ks, 20_000),
    "DPrivStats: mean of a t-test, default bounds": ("numpy", dprivstats_mean, 20_000),
    "diffprivlib: LinearRegression, bounds from 0": ("diffprivlib", diffprivlib_slope, 1_000),
    "diffprivlib: mean": ("diffprivlib", diffprivlib_tool("mean"), 20_000),
    "diffprivlib: var": ("diffprivlib", diffprivlib_tool("var"), 20_000),
    "privatest: chi2_contingency": ("privatest", ours_table, 1_000),
    "privatest: ks_2samp": ("privatest", ours_ks, 4_000),
    "privatest: linregress": ("privatest", ours_slope, 1_000),
    "privatest: private_mean": ("privatest", ours_mean, 2_000),
}


def main() -> None:
    """Attack, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=float, default=1.0, help="more or fewer runs")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    given = parser.parse_args()
    stored = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    warnings.simplefilter("ignore")  # of leaks that diffprivlib itself warns of
    for name, (package, released, number) in CASES.items():
        if given.only not in name:
            continue
        if find_spec(package) is None:
            print(f"{name}: {package} is not installed; stored rows stay")
            continue
        runs = round(given.times * number)
        found = bound(*(released(replaced)(runs) for replaced in (False, True)))
        row = {"epsilon": EPSILON, "proved": found, "runs": runs, package: version(package)}
        stored[name] = row
        print(f"{name}: epsilon {EPSILON:g} declared, {found:.2f} proved ({runs} runs)", flush=True)
        TARGET.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
