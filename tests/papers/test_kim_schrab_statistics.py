"""Statistics that are computed for all permutations at once, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from privatest_papers.kim_schrab_statistics import hsic_statistics, mmd_statistics

WIDTH = 0.3


def kernel(x, y):
    return np.exp(-np.square(x[:, None] - y[None]).sum(axis=2) / WIDTH**2)


@pytest.mark.parametrize("columns", [1, 3])
def test_mmd_is_that_of_its_definition(columns):
    x, y = np.random.default_rng(1).uniform(size=(2, 40, columns))
    biased, unbiased = mmd_statistics(x, y, WIDTH, 30, np.random.default_rng(2))
    own, other, across = kernel(x, x), kernel(y, y), kernel(x, y)
    assert biased[0] ** 2 == pytest.approx(own.mean() + other.mean() - 2 * across.mean(), abs=1e-9)
    pairs = 40 * 39
    expected = (own.sum() - 40) / pairs + (other.sum() - 40) / pairs - 2 * across.mean()
    assert unbiased[0] == pytest.approx(expected, abs=1e-9)
    assert len(np.unique(biased)) == 31


@pytest.mark.parametrize("columns", [1, 3])
def test_mmd_of_equal_laws_ranks_evenly(columns):
    rng = np.random.default_rng(7)
    ranks = []
    for _ in range(300):
        x, y = rng.uniform(size=(2, 8, columns))
        values, _ = mmd_statistics(x, y, WIDTH, 9, rng)
        ranks.append(int((values >= values[0]).sum()))
    counts = np.bincount(ranks, minlength=11)[1:]
    # chi-squared with 9 degrees of freedom; a fixed seed
    assert np.square(counts - 30).sum() / 30 < 27


def test_mmd_of_shifted_labels_is_that_of_relabelled_rows():
    x, y = np.random.default_rng(3).uniform(size=(2, 3, 1))
    rows, possible = np.vstack([x, y]), []
    for mask in range(64):
        chosen = np.array([mask >> bit & 1 for bit in range(6)], dtype=bool)
        if chosen.sum() == 3:
            signs = np.where(chosen, 1, -1)
            possible.append(np.sqrt(max(signs @ kernel(rows, rows) @ signs, 0)) / 3)
    found = [mmd_statistics(x, y, WIDTH, 5, np.random.default_rng(s))[0] for s in range(50)]
    gaps = np.abs(np.concatenate(found)[:, None] - np.array(possible)).min(axis=1)
    assert gaps.max() < 1e-6
    assert len(np.unique(np.concatenate(found).round(6))) == len(np.unique(np.round(possible, 6)))


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("size", [12, 13])
def test_hsic_is_that_of_its_definition_for_every_shift(columns, size):
    x, y = np.random.default_rng(5).uniform(size=(2, size, columns))
    rng = np.random.default_rng(6)
    biased, unbiased = hsic_statistics(x, y, WIDTH, size, rng)
    # shifts are drawn in the order that the same generator gives
    order = [0, *(1 + np.random.default_rng(6).permutation(size - 1))]
    biased, unbiased = biased[np.argsort(order)], unbiased[np.argsort(order)]
    centre = np.eye(size) - 1 / size
    for shift in (0, 1, size - 1):
        moved = y[(np.arange(size) + shift) % size]
        first, second = kernel(x, x), kernel(moved, moved)
        square = np.trace(first @ centre @ second @ centre) / size**2
        assert biased[shift] ** 2 == pytest.approx(square, abs=1e-12)
        bare = first - np.eye(size), second - np.eye(size)
        n = size
        expected = (
            np.trace(bare[0] @ bare[1])
            + bare[0].sum() * bare[1].sum() / ((n - 1) * (n - 2))
            - 2 * (bare[0] @ bare[1]).sum() / (n - 2)
        ) / (n * (n - 3))
        assert unbiased[shift] == pytest.approx(expected, abs=1e-12)
