"""The mechanisms themselves as cases: each adds its noise to numbers that move as far as allowed.

Their numbers are those of the made-up rows, scaled to the unit interval, so that the neighbours
which a search finds move them by the whole sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.audit.cases import Case
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, PermutationSensitivity, Sensitivity
from privatest.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["mechanism_case"]

_DELTA = 1e-3
Floats = NDArray[np.float64]
Unit = tuple[Floats, Floats]


def mechanism_case(name: str, epsilon: float, schema: Schema) -> Case:
    """Return the case of a mechanism."""
    delta = _DELTA if name == "gaussian" else 0.0
    budget = Budget(epsilon, delta)
    draw = _DRAWS[name]

    def run(table: pa.Table, noise: NoiseSource, rng: int | None) -> Any:
        del rng
        return draw(_unit(table, schema), budget, noise)

    return Case(
        f"mechanism/{name}",
        name,
        budget,
        schema,
        ("x", "y"),
        run,
        caution="the time to draw axes depends on values" if name == "covariance" else "",
        composed=name != "argmax",
    )


def _unit(table: pa.Table, schema: Schema) -> Unit:
    """Return x and y, clipped and on [0, 1]."""
    codes = schema.select(["x", "y"]).encode(table.select(["x", "y"]))
    return codes[:, 0], codes[:, 1]


def _rounded_up(n: int) -> float:
    return 1 / n * (1 + 1e-12)  # a mean of n floats errs by less


def _laplace(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.additive import laplace  # noqa: PLC0415

    bound = Sensitivity(_rounded_up(len(unit[0])))
    return laplace(float(unit[0].mean()), sensitivity=bound, budget=budget, noise=noise)


def _gaussian(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.additive import gaussian  # noqa: PLC0415

    means = np.array([unit[0].mean(), unit[1].mean()])
    bound = Sensitivity(np.sqrt(2) * _rounded_up(len(unit[0])), "l2")
    return gaussian(means, sensitivity=bound, budget=budget, noise=noise)


def _linf(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.additive import linf_mean  # noqa: PLC0415

    means, n = np.array([unit[0].mean(), unit[1].mean()]), len(unit[0])
    epsilon = float(budget.epsilon)
    return linf_mean(means, sensitivity=_rounded_up(n), epsilon=epsilon, noise=noise)


def _signed_sums(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.additive import signed_sums  # noqa: PLC0415

    n = len(unit[0])
    values = np.array([unit[0].mean(), (1 - unit[0]).mean()])  # one rises as the other falls
    epsilon = float(budget.epsilon)
    return signed_sums(values, sensitivity=_rounded_up(n), epsilon=epsilon, noise=noise)


def _covariance(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.covariance import covariance_ed  # noqa: PLC0415

    rows = np.column_stack(unit) / np.sqrt(2)
    n, epsilon = len(rows), float(budget.epsilon)
    return covariance_ed(rows.T @ rows, n=n, epsilon=epsilon, error=1e-13 * n, noise=noise)


def _cells(unit: Unit) -> NDArray[np.int64]:
    return np.bincount(np.minimum((4 * unit[0]).astype(int), 3), minlength=4)


def _counts(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.additive import count_noise, noisy_counts  # noqa: PLC0415

    return noisy_counts(_cells(unit), law=count_noise(4, budget), budget=budget, noise=noise)


def _cumulative(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.lattice import noisy_cumulative  # noqa: PLC0415
    from privatest.numerics.order import Tree  # noqa: PLC0415

    return noisy_cumulative(_cells(unit), Tree(4, 2, 2), moved=1, budget=budget, noise=noise)


def _exponential(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.additive import select_candidate  # noqa: PLC0415

    above = int((unit[0] > 0.5).sum())
    scores = np.array([above, len(unit[0]) - above])  # one rises as the other falls
    counts = np.ones(2, dtype=np.int64)
    return select_candidate(scores, counts, sensitivity=1, budget=budget, noise=noise)


def _tulap(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.lattice import noise_law, noisy_integer  # noqa: PLC0415

    successes = int((unit[0] > 0.5).sum())
    return noisy_integer(successes, law=noise_law(1, budget, "auto"), noise=noise)


def _statistics(unit: Unit) -> tuple[Floats, PermutationSensitivity]:
    """Return one observed statistic, and permuted ones which move against it."""
    observed, permuted = float(unit[0].mean()), float(1 - unit[0].mean())
    bound = _rounded_up(len(unit[0]))
    return np.array([observed, *[permuted] * 19]), PermutationSensitivity(bound, bound)


def _smoothed_pvalue(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.permutation import smoothed_pvalue  # noqa: PLC0415

    statistics, bound = _statistics(unit)
    return smoothed_pvalue(statistics, sensitivity=bound, budget=budget, noise=noise)


def _smoothed_decision(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.permutation import smoothed_decision  # noqa: PLC0415

    statistics, bound = _statistics(unit)
    return smoothed_decision(statistics, 0.05, sensitivity=bound, budget=budget, noise=noise)


def _one_draw(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.permutation import Share, any_rejects  # noqa: PLC0415

    half = Fraction(1, 2)
    tests = [Share(*_statistics(each), half) for each in (unit, unit[::-1])]
    return any_rejects(tests, 0.1, budget=budget, noise=noise)


def _coins(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.subsample import sarrm_parameters, sarrm_rejects  # noqa: PLC0415

    parameters = sarrm_parameters(float(budget.epsilon), 0.05)
    rejections = [False] * (parameters.n_subsets - 1)
    return sarrm_rejects([*rejections, bool(unit[0][0] > 0.5)], parameters, noise)


def _argmax(unit: Unit, budget: Budget, noise: NoiseSource) -> Any:
    from privatest.mechanisms.additive import noisy_argmax  # noqa: PLC0415

    values = [float(unit[0].mean()), float(1 - unit[0].mean())]
    bound = Sensitivity(_rounded_up(len(unit[0])))
    return noisy_argmax(values, sensitivity=bound, budget=budget, noise=noise)


_DRAWS: dict[str, Callable[[Unit, Budget, NoiseSource], Any]] = {
    "laplace": _laplace,
    "gaussian": _gaussian,
    "l-infinity": _linf,
    "signed sums": _signed_sums,
    "covariance": _covariance,
    "counts": _counts,
    "cumulative": _cumulative,
    "exponential": _exponential,
    "tulap": _tulap,
    "smoothed p-value": _smoothed_pvalue,
    "smoothed decision": _smoothed_decision,
    "one draw": _one_draw,
    "flipped coins": _coins,
    "argmax": _argmax,
}
