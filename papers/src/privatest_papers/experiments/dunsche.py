"""Dunsche, Kutta and Dette (2022): tables 1 and 2, figures 1 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import SimulatedNoise
from privatest.methods.means import hotelling_test
from privatest_papers.dunsche import (
    exceeds_asymptotic,
    exceeds_bootstrap,
    hotelling_statistics,
)
from privatest_papers.experiment import Arm, Experiment, Measure, Plain, Point
from privatest_papers.results import published
from privatest_papers.samplers import cubes

__all__ = ["experiments"]

PAPER = "Dunsche, Kutta and Dette (2022)"
_ALPHA, _RUNS = 0.05, 1000
_REPLICATES = 199  # of ours: with 199, unlike 200, a rank is 5% of all
_BOOTSTRAP, _ASYMPTOTIC = "bootstrap (3.4)", "asymptotic (3.3)"
_SIZES = (100, 300, 1000, 3000, 10_000, 30_000)  # of the power curves
_NOMINAL = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)

Floats = NDArray[np.float64]
Values = list[list[float | None]]


def _samples(study: Plain, seed: int) -> tuple[Floats, Floats, float]:
    rng = np.random.default_rng([seed, 0])
    n, law = int(study["n"]), study["law"]
    if law == "bell":
        return _bell(n, rng), _bell(n, rng), 1.0
    return cubes(int(study["d"]), n, rng, apart=float(study["apart"]), mixed=law == "tridiagonal")


def _bell(n: int, rng: np.random.Generator) -> Floats:
    """Draw from the density of example 3.2, proportional to exp(-2t²) on [-1, 1]."""
    rows = np.empty(0)
    while len(rows) < n:
        proposed = rng.normal(scale=0.5, size=2 * n)
        rows = np.concatenate([rows, proposed[np.abs(proposed) <= 1]])
    return rows[:n, None]


def _paper(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    """Run both tests of the paper on one release for each epsilon."""
    x, y, bound = _samples(study, seed)
    known: dict[float, tuple[float, Floats, int]] = {}
    found: Values = [[], []]
    for each in settings:
        epsilon, alpha = float(each["epsilon"]), float(each.get("alpha", _ALPHA))
        if epsilon not in known:
            rng, noise = np.random.default_rng([seed, 1]), SimulatedNoise(seed)
            known[epsilon] = hotelling_statistics(
                x, y, bound=bound, epsilon=epsilon, rng=rng, noise=noise
            )
        observed, replicates, dimension = known[epsilon]
        found[0].append(exceeds_bootstrap(observed, replicates, alpha))
        found[1].append(exceeds_asymptotic(observed, dimension, alpha))
    return found


def _ours(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y, bound = _samples(study, seed)
    known: dict[float, float] = {}
    for each in settings:
        epsilon = float(each["epsilon"])
        if epsilon not in known:
            options: Any = {"bounds": (-bound, bound), "n_bootstrap": _REPLICATES}
            noise = SimulatedNoise(seed)
            known[epsilon] = hotelling_test(
                x, y, epsilon=epsilon, rng=seed, noise=noise, **options
            ).pvalue
    return [[known[float(s["epsilon"])] <= float(s.get("alpha", _ALPHA)) for s in settings]]


ARMS = (
    Arm((_BOOTSTRAP, _ASYMPTOTIC), "paper", _paper),
    Arm(("hotelling_test",), "ours", _ours, 0.2),
)


def _level_points(table: str, law: str) -> tuple[Point, ...]:
    numbers = published("dunsche.json")
    first = numbers[table][_BOOTSTRAP]
    points = []
    for d in first:
        for epsilon in first[d]:
            for place, n in enumerate(numbers["sizes"]):
                study = {"law": law, "d": int(d), "n": n, "apart": 0.0}
                rates = {name: rows[d][epsilon][place] for name, rows in numbers[table].items()}
                panel = f"d = {d}, epsilon = {epsilon}"
                points.append(Point(panel, n, study, {"epsilon": float(epsilon)}, rates))
    return tuple(points)


def _power_points(law: str, dimensions: tuple[int, ...], epsilons: tuple[float, ...]) -> Any:
    return tuple(
        Point(
            f"d = {d}, epsilon = {epsilon:g}",
            n,
            {"law": law, "d": d, "n": n, "apart": 1.0},
            {"epsilon": epsilon},
        )
        for d in dimensions
        for epsilon in epsilons
        for n in _SIZES
    )


def _quantile_points() -> tuple[Point, ...]:
    rates = published("dunsche.json")["example 3.2"][_ASYMPTOTIC]
    return tuple(
        Point(
            f"epsilon = {epsilon}",
            alpha,
            {"law": "bell", "n": 500},
            {"epsilon": float(epsilon), "alpha": alpha},
            {_ASYMPTOTIC: rates[epsilon]} if alpha == _ALPHA else {},
        )
        for epsilon in rates
        for alpha in _NOMINAL
    )


_PROOFS = ("covariance", "means", "moments")


def _entry(
    name: str,
    figure: str,
    title: str,
    says: str,
    points: tuple[Point, ...],
    *,
    measure: Measure,
    axis: str = "rows in each sample",
    columns: int = 4,
) -> Experiment:
    return Experiment(
        name=f"dunsche-{name}",
        paper=PAPER,
        figure=figure,
        title=title,
        says=says,
        differs=_LEVEL_DIFFERS if measure == "level" else _POWER_DIFFERS,
        proofs=_PROOFS,
        measure=measure,
        axis=axis,
        points=points,
        arms=ARMS,
        runs=_RUNS,
        log=True,
        columns=columns,
        no_yardstick=(_ASYMPTOTIC,),
    )


_LEVEL_DIFFERS = (
    "Ours redraws the noise of the covariance too when it is replicated. Cells here have few runs "
    "of it, of the same seeds; with more, [it has its level](../figures.md#means). The asymptotic "
    "test of the paper takes chi-square quantiles as if there were no noise, and rejects nearly "
    "always."
)
_POWER_DIFFERS = (
    "The two samples are of different people, so each may be given the whole epsilon, where the "
    "paper divides it by four; means get noise for the largest coordinate, not for their sum; and "
    "the second moment, about 0, has the sensitivity that the paper's centred covariance lacks."
)


def experiments() -> tuple[Experiment, ...]:
    """Return the tables and figures that can be run again."""
    everywhere = (0.1, 0.5, 1.0, 5.0)
    return (
        _entry(
            "table-1",
            "table 1",
            "level on cubes",
            "The paper's bootstrap has its level, its asymptotic test has not. Values of the "
            "paper are circles on dashed lines.",
            _level_points("table 1", "centred"),
            measure="level",
        ),
        _entry(
            "table-2",
            "table 2",
            "level with dependent columns",
            "As in table 1, with a tridiagonal covariance.",
            _level_points("table 2", "tridiagonal"),
            measure="level",
            columns=3,
        ),
        _entry(
            "1",
            "figure 1",
            "quantiles of the private statistic and of chi-square (d = 1, n = 500)",
            "The paper draws two quantile functions; here is what follows from them, how often "
            "the test rejects at each nominal level. With epsilon = 1 the chi-square law is far "
            "off.",
            _quantile_points(),
            measure="level",
            axis="nominal level",
            columns=2,
        ),
        _entry(
            "2",
            "figure 2",
            "power on cubes whose means are 1 apart",
            "The more columns, the more rows the paper's test needs; ours needs far fewer there.",
            _power_points("centred", (1, 10, 30), everywhere),
            measure="power",
        ),
        _entry(
            "3",
            "figure 3",
            "power with dependent columns",
            "As in figure 2, with a tridiagonal covariance: at epsilon = 1 the paper's test needs "
            "about 3,000 rows for ten columns and 10,000 for thirty. The asymptotic test rejects "
            "always, with or without a difference.",
            _power_points("tridiagonal", (10, 30), everywhere[:3]),
            measure="power",
            columns=3,
        ),
    )
