"""No neighbour moves a member of the family further than declared, and all come close."""

from __future__ import annotations

from itertools import pairwise, product
from math import pi
from unittest.mock import patch

import numpy as np
import pytest

from privatest.core.noise import SimulatedNoise
from privatest.core.secret_order import secret_bins
from privatest.data.engines import BLOCK_ROWS
from privatest.data.schema import Domain
from privatest.methods.mmd import _on_landmarks
from privatest.numerics.coded import (
    CELLS,
    WIDTHS,
    CodedMaps,
    CodedSums,
    ColumnMap,
    Harmonics,
    PairMap,
    has_codes,
)
from privatest.numerics.features import MeanMap, ThresholdMap, Together
from privatest.numerics.kernels import kernel_grid, tabulated_kernels
from privatest.numerics.permutation import (
    BinSums,
    bin_layout,
    bin_order,
    block_permutation,
    mmd_sensitivity,
    pair_swaps,
    pair_swaps_sensitivity,
    permuted_features,
    private_groups_sensitivity,
)
from privatest.numerics.portfolio import Member, chosen_statistics, members
from tests.sensitivity.harness import Space, assert_sensitivity

SQUARE, MIXED = Domain((0, 0)), Domain((0, 0, 3))
MAPS: dict[str, tuple[Member, Domain]] = {
    "one column": (ColumnMap(Harmonics(Domain((0,)), 4)), Domain((0,))),
    "columns": (ColumnMap(Harmonics(SQUARE, 4)), SQUARE),
    "mixed columns": (ColumnMap(Harmonics(MIXED, 2)), MIXED),
    "pairs": (PairMap(Harmonics(SQUARE, 4)), SQUARE),
    "mixed pairs": (PairMap(Harmonics(MIXED, 2)), MIXED),
    "thresholds": (ThresholdMap(MIXED, 8), MIXED),
    "folded categories": (ThresholdMap(Domain((0, 20)), 8), Domain((0, 20))),
    "means": (MeanMap(MIXED), MIXED),
    "pairs for many rows": (PairMap(Harmonics(MIXED, 2, 256, 128, apart=True)), MIXED),
    "means for many rows": (MeanMap(MIXED, 16), MIXED),
}
DRAWS = 12


@pytest.mark.parametrize(("adjacency", "n", "m"), [("one", 3, 5), ("both", 4, 3)])
@pytest.mark.parametrize("name", MAPS)
def test_no_neighbour_moves_a_member_further(name, adjacency, n, m):
    maps, domain = MAPS[name]

    def statistic(rows, labels):
        x, y = rows[labels], rows[~labels]
        layout = bin_layout(n, m, 1, 100)
        pooled = layout.arrange(x, y, np.arange(n), np.arange(m))
        permutation = layout.permute(DRAWS, np.random.default_rng(1))
        return permuted_features(permutation, pooled, None, maps)[0].ravel()

    bound = mmd_sensitivity(1.0, n, m, adjacency).permuted
    space = Space(domain, n, m, adjacency)
    ratio = assert_sensitivity(statistic, bound, space, slack=1e-12, restarts=3, steps=60)
    assert ratio > 0.9


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("name", MAPS)
def test_no_neighbour_with_private_groups_moves_a_member_further(name, swap):
    maps, domain = MAPS[name]
    draw = pair_swaps if swap else block_permutation
    own = pair_swaps_sensitivity if swap else private_groups_sensitivity

    def statistic(rows, labels):
        relabelling = draw(7, DRAWS, np.random.default_rng(3))
        return permuted_features(relabelling, rows, labels.astype(float), maps)[0].ravel()

    space = Space(domain, 4, 3, "row")
    ratio = assert_sensitivity(
        statistic, own(1.0, 7).permuted, space, slack=1e-12, restarts=3, steps=60
    )
    assert ratio > (0.9 if swap else 0.5)  # a permutation must part value and label to reach it


@pytest.mark.parametrize("name", MAPS)
def test_two_rows_are_at_most_one_apart_and_nearly_so(name):
    """On a fine grid and its corners, for every member."""
    maps, domain = MAPS[name]
    points = np.vstack([domain.points(400), _corners(domain)])
    raw = next(iter(maps.raw(points)))
    furthest = np.zeros(len(maps.spreads))
    for row in raw[-40:]:
        furthest = np.maximum(furthest, maps.measure(0, raw - row).max(axis=1))
    assert np.all(furthest <= 1 + 1e-9)
    assert np.all(furthest > 0.8)  # no two rows are far apart in all pairs at once


@pytest.mark.parametrize(
    "levels", [(0,), (0, 0), (0, 0, 0), (0,) * 5, (2,), (4, 4), (0, 0, 3), (3, 0, 50), (1, 0)]
)
def test_no_search_finds_rows_further_apart(levels):
    domain, harmonics = Domain(levels), Harmonics(Domain(levels), 4)
    parts: list[Member] = [ColumnMap(harmonics), ThresholdMap(domain, 8)]
    if len(levels) > 1:
        parts.append(PairMap(harmonics))
    if domain.numeric:
        parts.append(MeanMap(domain))
    rng = np.random.default_rng(7)
    for part in parts:
        furthest = _furthest(part, domain, rng)
        assert np.all(furthest <= 1 + 1e-12)
        assert furthest.max() > 0.998  # norms of a pair's features differ by their rounding


def _furthest(part, domain, rng, count=64, steps=120):
    """Climb from many pairs of rows at once, for each norm."""
    shape = count, domain.dimension
    best = np.zeros(len(part.spreads))
    for index in range(len(best)):
        distance = lambda a, b: part.measure(0, _first(part, a) - _first(part, b))[index]  # noqa: E731, B023
        left, right = np.round(rng.uniform(size=shape)), rng.uniform(size=shape)
        found = distance(_placed(left, domain), _placed(right, domain))
        for step in range(steps):
            size = 0.5 * 0.95**step
            moves = rng.normal(scale=size, size=(2, *shape)) * rng.integers(2, size=(2, *shape))
            trial = np.clip(left + moves[0], 0, 1), np.clip(right + moves[1], 0, 1)
            values = distance(*(_placed(rows, domain) for rows in trial))
            better = values >= found
            left[better], right[better] = trial[0][better], trial[1][better]
            found = np.maximum(found, values)
        best[index] = found.max()
    return best


def _first(part, rows):
    return next(iter(part.raw(rows)))


def _placed(unit, domain):
    rows = unit.copy()
    for column in domain.categorical:
        level = domain.levels[column]
        rows[:, column] = np.minimum(np.floor(unit[:, column] * level), level - 1)
    return rows


def _corners(domain):
    grids = [np.arange(level or 2, dtype=float) for level in domain.levels]
    return np.stack(np.meshgrid(*grids), axis=-1).reshape(-1, domain.dimension)


@pytest.mark.parametrize("name", MAPS)
def test_binned_sums_are_sums_of_rows(name):
    maps, domain = MAPS[name]
    rng = np.random.default_rng(4)
    rows = domain.points(50)
    edges, weights = np.array([0, 7, 7, 30, 50]), rng.integers(-1, 2, size=50).astype(float)
    raw = next(iter(maps.raw(rows)))
    for given in (None, weights):
        scaled = raw if given is None else raw * weights[:, None]
        expected = np.stack([scaled[a:b].sum(axis=0) for a, b in pairwise(edges)])
        found = next(iter(maps.binned(rows, edges, given)))
        assert found == pytest.approx(expected, abs=1e-12)


def test_members_are_what_their_names_say():
    """Against the definitions, in plain loops."""
    rng = np.random.default_rng(5)
    x, y = rng.uniform(size=(2, 30, 2))
    difference = lambda f: f(x).mean(axis=0) - f(y).mean(axis=0)  # noqa: E731
    means = MeanMap(SQUARE)
    found = means.measure(0, difference(lambda z: next(means.raw(z)))[None])
    assert found[0, 0] == pytest.approx(np.abs(x.mean(axis=0) - y.mean(axis=0)).max())
    steps = ThresholdMap(SQUARE, 64)
    found = steps.measure(0, difference(lambda z: next(steps.raw(z)))[None])
    inner = np.arange(1, 64) / 64
    shares = [[(z[:, j, None] < inner).mean(axis=0) for j in (0, 1)] for z in (x, y)]
    assert found[0, 0] == pytest.approx(np.abs(np.array(shares[0]) - np.array(shares[1])).max())
    columns = ColumnMap(Harmonics(SQUARE, 4))
    found = columns.measure(0, difference(lambda z: next(columns.raw(z)))[None])
    half = len(WIDTHS)
    assert np.all(found[half:] >= found[:half])  # the largest is above the mean
    single = ColumnMap(Harmonics(Domain((0,)), 4))
    own = [
        single.measure(
            0, (next(single.raw(x[:, [j]])).mean(0) - next(single.raw(y[:, [j]])).mean(0))[None]
        )
        for j in (0, 1)
    ]
    squares = np.array(own)[..., 0] ** 2
    assert found[:half, 0] == pytest.approx(np.sqrt(squares.mean(axis=0)))
    assert found[half:, 0] == pytest.approx(np.sqrt(squares.max(axis=0)))


def test_maps_together_are_the_maps():
    rows = MIXED.points(40)
    parts = tuple(maps for maps, domain in MAPS.values() if domain is MIXED)
    both = Together(parts)
    assert both.blocks == len(parts)
    assert both.spreads == tuple(spread for part in parts for spread in part.spreads)
    for index, (raw, part) in enumerate(zip(both.raw(rows), parts, strict=True)):
        alone = next(iter(part.raw(rows)))
        assert np.array_equal(raw, alone)
        assert np.array_equal(both.measure(index, raw), part.measure(0, alone))


def test_harmonics_are_those_of_the_middle_of_a_cell():
    values = np.concatenate([[0.0, 0.5, 1.0, 1e-300], np.random.default_rng(6).uniform(size=500)])
    found = Harmonics(Domain((0,)), 4)(values[:, None])
    angles = np.outer(values, pi * np.arange(1, 5))
    expected = np.hstack([np.cos(angles), np.sin(angles)])
    assert np.abs(found - expected).max() <= 4 * pi / (2 * CELLS) + 1 / 512
    assert np.array_equal(found * 256, np.rint(found * 256))


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_bins_are_exact_whatever_the_order(weighted):
    """Features are multiples of a power of two: sums are the same to the last bit."""
    domain = Domain((0, 3, 0, 12))
    kernels = kernel_grid("gaussian", None, domain)
    tabulated = tabulated_kernels(kernels, domain.landmarks(), domain)
    assert tabulated is not None
    harmonics = Harmonics(domain, 3)
    parts = tabulated, ColumnMap(harmonics), PairMap(harmonics), MeanMap(domain)
    maps = Together((*parts, ThresholdMap(domain, 50)))
    rng = np.random.default_rng(8)
    rows = np.floor(rng.uniform(size=(5000, 4)) * [1, 3, 1, 12]).astype(float)
    rows[:, [0, 2]] = rng.uniform(size=(5000, 2))
    signs = rng.integers(-1, 2, size=5000).astype(float) if weighted else None
    edges = np.array([0, 700, 700, 3000, 5000])
    first = list(maps.binned(rows, edges, signs))
    order = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in pairwise(edges)])
    again = list(maps.binned(rows[order], edges, None if signs is None else signs[order]))
    by_row = signs if signs is not None else np.ones(5000)
    for found, shuffled, raw in zip(first, again, maps.raw(rows), strict=True):
        assert np.array_equal(found, shuffled)
        assert np.array_equal(found, np.array([by_row[a:b] @ raw[a:b] for a, b in pairwise(edges)]))


@pytest.mark.parametrize("levels", [(0,) * 10, (0,), (0, 0), (0, 3, 0, 12, 0), (3, 256)])
def test_sums_from_codes_are_those_of_the_features(levels, monkeypatch):
    """Bit for bit, with empty bins, bins of more rows than a slot has, and values at the ends."""
    monkeypatch.setattr("privatest.numerics.coded._AT_ONCE", 2048)  # several calls for all bins
    domain = Domain(levels)
    family = chosen_statistics(None, domain, kernel_only=False)
    many = len(levels) > 2
    maps = _on_landmarks(kernel_grid("gaussian", None, domain), domain, coded=True, few=many)[1]
    coded = CodedMaps((maps, *members(family, domain, 258, coded=True)), domain)
    rng = np.random.default_rng(9)
    rows = rng.uniform(size=(4000, len(levels)))
    rows[:3] = np.array([0.0, 1.0, 0.5])[:, None]
    for column in domain.categorical:
        rows[:, column] = rng.integers(levels[column], size=4000)
    order, codes = rng.permutation(4000), coded.codes(rows)
    # bins of several slots each, all alike or not; a slot more than one has
    for edges in ([0, 1, 1, 1500, 1507, 4000], [0, 2000, 4000], [0, 1100, 2000, 3000, 4000]):
        sums = CodedSums(coded, len(edges) - 1)
        for part in (order, order[::-1]):  # all rows twice: sums go on
            sums.add(np.append(codes, sums.nothing, axis=0), part, np.array(edges))
        found = list(sums.finish())
        twice = zip(coded.raw(rows[order]), coded.raw(rows[order[::-1]]), strict=True)
        for own, both in zip(found, twice, strict=True):
            expected = [[raw[a:b].sum(axis=0) for a, b in pairwise(edges)] for raw in both]
            assert np.array_equal(own, np.sum(expected, axis=0))
    nobody = list(coded.binned(rows[:0], np.zeros(3, dtype=int)))
    assert [part.shape for part in nobody] == [(2, part.shape[1]) for part in found]
    assert not any(part.any() for part in nobody)


def test_sums_of_blocks_that_wait_are_those_of_all_rows():
    """The second block is short: what fills its slots is nothing, not rows of the first."""
    domain = Domain((0, 0))
    coded = CodedMaps(members(("additive", "pairwise", "mean"), domain, 258, coded=True), domain)
    rows = np.random.default_rng(2).uniform(size=(BLOCK_ROWS + 10, 2))
    bins = secret_bins([30_000, len(rows) - 30_000], SimulatedNoise(1))
    found = BinSums(coded, bins, len(rows))
    with patch("privatest.numerics.permutation._BLOCKS_AT_ONCE", 1):
        found.update(rows[:BLOCK_ROWS], 0)
        found.update(rows[BLOCK_ROWS:], BLOCK_ROWS)
        found.close()
    order, edges = bin_order(bins.of_rows(0, len(rows)), 2)
    for own, expected in zip(found.sums, coded.binned(rows[order], edges), strict=True):
        assert np.array_equal(own.value, expected)


def test_codes_are_for_few_columns_and_categories():
    assert has_codes(Domain((0, 256)))
    assert not has_codes(Domain((0, 257)))
    assert not has_codes(Domain((0,) * 32))
    assert not has_codes(Domain.anywhere(2))


@pytest.mark.parametrize("levels", [(0,), (0, 0), (0, 0, 0, 0, 0), (0, 4), (3, 5), (0, 0, 2)])
@pytest.mark.parametrize("family", ["gaussian", "imq"])
def test_tabulated_kernels_are_no_further_apart_than_they_say(levels, family):
    domain = Domain(levels)
    maps = tabulated_kernels(kernel_grid(family, None, domain), domain.landmarks(), domain)
    assert maps is not None
    corners = np.array(list(product(*[(0.0, 1.0) if not k else (0.0, k - 1.0) for k in levels])))
    rows = np.vstack([corners, domain.points(200)])
    for index, (raw, spread) in enumerate(zip(maps.raw(rows), maps.spreads, strict=True)):
        features = maps.project(index, raw)
        apart = np.linalg.norm(features[:, None] - features, axis=2)
        assert apart.max() <= spread
        assert spread <= maps.kernels[index].spread(domain) * 1.03


def test_tables_are_only_for_what_fits():
    wide = Domain((0,) * 400)
    assert tabulated_kernels(kernel_grid("gaussian", 1.0, wide), wide.landmarks(), wide) is None
    line = Domain((0,))
    assert tabulated_kernels(kernel_grid("laplace", 1.0, line), line.landmarks(), line) is None
