"""No neighbour moves a pooled variance further than declared, and some come close."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.noise import SimulatedNoise
from privatest.numerics import portfolio as pooled
from privatest.numerics.coded import ColumnMap, Harmonics, PairMap
from privatest.numerics.features import MeanMap, ThresholdMap
from privatest.numerics.kernels import Kernel, gram, kernel_grid, paired_kernels
from privatest.numerics.portfolio import pooled_variances, secret_pairs
from tests.sensitivity.harness import Space, assert_sensitivity

LINE, SQUARE, MIXED = Domain((0,)), Domain((0, 0)), Domain((0, 0, 3))
FAMILIES: dict[str, tuple[tuple[Kernel, ...], tuple[Any, ...], Domain]] = {
    "kernels": (kernel_grid("gaussian", None, MIXED), (), MIXED),
    "laplace": (kernel_grid("laplace", None, SQUARE), (), SQUARE),
    "columns": ((), (ColumnMap(Harmonics(MIXED, 4)),), MIXED),
    "one column": ((), (ColumnMap(Harmonics(LINE, 4)),), LINE),
    "pairs": ((), (PairMap(Harmonics(MIXED, 2)),), MIXED),
    "means": ((), (MeanMap(MIXED),), MIXED),
}


class InOrder(SimulatedNoise):
    """A row is paired by its place, so that neighbours differ in one pair."""

    def __init__(self, order: Any) -> None:
        super().__init__(0)
        self.order = order

    def permutation(self, size: int) -> Any:
        assert size == len(self.order)
        return self.order


@pytest.mark.parametrize(("adjacency", "replaced"), [("one", 1), ("both", 2), ("row", 1)])
@pytest.mark.parametrize("name", FAMILIES)
def test_no_neighbour_moves_a_variance_further(name, adjacency, replaced):
    kernels, maps, domain = FAMILIES[name]

    def found(rows: Any, labels: Any) -> Any:
        order = np.where(labels, np.cumsum(labels), labels.sum() + np.cumsum(~labels)) - 1
        pairs = secret_pairs(rows[labels], rows[~labels], InOrder(order))
        return pooled_variances(pairs, kernels, maps, domain, replaced=replaced)

    def share(rows: Any, labels: Any) -> Any:
        result = found(rows, labels)
        return result.values / result.moves

    space = Space(domain, 3, 4, adjacency)
    ratio = assert_sensitivity(share, 1.0, space, slack=1e-6, restarts=4, steps=80)
    assert ratio > (0.9 if adjacency != "both" else 0.45)  # two rows seldom share no pair


def test_a_row_is_in_one_pair_at_most(monkeypatch):
    rows = np.arange(31.0)[:, None]
    for most in (pooled.MOST_PAIRS, 6):
        monkeypatch.setattr(pooled, "MOST_PAIRS", most)
        a, b = secret_pairs(rows[:9], rows[9:], SimulatedNoise(1))
        assert len(a) == len(b) == min(15, most)
        assert len(np.unique(np.concatenate([a, b]))) == 2 * len(a)


@pytest.mark.parametrize("family", ["gaussian", "laplace", "imq"])
def test_paired_kernels_are_the_diagonal_of_a_gram_matrix(family):
    rng = np.random.default_rng(0)
    x, y = (np.column_stack([rng.uniform(size=(20, 2)), rng.integers(3, size=20)]) for _ in "ab")
    kernels = kernel_grid(family, None, MIXED)
    expected = [np.diag(gram(kernel, x, y, MIXED)) for kernel in kernels]
    assert paired_kernels(kernels, x, y, MIXED) == pytest.approx(np.array(expected), abs=1e-14)


@pytest.mark.parametrize("name", ["columns", "pairs", "one column"])
def test_a_variance_is_half_the_mean_squared_distance_of_features(name):
    _, (maps,), domain = FAMILIES[name]
    rng = np.random.default_rng(1)
    levels = domain.levels
    rows = np.column_stack(
        [
            rng.integers(level, size=(40, 1)) if level else rng.beta(1, 3, (40, 1))
            for level in levels
        ]
    )
    a, b = rows[:20], rows[20:]
    apart = next(iter(maps.raw(a))) - next(iter(maps.raw(b)))
    pairs = np.square(maps.measure(0, apart))  # members × pairs: norms of single pairs
    found = maps.variances(a, b)
    means = len(found) // 2 if domain.dimension > 1 else len(found)
    assert found[:means] == pytest.approx(pairs[:means].mean(axis=1) / 2)
    # the largest column's mean is at most the mean of each pair's largest
    assert np.all(found[means:] <= pairs[means:].mean(axis=1) / 2 + 1e-12)
    assert np.all(found[means:] >= found[: len(found) - means] - 1e-12)


def test_thresholds_do_not_follow_the_data():
    maps = ThresholdMap(MIXED, 8)
    pairs = (np.zeros((4, 3)), np.zeros((4, 3)))
    result = pooled_variances(pairs, (), (maps,), MIXED, replaced=1)
    assert result.moves.tolist() == [0.0]
