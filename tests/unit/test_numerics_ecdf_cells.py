"""J by cells is the number that sorting finds, whatever the values and the cells."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privatest.numerics import ecdf as ecdf_cells
from privatest.numerics.ecdf import two_sample, two_sample_cells

WALKS: dict[str, tuple[Any, Any]] = {
    "ks": ("ks", "two-sided"),
    "kuiper": ("kuiper", "two-sided"),
    "greater": ("ks", "greater"),
    "less": ("ks", "less"),
}
finite = st.floats(allow_nan=False, allow_infinity=False)
near = st.integers(-40, 40).map(lambda place: place / 8)
samples = st.lists(st.one_of(near, near, near, finite), min_size=1, max_size=40)


def by_cells(x, y, walk, shuffle, cells=7):
    """J by few cells, which are kept even where sorting would be quicker."""
    with patch.multiple(ecdf_cells, _CELLS=cells, _FEW=1.0, _CROWD=2.0, _BLOCK=5):
        return two_sample_cells(x, y, WALKS[walk][0], shuffle, WALKS[walk][1])


def whole(x, y, walk, labels):
    return two_sample(x, y, WALKS[walk][0], labels, WALKS[walk][1])


@given(samples, samples, st.sampled_from(list(WALKS)), st.integers(2, 60), st.integers(0, 2**32))
@example([0.0, -1e308], [1e308, 5e-324], "ks", 7, 0)
@example([5e-324], [1e-323], "kuiper", 7, 0)
@example([-0.0, 1.0, 2.0], [0.5, 1.5], "less", 3, 0)
def test_without_ties_between_samples_no_label_is_drawn(x, y, walk, cells, seed):
    """Any finite values, any number of cells: the same J; ties within a sample are no matter."""
    own, other = np.array(x), np.array([value for value in y if value not in x] or [max(x) + 99])
    if np.isin(other, own).any():  # a value so large that 99 more is the same
        return

    def shuffle(count):
        assert count == 0
        return np.arange(0)

    labels = np.random.default_rng(seed).permutation(len(own) + len(other))
    assert by_cells(own, other, walk, shuffle, cells) == whole(own, other, walk, labels)


@given(
    st.lists(near, min_size=1, max_size=30, unique=True),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(list(WALKS)),
    st.integers(2, 40),
    st.integers(0, 2**32),
)
def test_labels_break_ties_within_a_cell(values, of_x, of_y, walk, cells, seed):
    """One value is in both samples: its labels are drawn, or its order is no matter."""
    rng = np.random.default_rng(seed)
    atom, rest = values[0], np.array(values[1:])
    in_x = rng.random(len(rest)) < 0.5
    x, y = (
        np.append(own, [atom] * count) for own, count in ((rest[in_x], of_x), (rest[~in_x], of_y))
    )
    labels = rng.permutation(len(x) + len(y))
    tied = np.concatenate([labels[len(x) - of_x : len(x)], labels[-of_y:]])

    def shuffle(count):
        assert count in (0, len(tied))
        return np.argsort(np.argsort(tied[:count]))

    assert by_cells(x, y, walk, shuffle, cells) == whole(x, y, walk, labels)


@pytest.mark.parametrize("walk", list(WALKS))
def test_ties_of_several_values_have_the_same_law(walk):
    """All orders of labels, once: the multiset of J is that of the whole walk."""
    x, y = np.array([1.0, 3, 1]), np.array([1.0, 3, 0])
    laws: dict[str, list[float]] = {"whole": [], "cells": []}
    for labels in itertools.permutations(range(6)):
        own = np.array(labels)
        laws["whole"].append(whole(x, y, walk, own))
        laws["cells"].append(
            by_cells(x, y, walk, lambda count, own=own: np.argsort(np.argsort(own[:count])), 3)
        )
    found, expected = (np.unique(law, return_counts=True) for law in laws.values())
    np.testing.assert_array_equal(found, expected)


def drawn(kind, rng, size):
    made: dict[str, Any] = {
        "uniform": rng.random,
        "normal": rng.standard_normal,
        "heavy": rng.standard_cauchy,
        "skewed": lambda n: np.exp(rng.standard_normal(n)),
        "a few values": lambda n: rng.integers(0, 20, n).astype(float),
        "one value": np.ones,
        "half of them zero": lambda n: np.maximum(rng.standard_normal(n), 0),
        "extremely heavy": lambda n: np.exp(40 * rng.standard_normal(n)),
        "one far out": lambda n: np.append(rng.random(n - 1), 1e300),
    }
    return made[kind](size)


@pytest.mark.parametrize(
    ("kind", "all_sorted"),
    [
        ("uniform", False),
        ("normal", False),
        ("heavy", False),
        ("skewed", False),
        ("one far out", False),
        ("a few values", True),
        ("one value", True),
        ("half of them zero", True),
        ("extremely heavy", True),
    ],
)
def test_crowded_values_are_sorted_at_once(kind, all_sorted):
    """Cells are tried only where they are likely to help; J is the same in any case."""
    rng = np.random.default_rng(5)
    x, y = drawn(kind, rng, 30_000), drawn(kind, rng, 20_000)
    y[::50] += 0.25  # of the same law, nearly
    shuffle = np.random.default_rng(0).permutation
    by_sorting, cells = ecdf_cells._two_sample_by_sorting, ecdf_cells._EqualCells
    count = cells.codes_and_counts
    with (
        patch.object(ecdf_cells, "_two_sample_by_sorting", wraps=by_sorting) as sorts,
        patch.object(cells, "codes_and_counts", autospec=True, side_effect=count) as counts,
    ):
        found = two_sample_cells(x, y, "ks", shuffle)
    assert (sorts.called, counts.called) == (all_sorted, not all_sorted)
    if all_sorted and kind != "half of them zero":  # labels are drawn for all if most are tied
        assert sorts.call_args.kwargs["tied"] == (kind in ("a few values", "one value"))
    few_ties = len(np.intersect1d(x, y)) == 0
    expected = two_sample(x, y, "ks", np.random.default_rng(1).permutation(50_000))
    assert found == expected or not few_ties


def test_where_most_cells_matter_all_are_sorted():
    """The few records that are looked at first may mislead; then counting was in vain."""
    rng = np.random.default_rng(0)
    x, y = rng.random(40_000), rng.random(40_000)
    step = len(x) // ecdf_cells._SEEN + 1
    hidden = np.arange(len(x)) % step != 0
    x[hidden], y[hidden] = x[hidden] / 1e6, y[hidden] / 1e6
    by_sorting = ecdf_cells._two_sample_by_sorting
    with patch.object(ecdf_cells, "_two_sample_by_sorting", wraps=by_sorting) as sorts:
        found = two_sample_cells(x, y, "ks", np.arange)
    assert sorts.called
    assert found == two_sample(x, y, "ks", np.arange(80_000))
