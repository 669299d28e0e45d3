"""MMD and its sensitivities at published values, and every way of computing it agrees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.numerics.dependence import null_moments
from privatest.numerics.features import Unprojected, fourier, nystrom
from privatest.numerics.kernels import Kernel
from privatest.numerics.permutation import (
    bin_layout,
    block_permutation,
    label_permutation,
    mmd,
    mmd_sensitivity,
    mmd_u,
    mmd_u_sensitivity,
    permuted_features,
    permuted_mmd,
    permuted_mmd_u,
    private_groups_sensitivity,
)

LINE = Domain((0,))
X = np.array([[0.0], [0.5], [1.0]])
Y = np.array([[0.2], [0.9]])


@pytest.mark.parametrize(
    ("family", "value"),
    [("gaussian", 0.067153701183), ("laplace", 0.320537777837), ("imq", 0.047392657209)],
)
def test_published_mmd(family, value):
    assert mmd(X, Y, Kernel(family, 1.0), LINE) == pytest.approx(value, rel=1e-9)


def test_published_sensitivity():
    spread = Kernel("gaussian", 1.0).spread(LINE)
    assert mmd_sensitivity(spread, 3, 2).observed == pytest.approx(0.562192386478, rel=1e-11)
    # without a box it is the paper's
    unbounded = Kernel("gaussian", 1.0).spread(Domain((0,), bounded=False))
    assert mmd_sensitivity(unbounded, 3, 2).observed == pytest.approx(0.707106781187, rel=1e-11)


def test_sensitivities_by_their_formulas():
    assert mmd_sensitivity(1.5, 10, 4).permuted == pytest.approx(1.5 / 4)
    both = mmd_sensitivity(1.5, 10, 4, "both")
    assert both.observed == pytest.approx(1.5 * (1 / 10 + 1 / 4))
    assert both.permuted == pytest.approx(2 * 1.5 / 4)
    # 4 (sup k - inf k)/min(n, m), with c² = 2 (sup k - inf k)
    assert mmd_u_sensitivity(1.5, 10, 4).observed == pytest.approx(4 * (1.5**2 / 2) / 4)
    groups = private_groups_sensitivity(1.5, 20)
    assert groups.observed == pytest.approx(1.5 * 19 / 400)
    assert groups.permuted == pytest.approx(2 * groups.observed)


def test_u_statistic_by_hand():
    kernel = Kernel("gaussian", 1.0)

    def k(a, b):
        return math.exp(-((a - b) ** 2))

    within_x = (k(0, 0.5) + k(0, 1) + k(0.5, 1)) / 3
    across = np.mean([k(a, b) for a in (0, 0.5, 1) for b in (0.2, 0.9)])
    assert mmd_u(X, Y, kernel, LINE) == pytest.approx(within_x + k(0.2, 0.9) - 2 * across)


# --- every way of computing ------------------------------------------------------------------

KERNELS = [Kernel("gaussian", width) for width in (4.0, 1.0, 0.5, 0.125)]


def samples(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.round(rng.uniform(size=(n, 1)), 1), rng.beta(2, 1, size=(m, 1))


def permuted_samples(rows, layout, labels):
    """The two samples that a permutation of bins makes, from the definition."""
    bin_of_row = np.repeat(np.arange(len(layout.edges) - 1), np.diff(layout.edges))
    in_x = np.append(labels, [True, False])[bin_of_row]
    return rows[in_x], rows[~in_x]


@pytest.mark.parametrize(("n", "m", "size"), [(7, 5, 1), (13, 9, 4), (20, 3, 3), (600, 530, 7)])
@pytest.mark.parametrize("unbiased", [False, True])
def test_permuted_bins_are_permuted_samples(n, m, size, unbiased):
    x, y = samples(n, m)
    rng = np.random.default_rng(1)
    orders = rng.permutation(n), rng.permutation(m)
    layout = bin_layout(n, m, size, 2_048)
    rows, permutation = layout.arrange(x, y, *orders), layout.permute(4, rng)
    if unbiased:
        values, errors = permuted_mmd_u(permutation, rows, KERNELS, LINE)
    else:
        values, errors = permuted_mmd(permutation, rows, None, KERNELS, LINE)
    statistic: Any = mmd_u if unbiased else mmd
    for kernel, row, error in zip(KERNELS, values, errors, strict=True):
        expected = [
            statistic(*permuted_samples(rows, layout, labels), kernel, LINE)
            for labels in permutation.in_x
        ]
        assert row == pytest.approx(expected, abs=2 * error)
        assert error < 1e-5


@pytest.mark.parametrize("features", ["nystrom", "fourier"])
def test_permuted_bins_of_features_are_permuted_samples(features):
    x, y = samples(1_300, 900)
    rng = np.random.default_rng(2)
    if features == "nystrom":
        maps = nystrom(KERNELS, LINE.points(32), LINE)
    else:
        maps = fourier(KERNELS, 32, LINE, rng)  # type: ignore[assignment]
    layout = bin_layout(1_300, 900, 130, 2_048)
    rows = layout.arrange(x, y, rng.permutation(1_300), rng.permutation(900))
    permutation = layout.permute(3, rng)
    values, errors = permuted_features(permutation, rows, None, maps)
    for labels, column in zip(permutation.in_x, values.T, strict=True):
        parts = [
            [maps.project(i, raw.mean(axis=0)) for i, raw in enumerate(maps.raw(part))]
            for part in permuted_samples(rows, layout, labels)
        ]
        expected = [np.linalg.norm(a - b) for a, b in zip(*parts, strict=True)]
        assert np.all(np.abs(column - expected) <= 2 * errors)
    assert np.all(errors < 1e-6)


def private_groups_by_definition(rows, labels, kernel):
    n, total = labels.sum(), len(rows)
    if n in (0, total):
        return 0.0
    in_x = labels > 0
    return n * (total - n) / total**2 * mmd(rows[in_x], rows[~in_x], kernel, LINE)


@pytest.mark.parametrize("n", [0, 1, 20, 29, 30])
def test_private_groups_are_a_share_of_mmd(n):
    rows, _ = samples(30, 1)
    labels = np.random.default_rng(3).permutation(np.arange(30) < n).astype(float)
    permutation = label_permutation(30, 5, np.random.default_rng(4))
    values, errors = permuted_mmd(permutation, rows, labels, KERNELS, LINE)
    expected = [private_groups_by_definition(rows, labels, kernel) for kernel in KERNELS]
    assert values[:, 0] == pytest.approx(expected, abs=2 * errors.max())
    if n in (0, 30):
        assert np.abs(values).max() < 1e-7


@pytest.mark.parametrize("total", [5, 64, 150, 2_100])
def test_private_groups_of_features_are_those_of_the_kernel(total):
    rng = np.random.default_rng(5)
    rows, labels = rng.beta(2, 1, size=(total, 1)), (rng.uniform(size=total) < 0.3).astype(float)
    maps = nystrom(KERNELS[:3], LINE.points(64), LINE)
    permutation = block_permutation(total, 6, np.random.default_rng(6))
    values, errors = permuted_features(permutation, rows, labels, maps)
    features = [maps.project(i, raw.copy()) for i, raw in enumerate(maps.raw(rows))]
    centred = (labels - labels.mean()) / total
    expected = [np.linalg.norm(centred @ mapped) for mapped in features]
    assert np.all(np.abs(values[:, 0] - expected) <= 2 * errors)


def test_labels_of_blocks_are_permuted_and_leftovers_stay():
    """A row's feature is its own unit vector, so that T shows which row got which label."""
    total = 131  # 43 blocks of three, two rows left over
    rows = np.arange(total, dtype=float)[:, None] / total

    seen = []

    class OneHot(Unprojected):
        spreads, roundings, amplifications, raw_width, blocks = (1.0,), (0.0,), (1.0,), total, 1

        def raw(self, x):
            yield np.eye(total)[np.round(x[:, 0] * total).astype(int)]

        def measure(self, index, sums):
            seen.append(sums.copy())
            return np.zeros((1, len(sums)))

    labels = np.arange(total, dtype=float)  # all different, to follow each of them
    rng = np.random.default_rng(0)
    permuted_features(block_permutation(total, 3, rng), rows, labels, OneHot())
    found = np.round(seen[-1] * total + labels.mean()).astype(int)
    assert found.shape == (4, total)
    assert np.array_equal(found[0], np.arange(total))
    for permuted in found[1:]:
        assert sorted(permuted) == list(range(total))
        assert np.array_equal(permuted[129:], [129, 130])
        blocks = permuted[:129].reshape(43, 3)
        assert np.array_equal(blocks[:, 1:], blocks[:, :1] + [1, 2])
        assert not np.array_equal(permuted, np.arange(total))


def test_null_moments_are_those_of_uniform_samples():
    """Within 20% of simulation, which is what the choice among kernels needs."""
    kernel, rng = Kernel("gaussian", 0.5), np.random.default_rng(7)
    first, second = null_moments((kernel,), LINE)[0]
    values = [
        mmd(rng.uniform(size=(60, 1)), rng.uniform(size=(40, 1)), kernel, LINE) for _ in range(400)
    ]
    rate = 1 / 60 + 1 / 40
    assert np.mean(values) == pytest.approx(math.sqrt(rate * first), rel=0.2)
    assert np.std(values) == pytest.approx(
        rate * math.sqrt(second / 2) / math.sqrt(rate * first), rel=0.3
    )
