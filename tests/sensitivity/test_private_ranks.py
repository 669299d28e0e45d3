"""Mann–Whitney's statistic with private groups: what it is, how far it moves, and what it loses."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from privatest import mannwhitneyu
from privatest.core.privacy import PermutationSensitivity
from privatest.data.schema import Domain
from privatest.mechanisms.permutation import PVALUE_GRID, noise_scale
from privatest.methods.ranks import permuted_ranks, private_ranks_sensitivity
from privatest.noise import SimulatedNoise
from privatest.numerics.order import mann_whitney
from tests.privacy import exact
from tests.privacy.exact import PermutedStatistics
from tests.sensitivity.harness import Space, assert_permutation_sensitivity, assert_sensitivity

LINE = Domain((0,))


def signed(rows, labels):
    """T, by the code of the test."""
    rng = np.random.default_rng(0)  # draws nothing: no permutation is asked for
    return permuted_ranks(rows[:, 0], labels.astype(float), 0, rng)[0]


def two_sided(rows, labels):
    return abs(signed(rows, labels))


@pytest.mark.parametrize(("n", "m"), [(1, 3), (3, 3), (2, 7), (30, 9)])
@pytest.mark.parametrize("statistic", [signed, two_sided])
def test_no_neighbour_moves_the_statistic_further(statistic, n, m):
    sensitivity = private_ranks_sensitivity(n + m)
    observed, permuted = assert_permutation_sensitivity(
        statistic, sensitivity, Space(LINE, n, m, "row"), restarts=5, steps=200
    )
    if statistic is signed:
        assert observed > 0.9
        assert permuted > 0.6
    assert observed > 0.6


def moves(total):
    """Largest moves over all orders and labels, observed and permuted, times N.

    Value 0 is replaced, so its place among the others changes; and the label of any row.
    """
    places = list(range(total))
    found: dict[Any, float] = {}
    for labels in itertools.product((0.0, 1.0), repeat=total):
        for place in places:
            values = np.array([place - 0.5, *range(total - 1)])
            rng = np.random.default_rng(0)
            found[labels, place] = float(permuted_ranks(values, np.array(labels), 0, rng)[0])
    most = {True: 0.0, False: 0.0}
    for (labels, _), first in found.items():
        for changed, label, other in itertools.product(places, (0.0, 1.0), places):
            second = found[(*labels[:changed], label, *labels[changed + 1 :]), other]
            most[changed == 0] = max(most[changed == 0], total * abs(first - second))
    return most[True], max(most.values())


@pytest.mark.parametrize("total", [2, 3, 4, 5, 6])
def test_all_small_data_sets(total):
    observed, permuted = moves(total)
    assert observed <= 29 / 24
    assert permuted <= 20 / 9
    if total == 6:
        assert observed > 0.99 * 29 / 24
        assert permuted > 0.8 * 20 / 9


@pytest.mark.parametrize("total", [50, 400])
def test_both_bounds_are_nearly_attained(total):
    bound = private_ranks_sensitivity(total)
    statistic = partial(permuted_ranks, n_permutations=0, rng=np.random.default_rng(0))
    # one group has .15 of the rows, and one of them passes all of the other group
    values, labels = np.arange(total, dtype=float), np.zeros(total)
    labels[: round(0.15 * total)] = 1.0
    low, high = values.copy(), values.copy()
    low[0], high[0] = -1.0, total
    assert statistic(high, labels)[0] - statistic(low, labels)[0] > 0.99 * bound.observed
    # the lowest row passes all, and the highest gets the label of those below it
    labels = (np.arange(total) > round((1 / 2 + 1 / 15) * total)).astype(float)
    labels[[0, -1]] = 1.0, 0.0
    more = labels.copy()
    more[-1] = 1.0
    moved = statistic(high, more)[0] - statistic(low, labels)[0]
    assert (0.93 if total == 50 else 0.98) * bound.permuted < moved <= bound.permuted


def test_planted_sensitivities_are_caught():
    """That of the observed statistic is too small for permuted ones."""
    bound = private_ranks_sensitivity(12)
    space = Space(LINE, 6, 6, "row", permuted=True)
    with pytest.raises(AssertionError, match="of its sensitivity"):
        assert_sensitivity(signed, bound.observed, space, steps=250)


@pytest.mark.parametrize("alternative", [np.array, np.abs, np.negative])
def test_no_small_data_set_loses_more_than_epsilon(alternative):
    """N = 4, one draw of a permutation repeated or several: exact losses, no sampling."""
    total, epsilon = 4, 1.0
    sensitivity = private_ranks_sensitivity(total)
    scales = [noise_scale(sensitivity, epsilon, release) for release in ("decision", "pvalue")]
    grid = list(itertools.product((0.0, 1.0, 2.0), (0.0, 1.0)))
    orders = [np.array(order) for order in itertools.permutations(range(total))]
    cells = np.unique(np.geomspace(1, PVALUE_GRID, 40).round())

    def statistics(data):
        values, labels = np.array(data).T
        rng = np.random.default_rng(0)
        return alternative([permuted_ranks(values, labels[o], 0, rng)[0] for o in orders])

    rng, lost = np.random.default_rng(5), 0.0
    for _ in range(400):
        data = [grid[i] for i in rng.integers(len(grid), size=total)]
        other = data.copy()
        other[rng.integers(total)] = grid[rng.integers(len(grid))]
        counts = rng.choice([0, 0, 0, 1, 1e4], len(orders))
        counts[rng.integers(len(orders))] = 1e5
        laws = [PermutedStatistics(float(t[0]), t, counts) for t in map(statistics, (data, other))]
        assert max(abs(laws[0].values - laws[1].values)) <= sensitivity.permuted
        for alpha in (0.02, 0.5):
            lost = max(lost, exact.decision_loss(laws[0], laws[1], scales[0], alpha))
        lost = max(lost, exact.pvalue_loss(laws[0], laws[1], scales[1], PVALUE_GRID, cells))
    assert 0.4 * epsilon < lost <= epsilon + 1e-7


# --- what is computed ------------------------------------------------------------------------


def test_it_is_the_statistic_of_mann_and_whitney():
    rng = np.random.default_rng(4)
    values, labels = rng.normal(size=41), (rng.uniform(size=41) < 0.3).astype(float)
    chosen = labels == 1
    balance = mann_whitney(values[chosen], values[~chosen])
    share = 1 - 5 / 6 * abs(labels.mean() - 0.5)
    found = permuted_ranks(values, labels, 0, rng)[0]
    assert found == pytest.approx(share * balance / 41**2, rel=1e-12)


@pytest.mark.parametrize("total", [7, 1_024, 1_025, 5_003])
def test_permuted_statistics_are_those_of_permuted_labels(total):
    """Mean 0 and the variance of 2U - nm, within 5 standard errors (false alarm 1e-6 each)."""
    rng, runs = np.random.default_rng(total), 3_000
    values, labels = rng.normal(size=total), (np.arange(total) % 3 == 0).astype(float)
    order = rng.permutation(total)
    found = permuted_ranks(values[order], labels[order], runs, rng)[1:]
    n = labels.sum()
    share = 1 - 5 / 6 * abs(labels.mean() - 0.5)
    deviation = share * np.sqrt(n * (total - n) * (total + 1) / 3) / total**2
    assert abs(found.mean()) < 5 * deviation / np.sqrt(runs) + deviation * 0.1 * (total > 1_024)
    assert found.std() == pytest.approx(deviation, rel=0.1)


def test_ties_and_empty_groups():
    for labels in (np.zeros(9), np.ones(9)):
        found = permuted_ranks(np.arange(9.0), labels, 20, np.random.default_rng(0))
        assert np.all(found == 0)
    tied = permuted_ranks(
        np.ones(9), (np.arange(9) % 2).astype(float), 20, np.random.default_rng(0)
    )
    assert len(np.unique(tied)) > 3  # broken by the secret order, not left out


def test_the_whole_path(monkeypatch):
    """Rows per person count, and the noise is for what is declared."""
    seen = []
    module = "privatest.methods.ranks.permutation_result"

    def catch(statistics: Any, *, sensitivity: PermutationSensitivity, **_: Any) -> None:
        seen.append((statistics, sensitivity))

    monkeypatch.setattr(module, catch)
    rng = np.random.default_rng(1)
    x, y = rng.normal(1, 1, size=20), rng.normal(size=30)
    for alternative in ("two-sided", "greater", "less"):
        mannwhitneyu(
            x,
            y,
            epsilon=1,
            adjacency="row",
            alternative=alternative,
            rng=1,
            noise=SimulatedNoise(1),
        )
    share = 1 - 5 / 6 * 0.1
    expected = share * mann_whitney(x, y) / 50**2
    assert [found[0][0] for found in seen] == pytest.approx([abs(expected), expected, -expected])
    assert np.all(seen[1][0] == -seen[2][0])
    assert {found[1] for found in seen} == {private_ranks_sensitivity(50)}
