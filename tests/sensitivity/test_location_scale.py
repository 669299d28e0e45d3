"""No neighbours were found that move a fit by more than it says; a heuristic fit is caught."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.methods.fit_families import (
    BUILT_IN,
    Family,
    GridSample,
    family_named,
    ks_fit,
    ks_fit_sensitivity,
    kuiper_fit,
    kuiper_fit_sensitivity,
    on_grid,
)

STEPS = 1 << 20
SLACK = STEPS // 100
FAMILIES = [*BUILT_IN.values(), family_named("rayleigh")]


def draw(family: Family, n: int, rng: np.random.Generator) -> np.ndarray:
    """Records of [0, 1]: good fits, ties, atoms, outliers, clusters of all sizes, the bounds."""
    style = int(rng.integers(8))
    if style == 0:
        x = 0.5 + 0.01 * family.ppf(rng.uniform(0.001, 0.999, size=n))
    elif style == 1:
        x = rng.integers(1, 5, size=n) / 7
    elif style == 2:
        x = rng.choice(rng.uniform(size=2), size=n)
    elif style == 3:  # the rest of the range is one outlier's
        x = 0.5 + 1e-9 * rng.normal(size=n)
        x[: max(1, n // 10)] = rng.uniform(size=max(1, n // 10))
    elif style == 4:
        x = 0.5 + rng.choice([-1, 1], size=n) * 10.0 ** rng.uniform(-12, -0.4, size=n)
    elif style == 5:
        x = np.full(n, rng.uniform())
        x[0] = rng.uniform()
    elif style == 6:
        x = np.round(0.5 + 0.1 * rng.normal(size=n), 1)
    else:
        x = rng.choice([0.0, 1.0, 0.5, 0.5 + 2.0**-40, 0.25], size=n)
    return np.clip(x, 0.0, 1.0)


def neighbours(family: Family, n: int, rng: np.random.Generator):
    x = draw(family, n, rng)
    y = x.copy()
    other = [0.0, 1.0, rng.uniform(), rng.choice(x), np.median(x) + 2.0**-40, *draw(family, 1, rng)]
    # the extreme records are those that are worth replacing, most of the time
    record = rng.choice([int(np.argmin(x)), int(np.argmax(x)), int(rng.integers(n))])
    y[record] = np.clip(rng.choice(other), 0.0, 1.0)
    return x, y


def largest_move(fit, family: Family, sizes, rng: np.random.Generator) -> int:
    moves: list[int] = []
    for n in sizes:
        x, y = neighbours(family, int(n), rng)
        moves.append(abs(fit(x) - fit(y)))
    return max(moves)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_ks(family):
    rng = np.random.default_rng(1)
    sizes = [*range(2, 12), *rng.integers(2, 200, size=90 if family.name in BUILT_IN else 20)]
    move = largest_move(lambda x: ks_fit(on_grid(x), family, STEPS), family, sizes, rng)
    assert 0.4 * STEPS < move <= ks_fit_sensitivity(STEPS)


@pytest.mark.parametrize("family", BUILT_IN.values(), ids=lambda family: family.name)
def test_kuiper(family):
    rng = np.random.default_rng(2)
    sizes = [*range(2, 8), *rng.integers(8, 200, size=6)]
    move = largest_move(lambda x: kuiper_fit(on_grid(x), family, STEPS, SLACK), family, sizes, rng)
    assert 0.3 * STEPS < move <= kuiper_fit_sensitivity(STEPS, SLACK)


@pytest.mark.parametrize("family", BUILT_IN.values(), ids=lambda family: family.name)
def test_large_samples(family):
    rng = np.random.default_rng(3)
    sizes = [1000, 1000, 2500, 5000]
    move = largest_move(lambda x: ks_fit(on_grid(x), family, STEPS), family, sizes, rng)
    assert move <= ks_fit_sensitivity(STEPS)
    sizes = [1000, 2500, 5000, 5000]
    move = largest_move(lambda x: kuiper_fit(on_grid(x), family, STEPS, SLACK), family, sizes, rng)
    assert move <= kuiper_fit_sensitivity(STEPS, SLACK)


def test_several_rows_of_a_person():
    rng = np.random.default_rng(4)
    family = BUILT_IN["norm"]
    for _ in range(20):
        x = draw(family, 40, rng)
        y = x.copy()
        y[:3] = draw(family, 3, rng)
        move = abs(ks_fit(on_grid(x), family, STEPS) - ks_fit(on_grid(y), family, STEPS))
        assert move <= ks_fit_sensitivity(STEPS, 3)


def test_the_bound_is_nearly_attained():
    """Found by search: the largest record becomes the smallest."""
    family = BUILT_IN["expon"]
    first = np.array([0, 7, 8, 9, 9, 11, 12])
    second = np.array([-1_000_000, 0, 7, 8, 9, 9, 11])
    fits = [ks_fit(GridSample(x - x[3]), family, STEPS) for x in (first, second)]
    assert 0.9 * STEPS < abs(fits[0] - fits[1]) <= ks_fit_sensitivity(STEPS)


# --- what the paper's code does ----------------------------------------------------------------


def heuristic(x: np.ndarray) -> float:
    """Fit location and scale by Nelder-Mead from the mean and standard deviation."""
    from scipy.optimize import minimize
    from scipy.special import ndtr

    n = x.size
    x, ranks = np.sort(x), np.arange(1, n + 1) / n

    def distance(parameters):
        u = ndtr((x - parameters[0]) / np.exp(np.clip(parameters[1], -50, 50)))
        return max((ranks - u).max(), (u - ranks + 1 / n).max())

    start = [x.mean(), np.log(x.std() + 1e-12)]
    return float(minimize(distance, start, method="Nelder-Mead").fun)


def test_the_search_catches_a_heuristic_fit():
    rng = np.random.default_rng(5)
    n, family = 50, BUILT_IN["norm"]
    moves = []
    for _ in range(40):
        x, y = neighbours(family, n, rng)
        moves.append(n * abs(heuristic(x) - heuristic(y)))
    assert max(moves) > 2  # 1 is allowed
