"""The noisy mean feature, run many times on neighbours: it loses no more than its budget.

Audits of private code fail by chance with probability 1e-6 each; runs with simulated noise are
seeded and always give the same answer.
"""

from __future__ import annotations

import numpy as np
import pytest

from privatest.core.privacy import Budget, gaussian_scale
from privatest.data.schema import Domain
from privatest.mechanisms import additive as mechanisms
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.numerics.features import kernel_map
from privatest.numerics.kernels import Kernel
from privatest.synthetic.fourier import mean_features, noisy_features, reduced_set
from tests.privacy.harness import audit, caught

EPSILON, DELTA = 1.0, 0.1  # a large delta, so that its event is seen in few runs
BUDGET = Budget(EPSILON, DELTA)

CASES = [
    pytest.param(Domain((0,)), Kernel("gaussian", 0.3), "lattice", id="numbers"),
    pytest.param(Domain((0, 2)), Kernel("gaussian", 0.5), "lattice", id="mixed"),
    pytest.param(Domain((0,)), Kernel("gaussian", 4.0), "random", id="random"),
]


def attack(domain, kernel, kind, noise, rows_per_person=1):
    """The release seen along the line between two neighbours: nobody can see them better."""
    first = np.zeros((4, domain.dimension))
    second = first.copy()
    second[:rows_per_person] = 1.0
    public = kernel_map(kernel, domain, 40, np.random.default_rng(5), kind)
    line = mean_features(second, public) - mean_features(first, public)
    line /= np.linalg.norm(line)

    def run(rows):
        released = noisy_features(
            rows,
            kernel=kernel,
            domain=domain,
            n_frequencies=40,
            budget=BUDGET,
            rows_per_person=rows_per_person,
            frequencies=kind,
            rng=5,
            noise=noise,
        )
        return float(np.vdot(line, released.mean))

    return run, first, second


@pytest.fixture
def half_noise(monkeypatch):
    scale_of = gaussian_scale
    monkeypatch.setattr(mechanisms, "gaussian_scale", lambda *given: 0.5 * scale_of(*given))


@pytest.mark.parametrize(("domain", "kernel", "kind"), CASES)
def test_noisy_features(domain, kernel, kind):
    mechanism = attack(domain, kernel, kind, SimulatedNoise(1))
    assert audit(*mechanism, runs=800, delta=DELTA) <= EPSILON


def test_noisy_features_with_secure_noise():
    mechanism = attack(Domain((0,)), Kernel("gaussian", 0.3), "lattice", SecureNoise())
    assert audit(*mechanism, runs=300, delta=DELTA) <= EPSILON


def test_a_person_with_several_rows():
    mechanism = attack(Domain((0,)), Kernel("gaussian", 0.3), "lattice", SimulatedNoise(2), 3)
    assert audit(*mechanism, runs=800, delta=DELTA) <= EPSILON


@pytest.mark.parametrize(("domain", "kernel", "kind"), CASES)
def test_half_the_noise_is_caught(domain, kernel, kind, half_noise):
    mechanism = attack(domain, kernel, kind, SimulatedNoise(1))
    assert caught(*mechanism, above=1.1 * EPSILON, runs=800, delta=DELTA)


def test_the_noise_of_a_single_row_is_too_small_for_a_person_with_three():
    mechanism, first, second = attack(
        Domain((0,)), Kernel("gaussian", 0.3), "lattice", SimulatedNoise(3)
    )
    second[:3] = 1.0
    assert caught(mechanism, first, second, above=EPSILON, runs=800, delta=DELTA)


def test_the_release_holds_no_row():
    """Neither the one row that there is nor an entry of its mean feature."""
    domain = Domain((0, 0))
    rows = np.full((500, 2), 0.123456789012345)
    noisy = noisy_features(
        rows,
        kernel=Kernel("gaussian", 0.3),
        domain=domain,
        n_frequencies=200,
        budget=Budget(1, 1e-6),
    )
    points, _ = reduced_set(noisy, domain=domain, n_points=20, rng=0)
    assert not np.any(np.abs(points - rows[0]) < 1e-12)
    varying = noisy.frequencies.any(axis=0)
    public = kernel_map(noisy.kernel, domain, 200, np.random.default_rng(0))
    assert not np.any((noisy.mean == mean_features(rows, public))[:, varying])
