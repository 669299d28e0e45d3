"""Samples of numeric columns with public bounds, and the units that estimates are shown in."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Budget
from privatest.core.validation import integer_at_least, one_of, reject
from privatest.data.encoding import Bounds, Unnamed, described
from privatest.data.schema import NumericColumn, Schema
from privatest.means.bootstrap import Contrast
from privatest.means.release import plan_release, release_sample

__all__ = [
    "CALIBRATIONS",
    "Box",
    "check_bootstrap",
    "compare_two",
    "look_at_one",
    "public_box",
    "require_bounds",
    "sample_budget",
]

CALIBRATIONS = ("bootstrap", "normal", "asymptotic")
_LARGEST = 1e150  # of a bound: squares have to stay finite

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """The public bounds: u in [-1, 1]^d is ``centre + half · u`` in the units of the data."""

    centre: Floats
    half: Floats
    names: tuple[str, ...] | None

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return len(self.half)

    def point(self, u: Floats) -> Floats:
        """Return a point of the cube in the units of the data."""
        return self.centre + self.half * u

    def matrix(self, covariance: Floats) -> Floats:
        """Return a covariance of the cube in the units of the data."""
        return covariance * np.outer(self.half, self.half)

    @property
    def public(self) -> dict[str, Any]:
        """Names of the columns, where there are any: a public parameter."""
        return {} if self.names is None else {"columns": list(self.names)}


def public_box(bounds: Unnamed, dimension: int, names: tuple[str, ...] | None = None) -> Box:
    """Return the box that ``bounds`` describe; call it after the data was encoded by them."""
    if isinstance(bounds, Schema):
        ends = []
        for name, column in bounds.columns.items():
            if not isinstance(column, NumericColumn):
                raise DataError(f"column {name!r} is categorical: means need numeric columns.")
            ends.append((column.lower, column.upper))
        pairs, names = np.array(ends), tuple(bounds.columns)
    else:
        pairs = np.broadcast_to(np.asarray(bounds, dtype=np.float64), (dimension, 2))
    if np.abs(pairs).max() > _LARGEST:
        reject("bounds", f"at most {_LARGEST:g} in size: squares have to be finite", pairs.tolist())
    return Box(pairs.mean(axis=1), (pairs[:, 1] - pairs[:, 0]) / 2, names)


def require_bounds(bounds: Bounds, *data: object) -> Unnamed:
    """Refuse to go on without public bounds: a mean of unbounded values cannot be private."""
    if bounds is None:
        raise ParameterError(
            "bounds must be given: a pair (lower, upper), one for each column, or a Schema. The "
            "noise depends on them, and bounds found from the data would leak it."
        )
    return described(bounds, *data)


def check_bootstrap(calibration: str, n_bootstrap: int, alpha: float) -> None:
    """Refuse a bootstrap that could never reject."""
    one_of("calibration", calibration, CALIBRATIONS)
    integer_at_least("n_bootstrap", n_bootstrap, 1)
    if calibration != "asymptotic" and alpha * (n_bootstrap + 1) < 1:
        reject("n_bootstrap", f"at least 1/alpha - 1 = {1 / alpha - 1:.0f}", n_bootstrap)


def sample_budget(budget: Budget, adjacency: Adjacency) -> Budget:
    """Return what each sample may spend: a record is in one of them, or in both."""
    if adjacency == "row":
        raise ParameterError(
            "adjacency must be 'one' or 'both': the noise and the statistic need the sizes of "
            "the groups, so they have to be public. For private groups use mmd_test or ipm_test."
        )
    one_of("adjacency", adjacency, ("one", "both"))
    if adjacency == "one":
        return budget
    if budget.epsilon < Decimal("2e-6"):
        reject("epsilon", "at least 0.000002 for adjacency='both'", float(budget.epsilon))
    half = Decimal("0.5")
    epsilon, delta = budget.epsilon * half, budget.delta * half
    step = Decimal("1e-18")  # a budget is rounded up to this: take it off
    return Budget(epsilon - epsilon % step, delta - delta % step)


def look_at_one(
    rows: Floats, budget: Budget, rows_per_person: int, noise: NoiseSource, **share: float
) -> Contrast:
    """Release one sample."""
    if len(rows) < 2:
        raise DataError("x must have at least 2 rows.")
    plan = plan_release(len(rows), rows.shape[1], budget, rows_per_person, **share)
    return Contrast((release_sample(rows, plan, noise),), (1.0,), float(len(rows)))


def compare_two(
    samples: tuple[Floats, Floats],
    budget: Budget,
    rows_per_person: int,
    noise: NoiseSource,
    *,
    equal_covariance: bool,
) -> Contrast:
    """Release two samples; ``budget`` is that of each."""
    n, m = (len(rows) for rows in samples)
    if min(n, m) < 2:
        raise DataError("each sample must have at least 2 rows.")
    if not isinstance(equal_covariance, bool):
        reject("equal_covariance", "True or False", equal_covariance)
    plans = [plan_release(len(r), r.shape[1], budget, rows_per_person) for r in samples]
    released = tuple(
        release_sample(rows, plan, noise) for rows, plan in zip(samples, plans, strict=True)
    )
    # unequal: remark 3.2 of Dunsche, Kutta and Dette
    weights = (
        ((n - 1) / (n + m - 2), (m - 1) / (n + m - 2))
        if equal_covariance
        else (m / (n + m), n / (n + m))
    )
    return Contrast(released, weights, n * m / (n + m), equal_covariance)
