"""Which wrong sensitivities does the search of ``permutation_test`` find, at which sizes?

Each statistic has a sensitivity that was worked out by hand for data in [0, 1] (or in the bounds
that its row names). The search is asked whether it holds, and whether nine tenths and half of it
do: the first must pass, the others should be refused. "Computed wrongly" are statistics whose
formula would be right in exact arithmetic but not as computed: they must be refused throughout.

Run: python -m benchmarks.privacy.probe [--sizes 10 100 1000 10000]. Writes
results/privacy-probe.json. The search is seeded: every run gives the same table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.core.errors import ParameterError
from privatest.core.privacy import PermutationSensitivity
from privatest.data.schema import Box, Schema
from privatest.methods.custom import Space, UserStatistic, search_neighbours

Floats = NDArray[np.float64]
SIZES = (10, 100, 1000, 10_000)
SHARES = (1.0, 0.9, 0.5)
FAR = 1e9


@dataclass(frozen=True, slots=True)
class Case:
    """A statistic, its true sensitivity as a function of n, and the data that it is for."""

    statistic: Callable[[Floats, Floats], Any]
    true: Callable[[int], float | PermutationSensitivity]
    paired: bool = False
    both: bool = False
    bounds: tuple[float, float] | None = (0, 1)
    columns: int = 1
    m: float = 1.0
    wrong: bool = False  # as computed, it breaks what was worked out for it


def _quantile_weight(share: float) -> Callable[[int], float]:
    """Return how far a quantile interpolated between two rows moves when a row is replaced."""

    def weight(n: int) -> float:
        part = share * (n - 1) % 1
        return max(part, 1 - part)

    return weight


def kolmogorov(x: Floats, y: Floats) -> Any:
    """Largest distance of the two distribution functions."""
    points = np.concatenate([x, y])
    shares = [np.searchsorted(np.sort(z), points, "right") / len(z) for z in (x, y)]
    return np.abs(shares[0] - shares[1]).max()


def trimmed(x: Floats, y: Floats) -> Any:
    """Difference of means without a tenth at either end."""
    means = [np.sort(z)[len(z) // 10 : len(z) - len(z) // 10].mean() for z in (x, y)]
    return abs(means[0] - means[1])


def mann_whitney(x: Floats, y: Floats) -> Any:
    """|U/nm - 1/2|, ties counted half."""
    ordered = np.sort(y)
    below = np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right")
    return abs(below.mean() / (2 * len(y)) - 0.5)


def covariance(x: Floats, y: Floats) -> Any:
    """|Covariance|."""
    return abs(np.mean((x - x.mean()) * (y - y.mean())))


def correlation(x: Floats, y: Floats) -> Any:
    """|Correlation|, 0 where it is not defined."""
    spread = x.std() * y.std()
    return covariance(x, y) / spread if spread > 1e-12 else 0.0


def pair(step: float) -> PermutationSensitivity:
    """A permutation parts a pair: twice as far."""
    return PermutationSensitivity(step, 2 * step)


CASES: dict[str, Case] = {
    "mean": Case(lambda x, y: abs(x.mean() - y.mean()), lambda n: 1 / n),
    "mean, m = n/2": Case(lambda x, y: abs(x.mean() - y.mean()), lambda n: 2 / n, m=0.5),
    "mean, one row of each": Case(
        lambda x, y: abs(x.mean() - y.mean()),
        lambda n: PermutationSensitivity(3 / n, 4 / n),
        both=True,
        m=0.5,
    ),
    "mean of tanh, no bounds": Case(
        lambda x, y: abs(np.tanh(x).mean() - np.tanh(y).mean()), lambda n: 2 / n, bounds=None
    ),
    "mean vector, 2 columns": Case(
        lambda x, y: np.linalg.norm(x.mean(axis=0) - y.mean(axis=0)),
        lambda n: 2**0.5 / n,
        columns=2,
    ),
    "logarithm of a ratio of means": Case(
        lambda x, y: np.log((0.1 + x.mean()) / (0.1 + y.mean())), lambda n: np.log1p(10 / n)
    ),
    "variance": Case(lambda x, y: abs(x.var() - y.var()), lambda n: (n - 1) / n**2),
    "standard deviation": Case(lambda x, y: abs(x.std() - y.std()), lambda n: (n - 1) ** 0.5 / n),
    "share above .7": Case(lambda x, y: abs(np.mean(x > 0.7) - np.mean(y > 0.7)), lambda n: 1 / n),
    "share within .61 and .62": Case(
        lambda x, y: np.mean((x > 0.61) & (x < 0.62)) - np.mean((y > 0.61) & (y < 0.62)),
        lambda n: 1 / n,
    ),
    "median": Case(lambda x, y: abs(np.median(x) - np.median(y)), lambda _: 0.5),
    "quantile .9": Case(
        lambda x, y: abs(np.quantile(x, 0.9) - np.quantile(y, 0.9)), _quantile_weight(0.9)
    ),
    "range between quartiles": Case(
        lambda x, _: np.diff(np.quantile(x, [0.25, 0.75]))[0], _quantile_weight(0.25)
    ),
    "trimmed mean": Case(trimmed, lambda n: 1 / (n - 2 * (n // 10))),
    "maximum": Case(lambda x, y: abs(x.max() - y.max()), lambda _: 1.0),
    "second largest": Case(lambda x, y: np.sort(x)[-2] - np.sort(y)[-2], lambda _: 1.0),
    "Kolmogorov": Case(kolmogorov, lambda n: 1 / n),
    "Wasserstein": Case(lambda x, y: np.abs(np.sort(x) - np.sort(y)).mean(), lambda n: 1 / n),
    "Mann–Whitney": Case(mann_whitney, lambda n: 1 / n),
    "covariance": Case(covariance, lambda n: pair((n - 1) / n**2), paired=True),
    "covariance, observed only": Case(
        covariance,
        lambda n: PermutationSensitivity((n - 1) / n**2, 9.0),
        paired=True,
    ),
    "correlation": Case(correlation, lambda _: 1.0, paired=True),
    "signs about the middle": Case(
        lambda x, y: np.mean(np.sign(x - 0.5) * np.sign(y - 0.5)),
        lambda n: pair(2 / n),
        paired=True,
    ),
    "both above .7": Case(
        lambda x, y: np.mean((x > 0.7) & (y > 0.7)),
        lambda n: pair(1 / n),
        paired=True,
    ),
    "variance, 1e9 to 1e9 + 1": Case(
        lambda x, y: abs(x.var() - y.var()), lambda n: (n - 1) / n**2, bounds=(FAR, FAR + 1)
    ),
    "median, 1e9 to 1e9 + 1": Case(
        lambda x, y: abs(np.median(x) - np.median(y)), lambda _: 0.5, bounds=(FAR, FAR + 1)
    ),
    "mean square less square of mean, 1e9 to 1e9 + 1": Case(
        lambda x, y: (np.mean(x**2) - x.mean() ** 2) - (np.mean(y**2) - y.mean() ** 2),
        lambda n: (n - 1) / n**2,
        bounds=(FAR, FAR + 1),
        wrong=True,
    ),
    "slope": Case(
        lambda x, y: covariance(x, y) / max(x.var(), 1e-9), lambda _: 1.0, paired=True, wrong=True
    ),
    "1e17 and a sum": Case(lambda x, y: 1e17 + abs(x.sum() - y.sum()), lambda _: 1.0, wrong=True),
}


def space_of(case: Case, n: int) -> Space:
    """Return the data sets of a case, n rows in the first sample."""
    names = [f"c{place}" for place in range(case.columns)]
    box = Box.anywhere(case.columns)
    if case.bounds is not None:
        box = Schema.from_bounds(dict.fromkeys(names, case.bounds)).box
    return Space(box, box, n, round(case.m * n), case.paired, case.both)


def refused(case: Case, n: int, share: float) -> bool:
    """Whether the search refuses this share of the true sensitivity."""
    declared = case.true(n)
    statistic = UserStatistic(case.statistic, vectorized=False)
    try:
        search_neighbours(statistic, space_of(case, n), declared * share)
    except ParameterError:
        return True
    return False


def main() -> None:
    """Search, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    sizes = parser.parse_args().sizes
    rows: list[dict[str, Any]] = []
    for name, case in track(CASES.items(), description="statistics"):
        begin = time.process_time()
        found = {str(n): {str(share): refused(case, n, share) for share in SHARES} for n in sizes}
        seconds = time.process_time() - begin
        rows.append({"statistic": name, "wrong": case.wrong, "refused": found, "seconds": seconds})
    columns = ("statistic", *(f"n = {n}" for n in sizes))
    shown = [[row["statistic"], *map(_marks, row["refused"].values())] for row in rows]
    print_table("refused: the true sensitivity, .9 of it, half of it", columns, shown)
    false = [row["statistic"] for row in rows if _count(row, 1.0) and not row["wrong"]]
    missed = sum(len(sizes) - _count(row, share) for row in rows for share in SHARES[1:])
    print(f"right ones refused: {', '.join(false) or 'none'}; wrong ones not found: {missed}")
    save("privacy-probe", {"sizes": sizes, "shares": SHARES, "rows": rows})


def _marks(found: dict[str, bool]) -> str:
    return " ".join("yes" if refused else "no" for refused in found.values())


def _count(row: dict[str, Any], share: float) -> int:
    return sum(found[str(share)] for found in row["refused"].values())


if __name__ == "__main__":
    main()
