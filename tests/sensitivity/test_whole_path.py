"""From the rows to the numbers that meet noise: what mmd_test computes moves as it declares.

The statistics and their sensitivity are caught inside the public function, just before the
noise is drawn, so that encoding, bins, leftovers, features, permutations, the choice among
kernels and the widening for rounding are all part of what is attacked.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest import Schema, mmd_test
from privatest.audit.coupling import bins_by_rank
from privatest.core.privacy import PermutationSensitivity
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn
from privatest.mechanisms import permutation
from privatest.methods import mmd as mmd_plan
from privatest.noise import SimulatedNoise
from tests.sensitivity.harness import Neighbours, Space, assert_sensitivity, movement

LINE = Domain((0,))
SQUARE = Domain((0, 0))
MIXED = Domain((0, 3))
MIXED_SCHEMA = Schema({"number": NumericColumn(0, 1), "choice": CategoricalColumn((0, 1, 2))})


class Caught:
    """The statistics of the last test and the sensitivity its noise was scaled by, in lattice
    steps, and the sensitivity in the units of the statistic.
    """

    statistics: np.ndarray
    sensitivity: PermutationSensitivity = PermutationSensitivity(1.0, 1.0)
    declared: PermutationSensitivity


@contextmanager
def caught_statistics(orders=None, pairs=None):
    """Run tests with given secret orders of rows, and catch what they compute.

    ``pairs`` is the order for tests that swap labels of pairs in one pass.
    """
    caught, scale_of = Caught(), permutation.noise_scale

    def noise_scale(sensitivity, epsilon, release):
        # the last call is the one before the noise, and that before it has other units
        caught.declared, caught.sensitivity = caught.sensitivity, sensitivity
        return scale_of(sensitivity, epsilon, release)

    def survival_mean(value, points, scale):
        caught.statistics = np.array(points, dtype=float)
        return Fraction(1, 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permutation, "noise_scale", noise_scale)
        patch.setattr(permutation, "survival_mean", survival_mean)
        if orders is not None:
            waiting = iter(orders)
            patch.setattr(SimulatedNoise, "permutation", lambda self, size: next(waiting))
        if pairs is not None:
            bins, pair_bins, few = bins_by_rank(pairs)
            patch.setattr("privatest.numerics.permutation.secret_bins", bins)
            patch.setattr("privatest.numerics.permutation.secret_few", few)
            patch.setattr("privatest.numerics.permutation.secret_pair_bins", pair_bins)
        yield caught


def coupled_orders(labels, adjacency):
    """Secret orders that give every record the same place in both neighbours.

    They are as likely as any others, whatever the data: this is the coupling of the proof.
    """
    stored = np.concatenate([np.flatnonzero(labels), np.flatnonzero(~labels)])
    pairs = np.argsort(stored)  # for the pooled variances of a family
    if adjacency == "row":
        return [pairs.copy(), pairs]
    rng = np.random.default_rng(7)
    return [*(rng.permutation(np.sum(group)) for group in (labels, ~labels)), pairs]


def whole_path(adjacency, **parameters):
    """The statistic that the noise of mmd_test meets: observed first, then permuted ones."""
    settings: dict[str, Any] = {
        "bounds": (0, 1),
        "n_permutations": 25,
        "epsilon": 1,
        "rng": 3,
    } | parameters
    if adjacency == "row":  # swaps: test_pair_swaps.py
        settings = {"relabel": "permute"} | settings

    def run(rows, labels):
        orders = coupled_orders(labels, adjacency)
        pairs = orders[0].copy() if adjacency == "row" else None
        with caught_statistics(orders, pairs) as caught:
            mmd_test(
                rows[labels],
                rows[~labels],
                adjacency=adjacency,
                noise=SimulatedNoise(0),
                **settings,
            )
        return caught

    return run


def attack(run, space, **search):
    """Fail if a neighbour moves the observed or a permuted statistic further than declared."""
    start = np.random.default_rng(0).integers(2, size=(space.total, space.domain.dimension))
    public = run(start.astype(float), np.arange(space.total) < space.n)
    bounds = np.full(len(public.statistics), public.sensitivity.permuted)
    bounds[0] = public.sensitivity.observed

    def statistic(rows, labels):
        found = run(rows, labels)
        assert found.sensitivity == public.sensitivity, "a sensitivity depends on data"
        return found.statistics

    return assert_sensitivity(statistic, bounds, space, **search)


SEARCH = {"restarts": 2, "steps": 60}


@pytest.mark.parametrize(
    ("n", "m", "bin_size"), [(4, 4, None), (9, 5, 2), (5, 13, 4), (3, 8, 3), (11, 2, None)]
)
@pytest.mark.parametrize("estimator", ["v", "u"])
@pytest.mark.parametrize("adjacency", ["one", "both"])
def test_exact_kernel_with_bins_and_leftovers(adjacency, estimator, n, m, bin_size):
    run = whole_path(adjacency, estimator=estimator, bandwidths=0.7, bin_size=bin_size)
    assert attack(run, Space(LINE, n, m, adjacency), **SEARCH) > 0.3


@pytest.mark.parametrize("method", ["exact", "nystrom", "fourier"])
@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
def test_every_way_of_computing(adjacency, method):
    run = whole_path(adjacency, method=method, bandwidths=1.0)
    assert attack(run, Space(LINE, 7, 4, adjacency), **SEARCH) > 0.3


@pytest.mark.parametrize("release", ["pvalue", "decision"])
@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
def test_default_grid_of_bandwidths(adjacency, release):
    run = whole_path(adjacency, release=release)
    attack(run, Space(LINE, 6, 4, adjacency), **SEARCH)


@pytest.mark.parametrize("epsilon", [0.01, 20])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "imq"])
def test_kernels_in_two_dimensions(kernel, epsilon):
    run = whole_path("one", kernel=kernel, epsilon=epsilon, bandwidths=[2.0, 0.5, 0.1])
    attack(run, Space(SQUARE, 3, 5), **SEARCH)


@pytest.mark.parametrize("method", ["exact", "nystrom"])
@pytest.mark.parametrize("adjacency", ["one", "row"])
def test_mixed_rows(adjacency, method):
    run = whole_path(adjacency, bounds=MIXED_SCHEMA, method=method, bandwidths=[1.0, 0.3])
    attack(run, Space(MIXED, 6, 5, adjacency), restarts=2, steps=25)


def test_rows_in_several_blocks_with_leftovers():
    # 131 rows: 43 blocks of three labels, two rows left over
    run = whole_path("row", method="nystrom", bandwidths=0.5)
    attack(run, Space(LINE, 90, 41, "row"), restarts=1, steps=20)


def test_unbounded_data():
    run = whole_path("both", bounds=None, bandwidths=[10.0, 1.0])
    attack(run, Space(Domain((0,), bounded=False), 4, 6, "both"), **SEARCH)


def test_a_sensitivity_planted_too_small_is_caught(monkeypatch):
    monkeypatch.setattr(
        mmd_plan,
        "mmd_sensitivity",
        lambda spread, n, m, adjacency: PermutationSensitivity(
            0.9 * spread / min(n, m), 0.9 * spread / min(n, m)
        ),
    )
    run = whole_path("one", bandwidths=1.0)
    with pytest.raises(AssertionError, match="of its sensitivity"):
        attack(run, Space(LINE, 4, 5), **SEARCH)


@pytest.mark.parametrize("adjacency", ["one", "both", "row"])
def test_a_person_with_several_rows(adjacency):
    """Two rows of one person: the declared sensitivity is twice that of one row."""
    found = []
    for rows_per_person in (1, 2):
        schema = Schema({"number": NumericColumn(0, 1)}, rows_per_person=rows_per_person)
        run = whole_path(adjacency, bounds=schema, bandwidths=1.0)
        found.append(run(np.zeros((9, 1)), np.arange(9) < 5))
    single, double = (caught.declared for caught in found)
    assert double.observed == pytest.approx(2 * single.observed, rel=1e-6)
    assert double.permuted == pytest.approx(2 * single.permuted, rel=1e-6)


def test_two_rows_of_a_person_move_the_statistic_twice_as_far():
    schema = Schema({"number": NumericColumn(0, 1)}, rows_per_person=2)
    run = whole_path("one", bounds=schema, bandwidths=1.0)
    pair = Neighbours(
        rows=np.zeros((9, 1)),
        labels=np.arange(9) < 5,
        replaced=np.array([6, 8]),
        new_rows=np.ones((2, 1)),
        new_label=False,
        permutation=np.arange(9),
    )
    moved = movement(lambda rows, labels: run(rows, labels).statistics[0], pair)
    declared = run(pair.rows, pair.labels).sensitivity.observed
    assert 0.99 * declared < moved <= declared


# --- why rows are put into a secret order ----------------------------------------------------


def in_stored_order(rows, labels):
    """The statistics of bins that are cut from the rows as they are stored: sorted."""
    x, y = np.sort(rows[labels], axis=0), np.sort(rows[~labels], axis=0)
    with caught_statistics([np.arange(len(x)), np.arange(len(y))]) as caught:
        mmd_test(
            x,
            y,
            epsilon=1,
            bounds=(0, 1),
            bandwidths=0.1,
            bin_size=2,
            n_permutations=60,
            rng=3,
            noise=SimulatedNoise(0),
        )
    return caught


def test_bins_of_sorted_rows_would_move_further_than_declared():
    """A replaced record shifts all rows behind it in a sorted file, so many bins change."""
    with pytest.raises(AssertionError, match=r"moves by 1\.[1-9].* of its sensitivity"):
        attack(in_stored_order, Space(LINE, 8, 8), restarts=2, steps=150)


def test_a_sorted_file_breaks_the_bound_and_the_secret_order_mends_it():
    # 0 becomes 1 in x: every bin of the sorted x passes its first row on
    x = np.array([0.0, 0.2, 0.2, 0.6, 0.6, 0.8, 0.8, 0.9])[:, None]
    y = np.zeros((8, 1))
    rows, labels = np.vstack([x, y]), np.arange(16) < 8
    other = rows.copy()
    other[0] = 1.0
    first, second = in_stored_order(rows, labels), in_stored_order(other, labels)
    moved = np.abs(first.statistics - second.statistics).max()
    assert moved > 1.1 * first.sensitivity.permuted
    run = whole_path("one", bandwidths=0.1, bin_size=2, n_permutations=60)
    first, second = run(rows, labels), run(other, labels)
    assert np.abs(first.statistics - second.statistics).max() <= first.sensitivity.permuted


def law_of_statistics(x, y, **parameters):
    """All statistics that the secret orders can give, each order once."""
    sizes = [len(x) + len(y)] if parameters["adjacency"] == "row" else [len(x), len(y)]
    found = []
    for orders in itertools.product(*(itertools.permutations(range(size)) for size in sizes)):
        with caught_statistics(np.array(order) for order in orders) as caught:
            mmd_test(
                x,
                y,
                epsilon=1,
                bounds=(0, 1),
                n_permutations=4,
                bandwidths=0.4,
                rng=1,
                noise=SimulatedNoise(0),
                **parameters,
            )
        found.append(np.round(caught.statistics, 9).tolist())
    return sorted(found)


@pytest.mark.parametrize(
    "parameters",
    [
        {"adjacency": "one", "method": "exact", "bin_size": 2},
        {"adjacency": "row", "method": "exact", "relabel": "permute"},
        {"adjacency": "row", "method": "fourier", "relabel": "permute"},
        {"adjacency": "row", "method": "exact", "relabel": "swap"},
    ],
    ids=lambda parameters: "-".join(map(str, parameters.values())),
)
def test_the_stored_order_does_not_matter(parameters):
    """Whatever the stored order, the statistics have the same law over the secret one."""
    x, y = np.array([0.9, 0.1, 0.4]), np.array([0.3, 0.8])
    laws = [
        law_of_statistics(stored_x, stored_y, **parameters)
        for stored_x, stored_y in ((x, y), (np.sort(x), np.sort(y)), (x[::-1], y))
    ]
    assert laws[0] == laws[1] == laws[2]
