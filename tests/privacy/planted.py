"""Tests with a mistake in them, of the kinds that have been made; they exist to be caught.

Each is a small test as somebody would write it with our mechanisms, wrong in one place.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.audit.cases import SCHEMAS, Case, Replaced
from privatest.core.noise import NoiseSource, record, released
from privatest.core.privacy import Budget, PermutationSensitivity, Sensitivity
from privatest.core.results import Outcome
from privatest.mechanisms.additive import count_noise, laplace, noisy_counts
from privatest.mechanisms.permutation import smoothed_pvalue
from privatest.noise import SimulatedNoise
from privatest.numerics.order import doubled_ranks
from privatest_papers.raj import paper_sensitivity, paper_statistic

ONE = Budget(1)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """What a planted test is given."""

    x: Floats
    y: Floats
    raw: Floats
    colours: list[str]
    first: NDArray[np.bool_]

    @property
    def n(self) -> int:
        return len(self.x)


Test = Callable[[Rows, NoiseSource], Outcome]


def outcome(
    statistic: float, *, pvalue: float = 1.0, estimates: Any = None, **public: Any
) -> Outcome:
    return Outcome(
        reject=pvalue <= 0.05,
        alpha=0.05,
        spent=ONE,
        simulated=False,
        adjacency="one",
        method="planted",
        null_hypothesis="",
        sizes={},
        parameters=public,
        pvalue=pvalue,
        statistic=statistic,
        estimates=estimates or {},
    )


def noisy(value: float, bound: float, noise: NoiseSource, budget: Budget = ONE) -> float:
    return laplace(float(value), sensitivity=Sensitivity(bound), budget=budget, noise=noise)


def enough(n: int) -> float:
    return (1 + 1e-12) / n


def correct(rows: Rows, noise: NoiseSource) -> Outcome:
    return outcome(noisy(rows.x.mean(), enough(rows.n), noise))


def of_two_groups(rows: Rows, noise: NoiseSource) -> Outcome:
    """Enough for a row of one group, and not for one of each."""
    x, y = rows.x[rows.first], rows.x[~rows.first]
    return outcome(noisy(x.mean() - y.mean(), enough(min(len(x), len(y))), noise))


def half_the_noise(rows: Rows, noise: NoiseSource) -> Outcome:
    return outcome(noisy(rows.x.mean(), enough(rows.n), noise, Budget(2)))


def n_for_the_smaller_size(rows: Rows, noise: NoiseSource) -> Outcome:
    x, y = rows.x[rows.first], rows.x[~rows.first]
    return outcome(noisy(abs(x.mean() - y.mean()), enough(len(x)), noise))


def a_seeded_generator(rows: Rows, noise: NoiseSource) -> Outcome:
    return outcome(noisy(rows.x.mean(), enough(rows.n), SimulatedNoise(7)))


def a_raw_pvalue(rows: Rows, noise: NoiseSource) -> Outcome:
    told = noisy(rows.x.mean(), enough(rows.n), noise)
    return outcome(told, pvalue=float(rows.x.mean()))


def a_forgotten_clip(rows: Rows, noise: NoiseSource) -> Outcome:
    return outcome(noisy(rows.raw.mean(), enough(rows.n), noise))


def a_bandwidth_from_data(rows: Rows, noise: NoiseSource) -> Outcome:
    width = float(np.median(np.abs(rows.x - np.median(rows.x)))) + 0.1
    features = np.exp(-(rows.x**2) / width)
    return outcome(noisy(features.mean(), enough(rows.n), noise), bandwidth=width)


def a_nan_path(rows: Rows, noise: NoiseSource) -> Outcome:
    if np.isnan(rows.raw).any():
        return outcome(0.0)
    return outcome(noisy(rows.x.mean(), enough(rows.n), noise))


def double_spending(rows: Rows, noise: NoiseSource) -> Outcome:
    told = noisy(rows.x.mean(), enough(rows.n), noise)
    more = noisy((rows.x**2).mean(), enough(rows.n), noise)
    return outcome(told, estimates={"square": more})


def an_inferred_domain(rows: Rows, noise: NoiseSource) -> Outcome:
    counts = np.unique(np.array(rows.colours), return_counts=True)[1]
    law = count_noise(len(counts), ONE)
    told = noisy_counts(counts, law=law, budget=ONE, noise=noise)
    return outcome(float(told.max()))


def the_published_tcs(rows: Rows, noise: NoiseSource) -> Outcome:
    x, y = rows.x[:, None], 1 - rows.y[:, None]
    statistic = paper_statistic(x, y, [[0.0]], variance=0.1, gamma=1e-3)
    return outcome(noisy(statistic, paper_sensitivity(rows.n, 1, gamma=1e-3), noise))


def a_fitted_family(rows: Rows, noise: NoiseSource) -> Outcome:
    """Nelder and Mead's search stops somewhere: how far from the least is not bounded."""
    from scipy.optimize import minimize
    from scipy.stats import norm

    x, up = np.sort(rows.x), np.arange(1, rows.n + 1) / rows.n

    def distance(parameters: Floats) -> float:
        cdf = norm.cdf(x, parameters[0], abs(parameters[1]) + 1e-3)
        return float(np.maximum(np.abs(up - cdf), np.abs(up - 1 / rows.n - cdf)).max())

    middle = np.median(x)
    start = np.array([middle, np.median(np.abs(x - middle))])
    found = minimize(distance, start, method="Nelder-Mead", options={"maxiter": 10})
    return outcome(noisy(found.fun, enough(rows.n), noise))


def midranks(rows: Rows, noise: NoiseSource) -> Outcome:
    """Count records of the first group above the median, by midranks: blocks change at once."""
    above = doubled_ranks(rows.x) > rows.n + 1
    return outcome(noisy(float(above[rows.first].sum()), 2.0, noise))


def reused_noise(rows: Rows, noise: NoiseSource) -> Outcome:
    half, bound = Budget("0.5"), enough(rows.n)
    told = noisy(rows.x.mean(), bound, noise, half)
    repeat = partial(reused_noise, rows=rows)
    record(noise, "laplace", rows.y.mean(), "absolute", (bound,), bound * 2, repeat)
    again = rows.y.mean() + (told - rows.x.mean())
    return outcome(told, estimates={"y": float(again)})


def inverted(value: float, scale: float, noise: NoiseSource) -> float:
    """Laplace noise by the inverse of its distribution function, in floating point."""
    repeat = partial(inverted, value=value, scale=scale)
    record(noise, "laplace", value, "absolute", (1.0,), scale, repeat)
    u = float(noise.uniforms(1)[0]) - 0.5
    return released(noise, value - scale * float(np.sign(u) * np.log1p(-2 * abs(u))))


def float_inversion(rows: Rows, noise: NoiseSource) -> Outcome:
    return outcome(inverted(float((rows.x > 0.5).sum()), 1.0, noise))


def one_sensitivity_for_both(rows: Rows, noise: NoiseSource) -> Outcome:
    """Permuted statistics of private groups move twice as far as the observed one."""
    statistics = np.array([rows.x.mean() / 2, *[1 - rows.x.mean()] * 19])
    bound = PermutationSensitivity(enough(2 * rows.n), enough(2 * rows.n))
    told = smoothed_pvalue(statistics, sensitivity=bound, budget=ONE, noise=noise)
    return outcome(0.0, pvalue=told)


def a_warning(rows: Rows, noise: NoiseSource) -> Outcome:
    if rows.x.mean() > 0.5:
        warnings.warn("many large values", stacklevel=1)
    return outcome(noisy(rows.x.mean(), enough(rows.n), noise))


def a_time(rows: Rows, noise: NoiseSource) -> Outcome:
    if np.ptp(rows.x) == 0:
        time.sleep(0.3)
    return outcome(noisy(rows.x.mean(), enough(rows.n), noise))


def a_time_of_what_is_released(rows: Rows, noise: NoiseSource) -> Outcome:
    """No mistake: whoever has the released number can tell how long it took."""
    told = noisy(rows.x.mean(), enough(rows.n), noise)
    for place in range(100_000 if told > 0.25 else 0):
        abs(place)
    return outcome(told)


def row_order(rows: Rows, noise: NoiseSource) -> Outcome:
    """Rows at even places against those at odd ones: in a sorted file one row moves them all."""
    signs = 1.0 - 2.0 * (np.arange(rows.n) % 2)
    return outcome(noisy(float((signs * (rows.y > 0.5)).sum()), 1.0, noise))


def rounding_down(rows: Rows, noise: NoiseSource) -> Outcome:
    """A statistic on a grid moves by a step more than the sensitivity in steps, rounded down."""
    step = 0.6 / rows.n
    return outcome(noisy(np.floor(rows.x.mean() / step), 1.0, noise))


def a_rounded_down_pvalue(rows: Rows, noise: NoiseSource) -> Outcome:
    uniform = float(noise.uniforms(1)[0])
    noisy(0.0, 1.0, noise)
    return outcome(0.0, pvalue=np.floor(uniform * 4) / 4)


def case(
    test: Test,
    columns: tuple[str, ...] = ("x", "y"),
    name: str = "planted",
    replaces: Replaced = "a row",
) -> Case:
    """Return a planted test as a case of an audit."""
    schema = SCHEMAS["missing"]

    def call(table: Any, noise: NoiseSource, rng: int | None) -> Outcome:
        del rng
        codes = schema.select(["x", "y"]).encode(table.select(["x", "y"]))
        raw = np.array(table.column("x").to_pandas(), dtype=np.float64)
        first = np.array(table.column("arm").to_pylist()) == "a"
        colours = [c or "" for c in table.column("colour").to_pylist()]
        return test(Rows(codes[:, 0], codes[:, 1], raw, colours, first), noise)

    return Case(f"planted/{name}", name, ONE, schema, columns, call, replaces=replaces)
