"""Mean Fourier features: no pair of neighbours moves them further than declared."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.data.schema import Domain
from privatest.numerics.features import cos_sin, kernel_map
from privatest.numerics.kernels import UNIT_ROUNDOFF, Kernel, gram
from privatest.synthetic import fourier
from privatest.synthetic.fourier import mean_features, mean_features_sensitivity
from tests.sensitivity.harness import Space

BOX = Domain((0, 0))
MIXED = Domain((0, 3, 2))
CASES = [
    pytest.param(Kernel("gaussian", 0.1), BOX, "lattice", 1000, id="narrow lattice"),
    pytest.param(Kernel("gaussian", 2.0), BOX, "lattice", 1000, id="wide lattice"),
    pytest.param(Kernel("gaussian", 0.05), Domain((0,)), "lattice", 20, id="short lattice"),
    pytest.param(Kernel("gaussian", 0.7), MIXED, "lattice", 1000, id="mixed lattice"),
    pytest.param(Kernel("gaussian", 1.0, 0.0), Domain((2, 3, 4)), "lattice", 99, id="categories"),
    pytest.param(Kernel("gaussian", 0.2), BOX, "random", 5, id="few random"),
    pytest.param(Kernel("gaussian", 5.0), BOX, "random", 50, id="wide random"),
    pytest.param(Kernel("laplace", 0.5), MIXED, "random", 30, id="mixed random"),
    pytest.param(Kernel("gaussian", 3.0), Domain((0, 0), bounded=False), "random", 7, id="no box"),
]


def build(kernel, domain, kind, count, seed=0):
    return kernel_map(kernel, domain, count, np.random.default_rng(seed), kind)


def furthest_apart(public, domain, *, seed=0, rounds=40, width=400):
    """Hill climbing over many pairs of rows at once: the largest distance of their features."""
    rng = np.random.default_rng(seed)
    space = Space(domain, width, 0)

    def distance(x, y):
        return np.linalg.norm(public(x) - public(y), axis=1)

    pairs = [np.vstack([space.rows(rng, width // 4) for _ in range(4)]) for _ in range(2)]
    pairs[1][: width // 4] = np.array([max(level - 1, 1) for level in domain.levels])
    pairs[0][: width // 4] = 0.0  # opposite corners
    best = distance(*pairs)
    for step in np.geomspace(0.5, 1e-4, rounds):
        trial = [rows.copy() for rows in pairs]
        for rows in trial:
            for column, level in enumerate(domain.levels):
                if level:
                    moved = rng.random(width) < 0.2
                    rows[moved, column] = rng.integers(level, size=int(moved.sum()))
                else:
                    rows[:, column] += step * rng.normal(size=width)
            if domain.bounded:
                rows[:, domain.numeric] = np.clip(rows[:, domain.numeric], 0, 1)
        new = distance(*trial)
        better = new >= best
        best = np.where(better, new, best)
        for rows, changed in zip(pairs, trial, strict=True):
            rows[better] = changed[better]
    return float(best.max())


@pytest.mark.parametrize(("kernel", "domain", "kind", "count"), CASES)
def test_no_two_rows_are_further_apart_than_declared(kernel, domain, kind, count):
    for seed in range(3):
        public = build(kernel, domain, kind, count, seed)
        assert furthest_apart(public, domain, seed=seed) <= public.spread


@pytest.mark.parametrize(
    ("kernel", "domain"),
    [
        (Kernel("gaussian", 0.1), BOX),
        (Kernel("gaussian", 2.0), BOX),
        (Kernel("gaussian", 0.7), MIXED),
    ],
)
def test_the_bound_of_a_lattice_is_reached(kernel, domain):
    public = build(kernel, domain, "lattice", 1000)
    assert furthest_apart(public, domain) > 0.9999 * public.spread
    assert public.spread < kernel.spread(domain) * (1 + 1e-6)


def test_the_bound_of_random_features_is_reached_on_a_small_box():
    """Frequencies of one sign: opposite corners are as far apart as the bound says."""
    public = build(Kernel("gaussian", 5.0), Domain((0,)), "random", 50)
    assert furthest_apart(public, Domain((0,))) > 0.9999 * public.spread


def test_the_root_of_2_is_refuted_for_random_features():
    """What a kernel that is never negative would allow; few random features are negative."""
    public = build(Kernel("gaussian", 0.2), BOX, "random", 5)
    assert furthest_apart(public, BOX) > 1.2 * math.sqrt(2)


def test_the_published_features_are_longer_than_they_may_be():
    """The authors' sqrt(2/J) cos(wx + b) has no norm of at most 1, which their proof needs."""
    rng = np.random.default_rng(1)
    frequencies, shifts = rng.normal(size=(1, 20)) * 40, rng.uniform(0, 2 * math.pi, size=20)
    rows = rng.uniform(size=(20_000, 1))
    published = math.sqrt(2 / 20) * np.cos(rows @ frequencies + shifts)
    assert np.linalg.norm(published, axis=1).max() > 1.1


# --- whole means -----------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "domain", "kind", "count"), CASES)
@pytest.mark.parametrize("n_rows", [1, 2, 7])
def test_means_of_neighbours(kernel, domain, kind, count, n_rows):
    public = build(kernel, domain, kind, count)
    limit = mean_features_sensitivity(public, n_rows).value
    rng, space = np.random.default_rng(n_rows), Space(domain, n_rows, 0)
    for _ in range(60):
        rows = space.rows(rng, n_rows)
        other = rows.copy()
        other[int(rng.integers(n_rows))] = space.rows(rng, 1)[0]
        moved = np.linalg.norm(mean_features(rows, public) - mean_features(other, public))
        assert moved <= limit


def test_a_person_with_several_rows():
    public = build(Kernel("gaussian", 0.1), BOX, "lattice", 1000)
    rows = np.zeros((10, 2))
    other = rows.copy()
    other[:3] = 1.0
    moved = np.linalg.norm(mean_features(rows, public) - mean_features(other, public))
    assert moved > mean_features_sensitivity(public, 10, 2).value
    assert moved <= mean_features_sensitivity(public, 10, 3).value
    # no person has more rows than there are
    assert mean_features_sensitivity(public, 10, 50) == mean_features_sensitivity(public, 10, 10)


# --- rounding ----------------------------------------------------------------------------------


def exactly(rows, public):
    """Features in extended precision; pi too."""
    turn = rows.astype(np.longdouble) @ public.frequencies.astype(np.longdouble)
    return np.hstack([np.cos(turn), np.sin(turn)]) * np.tile(public.amplitudes, 2)


def test_cosines_and_sines():
    quarters = np.concatenate([np.linspace(-2, 2, 20_001), [0.0, -0.0, 1.0, 2.0, -2.0]])
    half_turn = np.longdouble(math.pi) + np.longdouble(1.2246467991473532e-16)
    exact = quarters.astype(np.longdouble) * half_turn / 2
    for ours, theirs in zip(cos_sin(quarters), (np.cos(exact), np.sin(exact)), strict=True):
        assert np.abs(ours - theirs).max() < 16 * UNIT_ROUNDOFF


@pytest.mark.parametrize(("kernel", "domain", "kind", "count"), CASES[:-1])
def test_features_are_as_exact_as_declared(kernel, domain, kind, count):
    public = build(kernel, domain, kind, count)
    rng = np.random.default_rng(2)
    rows = Space(domain, 300, 0).rows(rng, 300)
    error = np.linalg.norm((public(rows) - exactly(rows, public)).astype(float), axis=1)
    assert error.max() <= public.rounding


def test_without_bounds_features_are_unit_vectors_whatever_the_rows():
    domain = Domain((0, 0), bounded=False)
    public = build(Kernel("gaussian", 1e-3), domain, "random", 9)
    rows = np.array([[1e300, -1e308], [1e308, 1e308], [1e17, 3.0], [0.0, 5e-324]])
    norms = np.linalg.norm(public(rows), axis=1)
    assert np.abs(norms - 1).max() <= public.rounding


@pytest.mark.parametrize("kind", ["lattice", "random"])
def test_means_are_as_exact_as_declared(kind, monkeypatch):
    """Many short strips and blocks: the error of summation stays within its bound."""
    public = build(Kernel("gaussian", 0.3), BOX, kind, 200)
    rows = np.random.default_rng(3).uniform(size=(5_000, 2))
    exact = exactly(rows, public).mean(axis=0).reshape(2, -1)
    for strip, block in ((16_384, 8_192), (64, 300)):
        monkeypatch.setattr(fourier, "_STRIP", strip)
        monkeypatch.setattr(fourier, "_BLOCK_VALUES", block)
        error = float(np.linalg.norm((mean_features(rows, public) - exact).astype(float)))
        sensitivity = mean_features_sensitivity(public, len(rows)).value
        slack = (sensitivity - public.spread / len(rows)) / 2
        assert error <= slack
        assert slack < 1e-6 * sensitivity


@pytest.mark.parametrize(
    ("kernel", "domain"),
    [
        (Kernel("gaussian", 0.1), BOX),
        (Kernel("gaussian", 0.7), MIXED),
        (Kernel("gaussian", 2.0, 0.3), Domain((3, 2))),
    ],
)
def test_lattice_features_are_the_kernel(kernel, domain):
    public = build(kernel, domain, "lattice", 2000)
    x, y = domain.points(150), domain.points(170)[::-1]
    error = np.abs(public(x) @ public(y).T - gram(kernel, x, y, domain))
    assert error.max() < 1e-6


@pytest.mark.parametrize("kernel", [Kernel("gaussian", 0.7), Kernel("laplace", 0.5)])
def test_random_features_are_nearly_the_kernel(kernel):
    """An entry has a standard deviation of at most 1/sqrt(J); six of them for 3,500 entries."""
    public = build(kernel, MIXED, "random", 20_000)
    x, y = MIXED.points(50), MIXED.points(70)[::-1]
    error = np.abs(public(x) @ public(y).T - gram(kernel, x, y, MIXED))
    assert error.max() < 6 / math.sqrt(20_000)
