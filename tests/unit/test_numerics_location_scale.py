"""The certified fits: published values, exactness, invariance, and their simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.core.errors import ParameterError
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
    program,
    simulate_distances,
)

STEPS = 1 << 20
FIVE = [-1.2, -0.3, 0.1, 0.4, 2.5]
EIGHT = [*FIVE, 3, 3.3, 7]

KS_VALUES = {
    "norm": 0.1821145790,
    "laplace": 0.1547489971,
    "cauchy": 0.1292792354,
    "logistic": 0.1737449162,
    "gumbel": 0.1619244206,
    "expon": 0.2,
    "uniform": 0.2,
}
KUIPER_VALUES = {
    "norm": 0.28938,
    "laplace": 0.30625,
    "cauchy": 0.31729,
    "logistic": 0.29257,
    "gumbel": 0.28916,
    "expon": 0.29419,
    "uniform": 0.28378,
}


def sample(values, lower=-10.0, upper=10.0) -> GridSample:
    return on_grid((np.asarray(values, dtype=np.float64) - lower) / (upper - lower))


def whole(values) -> GridSample:
    """Integers as they are, none of them at a bound."""
    x = np.sort(np.asarray(values, dtype=np.int64))
    return GridSample(x - x[(x.size - 1) // 2])


@pytest.mark.parametrize(("name", "value"), KS_VALUES.items())
def test_ks_values(name, value):
    steps = 1 << 36
    assert ks_fit(sample(FIVE), family_named(name), steps) / (5 * steps) == pytest.approx(
        value, abs=1e-10
    )


@pytest.mark.parametrize(("name", "value"), KUIPER_VALUES.items())
def test_kuiper_values(name, value):
    steps, gamma = 1 << 28, 4e-6  # found within gamma above the minimum
    slack = int(8 * steps * gamma)
    found = kuiper_fit(sample(EIGHT), family_named(name), steps, slack) / (8 * steps)
    assert found == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_level_found_is_the_first_feasible_one(name):
    rng = np.random.default_rng(1)
    family = BUILT_IN[name]
    for n in (2, 3, 10, 57):
        data = on_grid(rng.beta(0.5, 2, size=n))
        level = ks_fit(data, family, STEPS)
        assert program(data, family, STEPS, (level, level))[0]
        # 1/2n is the smallest there is: the search starts there
        if level > STEPS // 2:
            assert not program(data, family, STEPS, (level - 1, level - 1))[0]


@pytest.mark.parametrize("name", BUILT_IN)
def test_kuiper_finds_the_minimum_within_the_slack(name):
    """Against a walk along the whole border of what is feasible."""
    rng = np.random.default_rng(2)
    family, steps, slack = BUILT_IN[name], 64, 4
    for n in (3, 6):
        data = on_grid(rng.gamma(0.7, size=n).clip(0.01, 9) / 10)
        found = kuiper_fit(data, family, steps, slack)
        sums, k2 = [], n * steps
        for k1 in range(family.least[0], found):
            while k2 > family.least[1] and program(data, family, steps, (k1, k2 - 1))[0]:
                k2 -= 1
            sums.append(k1 + k2)
        assert min(sums) <= found <= min(sums) + slack


@pytest.mark.parametrize("name", BUILT_IN)
def test_shift_and_scale_change_nothing(name):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1000, size=41)
    family = BUILT_IN[name]
    first, second = whole(x), whole(123_456_789 * x + 987_654)
    assert ks_fit(first, family, STEPS) == ks_fit(second, family, STEPS)
    assert kuiper_fit(first, family, STEPS, STEPS // 100) == kuiper_fit(
        second, family, STEPS, STEPS // 100
    )


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_all_records_tied(name, n):
    data = on_grid(np.full(n, 0.3))
    assert ks_fit(data, BUILT_IN[name], STEPS) == n * STEPS // 2
    assert kuiper_fit(data, BUILT_IN[name], STEPS, STEPS // 100) == pytest.approx(
        n * STEPS, abs=STEPS // 100
    )


def test_records_at_a_bound_may_lie_beyond_it():
    """Clipping never makes the distance larger, so the law without clipping is valid."""
    rng = np.random.default_rng(4)
    for name in ("norm", "cauchy", "expon"):
        x = BUILT_IN[name].ppf(rng.uniform(size=200)) * 10
        for reach in (10_000, 20, 5):
            free = ks_fit(sample(x, -1e5, 1e5), BUILT_IN[name], STEPS)
            clipped = ks_fit(
                sample(np.clip(x, -reach, reach), -reach, reach), BUILT_IN[name], STEPS
            )
            assert clipped <= free + 4
    everything_at_the_bound = on_grid(np.zeros(9))
    assert everything_at_the_bound.low == 9
    assert ks_fit(everything_at_the_bound, BUILT_IN["norm"], STEPS) == STEPS // 2
    assert kuiper_fit(everything_at_the_bound, BUILT_IN["norm"], STEPS, STEPS // 100) == STEPS


def test_grid():
    found = on_grid(np.array([1.0, 0.25, 0.0, 0.5]))
    assert found.x.tolist() == [-(1 << 38), 0, 1 << 38, 3 << 38]
    assert (found.low, found.high, found.size) == (1, 1, 4)


def test_sensitivities():
    assert ks_fit_sensitivity(STEPS) == STEPS + 2
    assert ks_fit_sensitivity(STEPS, 5) == 5 * STEPS + 2
    assert kuiper_fit_sensitivity(STEPS, 7, 2) == 2 * STEPS + 7 + 4


@pytest.mark.parametrize("name", BUILT_IN)
def test_quantiles_do_not_fall_on_the_grid(name):
    """What the proof assumes: neighbours on the grid are in order, up to one step."""
    rng = np.random.default_rng(5)
    total = 100_000 * STEPS
    m = rng.integers(2, total - 2, size=200_000)
    m[:1000] = np.arange(2, 1002)
    m[1000:2000] = total - 2 - np.arange(1, 1001)
    middle = BUILT_IN[name].ppf(m / total)
    assert (BUILT_IN[name].ppf((m - 1) / total) <= middle).all()
    assert (middle <= BUILT_IN[name].ppf((m + 1) / total)).all()


@pytest.mark.parametrize("name", BUILT_IN)
def test_quantiles_are_those_of_scipy(name):
    from scipy import stats

    p = np.array([1e-12, 0.01, 0.3, 0.5, 0.77, 0.99, 1 - 1e-9])
    np.testing.assert_allclose(BUILT_IN[name].ppf(p), getattr(stats, name).ppf(p), rtol=1e-9)
    assert getattr(stats, name).support() == (BUILT_IN[name].lower, BUILT_IN[name].upper)


def test_families_of_scipy():
    rayleigh = family_named("rayleigh")
    assert (rayleigh.lower, rayleigh.upper) == (0.0, math.inf)
    assert rayleigh.ppf(np.array([0.5])) == pytest.approx(math.sqrt(2 * math.log(2)))
    assert family_named("gumbel") is family_named("gumbel_r")
    x = rayleigh.ppf((np.arange(50) + 0.5) / 50)
    assert ks_fit(sample(x), rayleigh, STEPS) == pytest.approx(STEPS // 2, abs=2)


@pytest.mark.parametrize("name", ["nonsense", "gamma", "poisson", "__doc__", 7, None])
def test_unknown_families_are_refused(name):
    with pytest.raises(ParameterError, match=r"family must be .*norm, laplace.*rayleigh"):
        family_named(name)


def test_a_quantile_function_that_is_not_one_is_refused(monkeypatch):
    from scipy import stats

    from privatest.methods import fit_families as families

    class Broken(stats.rv_continuous):  # type: ignore[misc]
        def _cdf(self, x):
            return 1 / (1 + np.exp(-x))

        def _ppf(self, q):
            return -np.log(q)

    monkeypatch.setattr(stats, "broken", Broken(name="broken"), raising=False)
    with pytest.raises(ParameterError, match="no usable quantile function"):
        families.family_named("broken")


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("n", [3, 5, 30])
def test_simulated_distances_are_those_of_the_fits(name, n):
    """The same samples through both: KS to 1e-7, Kuiper never below."""
    family = BUILT_IN[name]
    drawn: list[np.ndarray] = []

    def draw(uniforms):
        x = family.ppf(np.clip(uniforms, 0.01, 0.99))  # so that 40 bits are enough for Cauchy
        drawn.append(x)
        return x

    class Recorded(Family):
        def sample(self, uniforms):
            return draw(uniforms)

    recorded = Recorded(family.name, family.ppf, family.lower, family.upper)
    count = 5
    for statistic in ("ks", "kuiper"):
        drawn.clear()
        rng = np.random.default_rng(6)
        found = simulate_distances(recorded, statistic, n, count, rng) / math.sqrt(n)
        for x, distance in zip(drawn[0], found, strict=True):
            data = sample(x, -100, 100)
            if statistic == "ks":
                assert ks_fit(data, family, STEPS) / (n * STEPS) == pytest.approx(
                    distance, abs=1e-6
                )
            else:
                exact = kuiper_fit(data, family, STEPS, STEPS // 100) / (n * STEPS)
                assert -0.011 / n <= distance - exact <= 0.6 / n


@pytest.mark.statistical
def test_simulated_quantiles():
    """20,000 draws: the .95 quantile has s.e. .0013, false-alarm rate below 1e-3."""
    found = simulate_distances(BUILT_IN["norm"], "ks", 50, 20_000, np.random.default_rng(7))
    np.testing.assert_allclose(
        np.quantile(found, [0.5, 0.9, 0.95]), [0.4519, 0.5745, 0.6142], atol=0.0045
    )
