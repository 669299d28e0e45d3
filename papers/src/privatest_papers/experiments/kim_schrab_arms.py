"""Kim and Schrab (2023): the tests that its figures compare, each on one simulated study.

TOT and SARRM are those of :mod:`privatest.methods.subsample`, with the settings of the paper. Data
is that of the authors' code, which perturbs one column (one of each side for independence) and
leaves the others uniform; equation (18) would perturb all at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.noise import SimulatedNoise
from privatest.data.schema import Domain
from privatest.mechanisms.subsample import sarrm_parameters
from privatest.methods.hsic import hsic_test
from privatest.methods.mmd import mmd_test
from privatest.methods.subsample import hsic_pvalue, mmd_pvalue, sarrm_test, test_of_tests
from privatest.numerics.kernels import Kernel
from privatest_papers.experiment import Arm, Plain
from privatest_papers.images import image_samples
from privatest_papers.kim_schrab import (
    dp_permutation_decision,
    paper_hsic_sensitivity,
    paper_mmd_sensitivity,
)
from privatest_papers.kim_schrab_statistics import hsic_statistics, mmd_statistics
from privatest_papers.raj import paper_tcs_decision
from privatest_papers.raj_locations import climbed_locations
from privatest_papers.samplers import perturbed_uniform

__all__ = ["HSIC_ARMS", "MMD_ARMS", "noisy_ranks"]

_PERMUTATIONS, _FEWER = 2000, 299  # the second for several columns, where each takes long
_OF_A_SUBSET = 199  # permutations, of the test of tests
_MOST_COLUMNS = 1000
_SCALE = 4.0  # the authors multiply the data of two samples by this
_ALPHA, _DELTA = 0.05, 1e-5  # the second for TCS-ME

Floats = NDArray[np.float64]
Values = list[list[float | None]]


def noisy_ranks(
    biased: Floats,
    unbiased: Floats,
    sensitivities: tuple[float, float],
    settings: Sequence[Plain],
    seed: int,
) -> Values:
    """Decide by algorithm 1, by naive composition, and by algorithm 1 with U-statistics.

    The naive test divides epsilon among all permutations: algorithm 1 with B/2 times the noise.
    """
    noise = SimulatedNoise(seed)
    found: Values = [[], [], []]
    for each in settings:
        epsilon = float(each["epsilon"])
        cases = (
            (biased, sensitivities[0]),
            (biased, sensitivities[0] * _PERMUTATIONS / 2),
            (unbiased, sensitivities[1]),
        )
        for place, (values, step) in enumerate(cases):
            found[place].append(
                dp_permutation_decision(values, sensitivity=step, epsilon=epsilon, noise=noise)
            )
    return found


# --- two samples -----------------------------------------------------------------------------


def _samples(study: Plain, seed: int) -> tuple[Floats, Floats, np.random.Generator]:
    rng = np.random.default_rng([seed, 0])
    n, d = int(study["n"]), int(study["d"])
    if "images" in study:
        x, y = image_samples(study["images"], n, float(study["corruption"]), rng)
        return x, y, np.random.default_rng([seed, 1])
    x, y = rng.uniform(size=(2, n, d))
    amplitude = float(study["amplitude"])
    if amplitude:
        y[:, :1] = perturbed_uniform(n, 1, amplitude, rng)
    return x, y, np.random.default_rng([seed, 1])


def _width(study: Plain) -> float:
    """Return the paper's bandwidth, sqrt(d) on data that was multiplied, on the unit cube."""
    return math.sqrt(study["d"]) / float(study.get("scale", _SCALE))


def _permutations(study: Plain) -> int:
    return _PERMUTATIONS if study["d"] == 1 else _FEWER


def _dp_mmd(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y, rng = _samples(study, seed)
    biased, unbiased = mmd_statistics(x, y, _width(study), _permutations(study), rng)
    lower = 4 / len(x)  # the authors run the lower end of lemma 7
    return noisy_ranks(
        biased, unbiased, (paper_mmd_sensitivity(len(x), len(y)), lower), settings, seed
    )


def _tot_mmd(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y, _ = _samples(study, seed)
    return [_tot(x, y, study, settings, seed)]


def _sarrm_mmd(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y, _ = _samples(study, seed)
    return [_sarrm(x, y, study, settings, seed)]


def _tcs(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y, rng = _samples(study, seed)
    locations, variance, left = climbed_locations(_SCALE * x, _SCALE * y, rng)
    options: Any = {"variance": variance, "gamma": 1e-5, "kappa": 1.0, "analytic": True}
    noise = SimulatedNoise(seed)
    return [
        [
            paper_tcs_decision(
                *left,
                locations,
                epsilon=each["epsilon"],
                delta=_DELTA,
                rng=rng,
                noise=noise,
                **options,
            )
            for each in settings
        ]
    ]


def _our_mmd(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y, _ = _samples(study, seed)
    found: Values = [[], []]
    for each in settings:
        options = {"epsilon": each["epsilon"], "bounds": (0, 1), "release": "decision"}
        for place, widths in enumerate((None, _width(study))):
            if widths is None and study["d"] > _MOST_COLUMNS:
                found[place].append(None)  # of whole photographs the default takes too long
                continue
            noise = SimulatedNoise(seed)
            test = mmd_test(x, y, bandwidths=widths, rng=seed, noise=noise, **options)
            found[place].append(test.reject)
    return found


# --- independence ----------------------------------------------------------------------------


def _columns(study: Plain, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng([seed, 0])
    n, d, amplitude = int(study["n"]), int(study["d"]), float(study["amplitude"])
    x, y = rng.uniform(size=(2, n, d))
    if amplitude:
        x[:, :1], y[:, :1] = np.hsplit(perturbed_uniform(n, 2, amplitude, rng), 2)
    return x, y


def _dp_hsic(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y = _columns(study, seed)
    rng = np.random.default_rng([seed, 1])
    biased, unbiased = hsic_statistics(x, y, _width(study), _PERMUTATIONS, rng)
    lower = 2 / len(x)  # the lower end of lemma 9, as the authors run it
    return noisy_ranks(biased, unbiased, (paper_hsic_sensitivity(len(x)), lower), settings, seed)


def _tot_hsic(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y = _columns(study, seed)
    return [_tot(x, y, study, settings, seed)]


def _sarrm_hsic(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y = _columns(study, seed)
    return [_sarrm(x, y, study, settings, seed)]


def _our_hsic(study: Plain, settings: Sequence[Plain], seed: int) -> Values:
    x, y = _columns(study, seed)
    found: Values = [[], []]
    for each in settings:
        for place, width in enumerate((None, _width(study))):
            options: Any = {"bounds_x": (0, 1), "bounds_y": (0, 1), "release": "decision"}
            options |= {"bandwidths_x": width, "bandwidths_y": width, "noise": SimulatedNoise(seed)}
            test = hsic_test(x, y, epsilon=each["epsilon"], rng=seed, **options)
            found[place].append(test.reject)
    return found


# --- subsets ---------------------------------------------------------------------------------


def _tot(
    x: Floats, y: Floats, study: Plain, settings: Sequence[Plain], seed: int
) -> list[float | None]:
    kernel, domain = Kernel("gaussian", _width(study)), Domain((0,) * int(study["d"]))
    rng = np.random.default_rng([seed, 2])

    def pvalue(one: Floats, other: Floats) -> float:
        if "scale" in study:
            return hsic_pvalue(one, other, (kernel,) * 2, (domain,) * 2, _OF_A_SUBSET, rng)
        return mmd_pvalue(one, other, kernel, domain, _OF_A_SUBSET, rng)

    count = {"n_subsets": round(len(x) ** 0.5)}
    options = [(float(each["epsilon"]), count) for each in settings]
    return _subsets(test_of_tests, x, y, pvalue, options, "scale" in study, seed)


def _sarrm(
    x: Floats, y: Floats, study: Plain, settings: Sequence[Plain], seed: int
) -> list[float | None]:
    """Run SARRM with 5 subsets or more: the authors' search starts there.

    A subset of n rows of one column has 2n - 1 shifts (n - 1 for HSIC): where epsilon is small
    and subsets are too, p-values are coarser than the level of a subset, and few reject.
    """
    statistics: Any = hsic_statistics if "scale" in study else mmd_statistics
    count, rng = _permutations(study), np.random.default_rng([seed, 2])

    def pvalue(one: Floats, other: Floats) -> float:
        biased, _ = statistics(one, other, _width(study), count, rng)
        return float(np.mean(biased >= biased[0]))

    options = []
    for each in settings:
        epsilon = float(each["epsilon"])
        least = max(5, sarrm_parameters(epsilon, _ALPHA).n_subsets)
        options.append((epsilon, {"n_subsets": least}))
    return _subsets(sarrm_test, x, y, pvalue, options, "scale" in study, seed)


def _subsets(
    test: Callable[..., Any],
    x: Floats,
    y: Floats,
    pvalue: Callable[[Floats, Floats], float],
    options: Sequence[tuple[float, Plain]],
    paired: bool,
    seed: int,
) -> list[float | None]:
    """Run a test on subsets for each epsilon; those that share subsets share their p-values."""
    known: dict[bytes, float] = {}

    def remembered(one: Floats, other: Floats) -> float:
        key = one.tobytes() + other.tobytes()
        if key not in known:
            known[key] = pvalue(one.reshape(len(one), -1), other.reshape(len(other), -1))
        return known[key]

    scheme = "independence" if paired else "two-sample"
    found: list[float | None] = []
    for epsilon, more in options:
        shared = {"scheme": scheme, "rng": seed, "noise": SimulatedNoise(seed)}
        try:
            result = test(x, y, pvalue=remembered, epsilon=epsilon, **shared, **more)
            found.append(result.reject)
        except ParameterError:  # SARRM needs more rows at this epsilon
            found.append(None)
    return found


# --- together --------------------------------------------------------------------------------

MMD_ARMS = (
    Arm(("dpMMD", "naive", "U-statistic"), "paper", _dp_mmd),
    Arm(("TOT",), "paper", _tot_mmd, 0.25),
    Arm(("SARRM",), "paper", _sarrm_mmd, 0.25),
    Arm(("TCS-ME",), "paper", _tcs),
    Arm(("mmd_test", "mmd_test, the paper's kernel"), "ours", _our_mmd, 0.5),
)
HSIC_ARMS = (
    Arm(("dpHSIC", "naive", "U-statistic"), "paper", _dp_hsic),
    Arm(("TOT",), "paper", _tot_hsic, 0.25),
    Arm(("SARRM",), "paper", _sarrm_hsic, 0.25),
    Arm(("hsic_test", "hsic_test, the paper's kernel"), "ours", _our_hsic, 0.5),
)
