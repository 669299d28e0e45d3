"""Awan and Wang (2022): figures 1 to 3, power of goodness of fit, two samples and pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import SimulatedNoise
from privatest.methods.fit_families import ks_family
from privatest.methods.ks import ks_1samp, ks_2samp
from privatest.methods.ranks import kruskal, mannwhitneyu, median_test
from privatest.methods.signs import sign_test, symmetry_test, wilcoxon
from privatest_papers.awan_wang import paper_decision
from privatest_papers.experiment import Arm, Experiment, Plain, Point
from privatest_papers.samplers import sample_of

__all__ = ["experiments"]

PAPER = "Awan and Wang (2022)"
_SIZES, _EPSILONS = (50, 100, 200, 400, 800, 1600), (0.1, 1.0)
_RUNS = 1000  # the paper does not say how many it has
_BOUNDS = (-1000.0, 1000.0)  # of the family test, which clips to them

Floats = NDArray[np.float64]
Values = list[list[float | None]]
Test = Callable[..., Any]


def _samples(study: Plain, seed: int) -> tuple[Floats, ...]:
    rng, n = np.random.default_rng([seed, 0]), int(study["n"])
    laws = study["laws"]
    return tuple(sample_of(law, n, rng, centre) for law, centre in laws)


def _paper(study: Plain, settings: Sequence[Plain], seed: int, names: Sequence[str]) -> Values:
    samples = _samples(study, seed)
    return [
        [
            paper_decision(name, *samples, epsilon=each["epsilon"], noise=SimulatedNoise(seed))
            for each in settings
        ]
        for name in names
    ]


def _ours(study: Plain, settings: Sequence[Plain], seed: int, tests: Sequence[Test]) -> Values:
    samples = _samples(study, seed)
    return [
        [
            test(*samples, epsilon=each["epsilon"], noise=SimulatedNoise(seed)).reject
            for each in settings
        ]
        for test in tests
    ]


# --- goodness of fit -------------------------------------------------------------------------

_FIT = ("KS", "Kuiper", "Cramér-von Mises")


def _paper_fit(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    return _paper(study, settings, seed, _FIT)


def _fit(statistic: str) -> Test:
    def test(x: Floats, **options: Any) -> Any:
        return ks_1samp(x, "norm", statistic=statistic, **options)  # type: ignore[arg-type]

    return test


def _our_fit(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    return _ours(study, settings, seed, [_fit("ks"), _fit("kuiper"), _fit("cvm")])


def _our_family(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    def test(x: Floats, **options: Any) -> Any:
        return ks_family(x, "norm", bounds=_BOUNDS, statistic="kuiper", **options)

    return _ours(study, settings, seed, [test])


# --- two samples -----------------------------------------------------------------------------

_TWO = ("two-sample KS", "two-sample Kuiper", "Mann-Whitney", "Kruskal-Wallis", "median")


def _paper_two(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    return _paper(study, settings, seed, _TWO)


def _our_two(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    def kuiper(x: Floats, y: Floats, **options: Any) -> Any:
        return ks_2samp(x, y, statistic="kuiper", **options)

    return _ours(study, settings, seed, [ks_2samp, kuiper, mannwhitneyu, kruskal, median_test])


# --- pairs -----------------------------------------------------------------------------------

_PAIRED = ("paired KS", "paired Kuiper", "sign", "Wilcoxon")


def _paper_paired(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    return _paper(study, settings, seed, _PAIRED)


def _our_paired(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    def kuiper(x: Floats, **options: Any) -> Any:
        return symmetry_test(x, statistic="kuiper", **options)

    return _ours(study, settings, seed, [symmetry_test, kuiper, sign_test, wilcoxon])


# --- the figures -----------------------------------------------------------------------------


def _points(rows: dict[str, list[list[Any]]]) -> tuple[Point, ...]:
    return tuple(
        Point(f"{title}, epsilon = {e:g}", n, {"laws": laws, "n": n}, {"epsilon": e})
        for title, laws in rows.items()
        for e in _EPSILONS
        for n in _SIZES
    )


def _entry(
    number: int, title: str, says: str, points: tuple[Point, ...], *arms: Arm, differs: str
) -> Experiment:
    return Experiment(
        name=f"awan-wang-{number}",
        paper=PAPER,
        figure=f"figure {number}",
        title=title,
        says=says,
        differs=differs,
        proofs=("ks-type", "location-scale", "rank-tests"),
        measure="power",
        axis="n",
        points=points,
        arms=arms,
        runs=_RUNS,
        log=True,
        columns=2,
    )


def experiments() -> tuple[Experiment, ...]:
    """Return the figures that can be run again."""
    normal = ["normal", 0.0]
    return (
        _entry(
            1,
            "goodness of fit to N(0, 1)",
            "KS and Cramér-von Mises see a shift first, Kuiper a spread. With unknown mean and "
            "standard deviation only the shape is left to see.",
            _points(
                {
                    "N(.1, 1)": [["normal", 0.1]],
                    "Cauchy": [["Cauchy", 0.0]],
                    "Laplace": [["Laplace", 0.0]],
                }
            ),
            Arm(_FIT, "paper", _paper_fit),
            Arm(("ks_1samp, KS", "ks_1samp, Kuiper", "ks_1samp, CvM"), "ours", _our_fit),
            Arm(("ks_family, Kuiper",), "ours", _our_family, 0.1),
            differs=(
                "Statistics and noise are those of the paper; ours has the law under the null "
                "exactly where the paper draws 1000 replicates. The paper's tests with unknown "
                "parameters are not run again: its optimiser does not find the least distance, "
                "so that they are not private; ours finds it with a certificate."
            ),
        ),
        _entry(
            2,
            "two samples of n each",
            "Rank tests see shifts and nothing else; Kuiper sees a spread that KS sees late. "
            "The paper's caption has the same law twice in its second row; it is Cauchy shifted "
            "by 1, as its text says.",
            _points(
                {
                    "N(0, 1), N(1, 1)": [normal, ["normal", 1.0]],
                    "Cauchy(0), Cauchy(1)": [["Cauchy", 0.0], ["Cauchy", 1.0]],
                    "N(0, 1), Cauchy": [normal, ["Cauchy", 0.0]],
                }
            ),
            Arm(_TWO, "paper", _paper_two),
            Arm(
                ("ks_2samp", "ks_2samp, Kuiper", "mannwhitneyu", "kruskal", "median_test"),
                "ours",
                _our_two,
                0.2,
            ),
            differs=(
                "KS, Kuiper and Mann-Whitney have the paper's noise; Kruskal-Wallis needs a half "
                "of the paper's 8, and the median test folds its count before noise is added."
            ),
        ),
        _entry(
            3,
            "pairs: is the change symmetric about 0?",
            "The sign test is blind where the median is 0, as for the exponential law.",
            _points(
                {
                    "N(.2, 1)": [["normal", 0.2]],
                    "Cauchy(.2)": [["Cauchy", 0.2]],
                    "Exp(1) - log 2": [["exponential", 0.0]],
                }
            ),
            Arm(_PAIRED, "paper", _paper_paired),
            Arm(
                ("symmetry_test", "symmetry_test, Kuiper", "sign_test", "wilcoxon"),
                "ours",
                _our_paired,
                0.5,
            ),
            differs=(
                "Statistics and noise are those of the paper; the sign test folds its count "
                "before noise is added, which needs less of it."
            ),
        ),
    )
