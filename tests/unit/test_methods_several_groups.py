"""Several groups: means, ranks and whole distributions."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privatest as pt
from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.data.sources import Part, Source
from privatest.methods import ranks as rank_sums
from privatest.methods.mean_inference import sample_budget
from privatest.methods.ranks import by_blocks, null_rank_sums
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import mann_whitney_law
from privatest.requests.results import result_from_dict

RNG = np.random.default_rng(2)
GROUPS = [RNG.normal(5 + shift, 1, n) for shift, n in ((0, 60), (0.1, 90), (0.3, 40))]


def run(*samples, seed=0, test=pt.f_oneway, **options):
    settings = {"bounds": (0, 10), "epsilon": 1.0, "rng": seed}
    return test(*samples, noise=SimulatedNoise(seed), **(settings | options))


@pytest.mark.parametrize("budget", [{"epsilon": 100.0, "delta": 1e-6}, {"epsilon": 1e6}])
def test_groups_without_spread_give_no_warning(budget):
    """The reciprocal of a variance that was cut at 0 overflowed in two runs of five."""
    groups = np.zeros(2), np.zeros(300), np.full(20, 4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(12):
            found = run(*groups, seed=seed, equal_var=False, **budget)
            assert np.isfinite(found.statistic)
            assert 0 < found.pvalue <= 1


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("move", [0.0, 0.15, 0.3])
def test_without_noise_it_is_the_classical_f(equal, move):
    """An unseen row at the bounds gave .0895 for .0101 with groups of 40, 50 and 40."""
    groups = [g + move * k for k, g in enumerate(GROUPS)]
    result = run(*groups, epsilon=1e5, equal_var=equal)
    expected = stats.f_oneway(*groups, equal_var=equal)
    assert result.statistic == pytest.approx(expected.statistic, rel=1e-2)
    assert result.pvalue == pytest.approx(expected.pvalue, rel=0.05, abs=1e-4)


def test_means_and_decisions_of_groups():
    result = run(*GROUPS, epsilon=1e6)
    np.testing.assert_allclose(result.estimates["mean"], [g.mean() for g in GROUPS], atol=1e-3)
    shifted = [g + 2 * k for k, g in enumerate(GROUPS)]
    assert run(*shifted, epsilon=1e6).reject == (stats.f_oneway(*shifted).pvalue <= 0.05)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_two_groups_are_the_t_test(delta):
    f, t = run(*GROUPS[:2], delta=delta), run(*GROUPS[:2], delta=delta, test=pt.ttest_ind)
    assert f.statistic == pytest.approx(t.statistic**2, rel=0.05)
    assert f.pvalue == pytest.approx(t.pvalue, abs=0.02)


def test_a_p_value_is_never_zero():
    far = [np.full(500, value) for value in (1.0, 5.0, 9.0)]
    assert run(*far, n_bootstrap=99).pvalue == 0.01


def test_groups_of_any_law():
    """Bonferroni over pairs: clear differences are found, and the intervals are wider."""
    far = [np.full(4000, value) for value in (2.0, 2.0, 6.0)]
    found = run(*far, calibration="any")
    assert found.reject
    assert "n_bootstrap" not in found.parameters
    same = run(*[far[0]] * 3, calibration="any")
    assert not same.reject
    wide, usual = (run(*GROUPS, calibration=how).estimates for how in ("any", "classical"))
    assert np.all(wide["lower"] <= usual["lower"])
    assert np.all(usual["upper"] <= wide["upper"])


@pytest.mark.parametrize("equal", [True, False])
def test_intervals(equal):
    result = pickle.loads(pickle.dumps(run(*GROUPS, equal_var=equal)))
    interval = result.confidence_interval(0.95)
    np.testing.assert_allclose(interval.low, result.estimates["lower"])
    np.testing.assert_allclose(interval.high, result.estimates["upper"])
    np.testing.assert_allclose(interval.sampling + interval.privacy, interval.high - interval.low)
    assert np.all(result.confidence_interval(0.999).low <= interval.low)
    assert "group 3: " in str(result)
    read = result_from_dict(result.to_dict(), Budget(1))
    assert isinstance(read, pt.Outcome)
    np.testing.assert_allclose(read.confidence_interval(0.95).low, interval.low)
    with pytest.raises(ParameterError, match="confidence_level"):
        result.confidence_interval(0.9999999)


def test_a_person_in_every_group_spends_a_part_in_each():
    budget = Budget("0.1", "1e-6")
    each = sample_budget(budget, "both", groups=3)
    assert 3 * each.epsilon <= budget.epsilon
    assert float(3 * each.epsilon) == pytest.approx(0.1)
    assert 3 * each.delta <= budget.delta
    assert sample_budget(budget, "one", groups=3) == budget
    both, one = (run(*GROUPS, adjacency=a).confidence_interval() for a in ("both", "one"))
    assert both.privacy.min() > one.privacy.min()


def test_refusals():
    with pytest.raises(ParameterError, match="two samples or more"):
        run(GROUPS[0])
    with pytest.raises(ParameterError, match="adjacency"):
        run(*GROUPS, adjacency="row")
    with pytest.raises(DataError, match="at least 2 rows"):
        run(GROUPS[0], GROUPS[1][:1])
    with pytest.raises(DataError, match="one column"):
        run(np.ones((5, 2)), np.ones((5, 2)))
    with pytest.raises(ParameterError, match="equal_var"):
        run(*GROUPS, equal_var="yes")
    with pytest.raises(ParameterError, match="bounds"):
        run(*GROUPS, bounds=None)


# --- rank sums -------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(1500, 1200), (64, 4000), (2001, 2000)])
def test_rank_sums_by_blocks_have_the_exact_law(sizes):
    """False alarms: 1e-4 for each pair of sizes (Kolmogorov, 20,000 draws); seeded."""
    assert by_blocks(sizes)
    drawn = null_rank_sums(sizes, 20_000, np.random.default_rng(3))
    np.testing.assert_allclose(drawn.sum(axis=1), 0, atol=1e-6)
    law = mann_whitney_law(*sizes)
    points = np.quantile(drawn[:, 0], np.linspace(0.005, 0.995, 100))
    exact = [law.masses[law.values <= point].sum() for point in points]
    own = [np.mean(drawn[:, 0] <= point) for point in points]
    assert np.abs(np.subtract(own, exact)).max() < 2.3 / np.sqrt(20_000)


def test_rank_sums_of_three_groups_by_blocks_and_by_permutation():
    sizes = np.array([64, 900, 1100])
    rng = np.random.default_rng(4)
    drawn = null_rank_sums(sizes.tolist(), 20_000, rng)
    total = sizes.sum()
    expected = (np.diag(sizes * total) - np.outer(sizes, sizes)) * (total + 1) / 3
    scale = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(
        np.cov(drawn.T) / np.outer(scale, scale), expected / np.outer(scale, scale), atol=0.04
    )
    permuted = rank_sums._permuted_rank_sums(sizes, 4000, rng)
    sums = (np.abs(each).sum(axis=1) for each in (drawn, permuted))
    assert stats.ks_2samp(*sums).pvalue > 1e-4
    assert not by_blocks([500, 500, 500])
    assert not by_blocks([63, 5000, 5000])


def test_kruskal_of_many_rows():
    rng = np.random.default_rng(5)
    groups = [rng.normal(shift, 1, 20_000) for shift in (0, 0, 0.05)]
    result = run(*groups, test=pt.kruskal, epsilon=10, bounds=None)
    assert result.pvalue == pytest.approx(stats.kruskal(*groups).pvalue, abs=0.01)
    assert result.parameters["n_resamples"] == 9999


class Nothing(Part):
    """A part of many rows that are never read."""

    rows: int
    label = "nothing"
    travels = False

    def __init__(self, rows):
        self.rows = rows

    def batches(self, columns):
        raise AssertionError(columns)


@pytest.mark.parametrize("sizes", [(10**9, 9, 9), (9, 10**9 // 2, 10**9 // 2)])
def test_more_rows_than_can_be_drawn_are_refused_before_they_are_paid_for(sizes, tmp_path):
    """Where NumPy cannot draw the law, it says so; a row fewer can be drawn."""
    ledger = tmp_path / "ledger.sqlite"
    sources = [Source(("a",), (Nothing(size),)) for size in sizes]
    with pt.budget("a", epsilon=1, ledger=ledger) as account:
        with pytest.raises(DataError, match=r"fewer than 1,000,000,000 rows") as refused:
            pt.kruskal(*sources, epsilon=1, bounds=(0, 1))
        assert account.spent["epsilon"] == 0
    assert "Compare two" in str(refused.value)
    fewer = [size - (size > 9) for size in sizes]
    rank_sums.check_simulation_size(fewer)
    rank_sums.check_simulation_size([10**9, 10**9])  # of two the law is known
    large = [max(64, size) for size in fewer]
    assert np.isfinite(null_rank_sums(large, 2, np.random.default_rng(0))).all()
    with pytest.raises(ValueError, match="less than 1000000000"):
        null_rank_sums([max(64, size) for size in sizes], 2, np.random.default_rng(0))


# --- whole distributions ---------------------------------------------------------------------


def mmd(*samples, **options):
    return run(*samples, test=pt.mmd_test, **({"n_permutations": 199, "epsilon": 5} | options))


@pytest.mark.parametrize("adjacency", ["one", "row"])
def test_kernel_test_of_several_samples(adjacency):
    wide = [*GROUPS[:2], RNG.normal(5, 3, size=90)]
    result = mmd(*wide, adjacency=adjacency)
    assert result.reject
    assert result.method == "3-sample MMD test"
    shown = {"N": 240} if adjacency == "row" else {"n1": 60, "n2": 90, "n3": 90}
    assert result.sizes == shown
    assert result.adjacency == adjacency
    alike = [RNG.normal(5, 1, size=60) for _ in range(4)]
    assert mmd(*alike, adjacency=adjacency).pvalue > 0.05
    decision = mmd(*wide, adjacency=adjacency, release="decision", bandwidths=0.2)
    assert decision.reject
    assert not hasattr(decision, "pvalue")


def test_kernel_test_of_frames_with_categories():
    schema = Schema(
        {"age": NumericColumn(0, 10), "plan": CategoricalColumn(("basic", "plus"))},
        rows_per_person=2,
    )
    frames = [
        pd.DataFrame({"plan": RNG.choice(["basic", "plus"], 200, p=[1 - p, p]), "age": 5.0})
        for p in (0.1, 0.5, 0.9)
    ]
    result = mmd(*frames, bounds=schema, epsilon=10)
    assert result.reject
    assert result.unit == "person with at most 2 rows"


def test_refusals_of_several_samples():
    for options in ({"adjacency": "both"}, {"method": "fourier"}, {"bin_size": 3}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            mmd(*GROUPS, **options)
    with pytest.raises(DataError, match="at least 2 rows"):
        mmd(*GROUPS, [1.0])
    with pytest.raises(DataError, match="4 rows together"):
        mmd([1.0], [1.0], [1.0], adjacency="row")
