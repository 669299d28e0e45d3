"""The search for neighbours that break a declared sensitivity: what it finds, and at what cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.core.privacy import PermutationSensitivity
from privatest.data.schema import Box, Schema
from privatest.methods import custom as probe
from privatest.methods.custom import Space, UserStatistic, draw_walk, steepest, varied

pytestmark = pytest.mark.privacy


def gap(x, y):
    return abs(x.mean() - y.mean())


def covariance(x, y):
    return abs(np.mean((x - x.mean()) * (y - y.mean())))


def distance(x, y):
    return np.linalg.norm(x.mean(axis=0) - y.mean(axis=0))


def quantile_gap(x, y):
    return abs(np.quantile(x, 0.9) - np.quantile(y, 0.9))


def variance_gap(x, y):
    return abs(x.var() - y.var())


def correlation(x, y):
    return abs(np.corrcoef(x, y)[0, 1])


def many_are_large(x, y):
    return float(np.mean(x > 0.7) > 0.35) + gap(x, y) / 1000


def kolmogorov(x, y):
    points = np.concatenate([x, y])
    shares = [np.searchsorted(np.sort(z), points, "right") / len(z) for z in (x, y)]
    return np.abs(shares[0] - shares[1]).max()


def trimmed_gap(x, y):
    means = [np.sort(z)[len(z) // 10 : len(z) - len(z) // 10].mean() for z in (x, y)]
    return abs(means[0] - means[1])


def pair_step(n):
    return (n - 1) / n**2


PAIRED, BOTH = {"paired": True}, {"both": True}
Case = tuple[Callable[..., Any], Callable[[int], Any], dict[str, Any]]
WRONG: dict[str, Case] = {
    "half a covariance": (covariance, pair_step, PAIRED),
    "half an observed covariance": (
        covariance,
        lambda n: PermutationSensitivity(pair_step(n) / 2, 2 * pair_step(n)),
        PAIRED,
    ),
    "a quantile": (quantile_gap, lambda n: 1 / n, {}),
    "half a variance": (variance_gap, lambda n: pair_step(n) / 2, {}),
    "a maximum": (lambda x, y: abs(x.max() - y.max()), lambda n: 0.9, {}),
    "a correlation": (correlation, lambda n: 0.5, PAIRED),
    "a ratio": (lambda x, y: x.mean() / y.mean(), lambda n: 2.0, {}),
    "a t-statistic": (lambda x, y: gap(x, y) / np.hypot(x.std(), y.std()), lambda n: 1.0, {}),
    "a rare jump": (many_are_large, lambda n: 0.9, {}),
    "half a distance": (kolmogorov, lambda n: 0.5 / n, {}),
    "a trimmed mean": (trimmed_gap, lambda n: 1 / n, {}),
    "the first row": (lambda x, y: abs(x[0] - y[0]), lambda n: 0.5, {}),
    "a mean": (gap, lambda n: 0.97 / n, {}),
    "both in one sample": (gap, lambda n: 2 / n, BOTH | {"m": 0.5}),
    "the smaller sample": (gap, lambda n: 1 / n, {"m": 0.5}),
    "rounding far from 0": (lambda x, y: 1e17 + abs(x.sum() - y.sum()), lambda n: 1.0, {}),
    "squares far from 0": (
        lambda x, y: np.mean((x + 1e9) ** 2) - np.mean(x + 1e9) ** 2,
        pair_step,
        {},
    ),
}
RIGHT: dict[str, Case] = {
    "covariance": (
        covariance,
        lambda n: PermutationSensitivity(pair_step(n), 2 * pair_step(n)),
        PAIRED,
    ),
    "quantile": (quantile_gap, lambda n: 1.0, {}),
    "variance": (variance_gap, pair_step, {}),
    "distance": (kolmogorov, lambda n: 1 / n, {}),
    "trimmed mean": (trimmed_gap, lambda n: 1 / (n - 2 * (n // 10)), {}),
    "mean": (gap, lambda n: 1 / n, {}),
    "sum, far from 0": (lambda x, y: 1e6 + abs(x.sum() - y.sum()), lambda n: 1.0, {}),
    "both": (gap, lambda n: PermutationSensitivity(3 / n, 4 / n), BOTH | {"m": 0.5}),
    "count": (lambda x, y: 2.0**52 + np.sum(x > 0.5), lambda n: 1.0, {}),
}


def searched(function, n, declared, *, paired=False, both=False, m=1.0) -> int:
    """Search at this size; return how often the statistic was computed."""
    calls = []

    def counted(x, y):
        calls.append(1)
        return function(x, y)

    box = Schema.from_bounds({"a": (0, 1)}).box
    space = Space(box, box, n, round(m * n), paired, both)
    probe.search_neighbours(UserStatistic(counted, vectorized=False), space, declared(n))
    return len(calls)


@pytest.mark.parametrize("n", [20, 100, 1000, 20_000])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_sensitivities_are_found_at_every_size(name, n):
    function, declared, options = WRONG[name]
    with pytest.raises(ParameterError, match="was declared, but it moves by"):
        searched(function, n, declared, **options)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [20, 100, 1000, 20_000])
@pytest.mark.parametrize("name", RIGHT)
def test_right_sensitivities_pass_at_every_size(name, n):
    function, declared, options = RIGHT[name]
    assert searched(function, n, declared, **options) <= (4100 if n <= 1000 else 1300)


def test_a_message_says_when_rounding_is_to_blame():
    with pytest.raises(ParameterError, match="leave out its constant part"):
        searched(lambda x, y: 1e17 + abs(x.sum() - y.sum()), 20, lambda n: 1.0)
    with pytest.raises(ParameterError) as caught:
        searched(gap, 20, lambda n: 0.5 / n)
    assert "rounded" not in str(caught.value)


def test_the_search_counts_steps_not_seconds(monkeypatch):
    """A slow machine computes as often as a quick one, and finds the same."""
    plain = searched(gap, 200, lambda n: 1 / n)
    monkeypatch.setattr("time.perf_counter", iter(range(10**9)).__next__)
    monkeypatch.setattr("time.monotonic", iter(range(10**9)).__next__)
    assert searched(gap, 200, lambda n: 1 / n) == plain
    assert not hasattr(probe, "time")


def test_large_data_is_searched_too():
    calls = searched(gap, 1_000_000, lambda n: 1 / n)
    assert 200 <= calls <= 250
    with pytest.raises(ParameterError, match="n = 1000000"):
        searched(quantile_gap, 1_000_000, lambda n: 1 / n)


@pytest.mark.parametrize(
    ("paired", "both", "parted"),
    [
        (False, False, False),
        (False, True, False),
        (False, True, True),
        (True, False, False),
        (True, False, True),
    ],
)
@pytest.mark.parametrize("n", [4, 7, 60])
def test_what_the_search_compares_differs_in_one_record(paired, both, parted, n):
    """One row, one of each sample, the two parts of a pair, or where a permutation puts them."""
    box, rng = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}).box, np.random.default_rng(0)
    space = Space(box, box, n, n if paired else 4, paired, both)
    value = probe._Counted(UserStatistic(distance, vectorized=False), space, 10**6)
    apart = 0
    for _ in range(60):
        walk = draw_walk(space, rng, parted=parted)
        pair = steepest(walk, value)
        for found in (pair, varied(pair, space, rng), walk.neighbours(walk.steps - 1)):
            assert found.places[0].size + found.places[1].size <= (2 if paired or both else 1)
            for before, after, rows in zip(found.before, found.after, found.places, strict=True):
                assert np.isin(np.flatnonzero((before != after).any(axis=1)), rows).all()
                assert min(before.min(), after.min()) >= 0
                assert max(before.max(), after.max()) <= 1
            if paired or (both and not parted):
                assert [rows.size for rows in found.places] == [1, 1]
            if paired and not parted:
                assert found.places[0] == found.places[1]
            apart += found.places[0].tolist() != found.places[1].tolist()
    assert apart or not parted


@pytest.mark.parametrize("n", [2, 3, 5, 33])
def test_a_walk_replaces_a_record_at_a_time(n):
    box, rng = Box.anywhere(1), np.random.default_rng(1)
    for paired, both, parted in ((True, False, True), (False, True, True), (False, False, False)):
        space = Space(box, box, n, n, paired, both)
        for _ in range(30):
            walk = draw_walk(space, rng, parted=parted)
            assert all(np.array_equal(*pair) for pair in zip(walk.at(0), walk.start, strict=True))
            last = walk.at(walk.steps)
            for step in range(walk.steps):
                pair = walk.neighbours(step)
                assert 1 <= pair.places[0].size + pair.places[1].size <= 1 + (paired or both)
            for rank, end, reached in zip(walk.ranks, walk.end, last, strict=True):
                assert np.array_equal(end[rank < walk.steps], reached[rank < walk.steps])
