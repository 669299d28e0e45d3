"""Releases lose no more than their budget, and hold nothing of the data.

Audits fail by chance with probability 1e-6; all noise in them is seeded.
"""

from __future__ import annotations

import json
import math
import traceback
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget, Sensitivity, gaussian_scale
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn, Schema
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.numerics.kernels import Kernel, gram
from privatest.synthetic import SyntheticData, release
from privatest.synthetic.embedding import Denoised, coefficient_sensitivity
from tests.privacy.harness import audit, caught

EPSILON, DELTA = 2.0, 0.05  # so large that a thousand runs see a loss
KERNEL = Kernel("gaussian", 0.5)
PUBLIC = np.array([[0.0], [1.0]])
FIRST = np.zeros((2, 1))
SECOND = np.array([[0.0], [1.0]])  # one row goes from one end to the other
MODULE = "privatest.synthetic.releases.coefficient_sensitivity"


@pytest.fixture
def unshrunk(monkeypatch):
    """Shrinkage is post-processing, which can only hide a loss: these attacks go before it."""
    monkeypatch.setattr(
        "privatest.synthetic.releases.denoise",
        lambda noisy, points, sigma, fewer=(): Denoised(noisy, sigma, math.inf, math.inf, points),
    )


def seen(noise, **options):
    """The released number that tells the two data sets apart best: <phi(1) - phi(0), release>."""

    def run(rows):
        synthetic = release(
            rows,
            bounds=(0, 1),
            public_points=PUBLIC,
            kernel=KERNEL,
            epsilon=EPSILON,
            delta=DELTA,
            **options,
            rng=0,
            noise=noise,
        )
        heights = gram(KERNEL, PUBLIC, synthetic.points, Domain((0,))) @ synthetic.weights
        return float(heights[1] - heights[0])

    return run


@pytest.mark.parametrize(("noise", "runs"), [(SimulatedNoise(1), 600), (SecureNoise(), 100)])
def test_a_release_loses_no_more_than_its_budget(noise, runs, unshrunk):
    assert audit(seen(noise), FIRST, SECOND, runs=runs, delta=DELTA) <= EPSILON


def test_half_the_noise_is_caught(monkeypatch, unshrunk):
    def half(*arguments):
        return Sensitivity(coefficient_sensitivity(*arguments).value / 2, "l2")

    monkeypatch.setattr(MODULE, half)
    mechanism = seen(SimulatedNoise(1))
    assert caught(mechanism, FIRST, SECOND, above=EPSILON, runs=1500, delta=DELTA)


def test_a_release_by_features_loses_no_more():
    mechanism = seen(SimulatedNoise(1), weights="bounded", method="features", n_frequencies=30)
    assert audit(mechanism, FIRST, SECOND, runs=40, delta=DELTA) <= EPSILON


# --- nothing of the data ---------------------------------------------------------------------

CANARY = 0.7346291058213646
# Seven digits for texts without noise; ten thousand numbers of secret noise hold any seven by
# chance, in one run of a hundred, so that there it takes twelve (one in ten million).
DIGITS, MORE_DIGITS = "7346291", "734629105821"
SCHEMA = Schema({"a": NumericColumn(0, 1), "b": CategoricalColumn(("yes", "no"))})
TABLE: dict[str, Any] = {
    "a": np.append(np.linspace(0.003, 0.997, 199), CANARY),
    "b": ["yes"] * 199 + ["no"],
}


@pytest.mark.parametrize("method", ["subspace", "features"])
@pytest.mark.parametrize("weights", ["bounded", "nonnegative", "equal"])
def test_no_private_row_is_in_a_release(method, weights, tmp_path):
    synthetic = release(
        TABLE,
        bounds=SCHEMA,
        epsilon=10,
        delta=1e-6,
        n_points=40,
        n_frequencies=200,
        method=method,
        weights=weights,
        rng=0,
    )
    private = {*zip(TABLE["a"].tolist(), TABLE["b"], strict=True)}
    released = {*zip(*(values.tolist() for values in synthetic.columns.values()), strict=True)}
    assert not private & released
    synthetic.save(tmp_path / "a.parquet")
    facts = json.loads(pq.read_schema(tmp_path / "a.parquet").metadata[b"privatest"])["facts"]
    texts = [repr(synthetic), str(synthetic), repr(synthetic.facts), facts]
    texts += [synthetic.to_pandas().to_csv(), repr(synthetic.draws.tolist())]
    assert not any(MORE_DIGITS in text for text in texts)


def test_rows_that_were_declared_public_are_in_it():
    public = {"a": TABLE["a"][:30], "b": TABLE["b"][:30]}
    synthetic = release(TABLE, bounds=SCHEMA, public_points=public, epsilon=1, delta=1e-6)
    assert synthetic.columns["a"] == pytest.approx(public["a"])


def test_points_kernel_and_facts_do_not_depend_on_the_data():
    other = {"a": np.full(200, 0.9), "b": ["no"] * 200}
    first, second = (
        release(
            table,
            bounds=SCHEMA,
            epsilon=1,
            delta=1e-6,
            method="subspace",
            n_points=40,
            noise=SimulatedNoise(1),
        )
        for table in (TABLE, other)
    )
    assert first.facts == second.facts
    assert np.array_equal(first.points, second.points)
    assert not np.array_equal(first.weights, second.weights)


FAILING = {
    "missing": lambda: release(np.array([CANARY, np.nan]), bounds=(0, 1), epsilon=1, delta=1e-6),
    "category": lambda: release(
        {"a": [CANARY], "b": ["canary-7346291"]}, bounds=SCHEMA, epsilon=1, delta=1e-6
    ),
    "no bounds": lambda: release(np.array([CANARY]), epsilon=1, delta=1e-6),
    "duplicates": lambda: release(
        np.full(9, CANARY), bounds=(0, 1), public_points=[CANARY, CANARY], epsilon=1, delta=1e-6
    ),
    "kernel is the data": lambda: release(
        np.full(9, CANARY),
        bounds=(0, 1),
        kernel=cast(Any, [CANARY]),
        epsilon=1,
        delta=1e-6,
    ),
    "M > N": lambda: release(np.full(9, CANARY), bounds=(0, 1), n_points=10, epsilon=1, delta=1e-6),
}


@pytest.mark.parametrize("name", FAILING)
def test_nothing_of_the_data_is_in_an_error(name):
    with pytest.raises((DataError, ParameterError)) as caught:
        FAILING[name]()
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    text = "\n".join(line for line in lines if "release(" not in line)
    assert DIGITS not in text


def test_synthetic_data_has_the_declared_fields_and_no_others():
    fields = {"columns", "weights", "draws", "facts", "before", "coefficients", "measured"}
    assert set(SyntheticData.__slots__) == fields | {
        "_cache"
    }  # which caches what follows from them
    synthetic = release(TABLE, bounds=SCHEMA, epsilon=1, delta=1e-6, n_points=9, method="subspace")
    assert not hasattr(synthetic, "__dict__")
    assert set(synthetic.facts.parameters) == {"weights", "n_points", "tolerance"}


@pytest.mark.parametrize("method", ["subspace", "features"])
def test_the_coefficients_that_are_kept_are_the_noisy_ones(method):
    """Of the same data with other noise: each moves by sqrt(2) sigma, and nothing is exact."""
    made = [
        release(
            TABLE,
            bounds=SCHEMA,
            epsilon=1,
            delta=1e-6,
            method=method,
            n_points=40,
            n_frequencies=200,
            noise=SimulatedNoise(seed),
            rng=0,
        )
        for seed in (1, 2)
    ]
    first, second = (each.coefficients for each in made)
    assert first is not None
    assert second is not None
    moved = first.values - second.values
    assert np.array_equal(first.places, second.places)
    assert first.sigma == second.sigma == made[0].facts.sigma
    # 40 coefficients or more: the root mean square is within .6 to 1.5 of what it should be
    assert 0.6 < np.sqrt(np.mean(moved**2)) / (np.sqrt(2) * first.sigma) < 1.5
    assert np.abs(moved).min() > 0


@pytest.mark.parametrize("person", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"method": "subspace", "public_points": {"a": [0.0, 1.0]}},
        {"method": "features", "n_points": 2, "n_frequencies": 200},
    ],
)
def test_atoms_and_coefficients_together_cost_the_budget(options, person, monkeypatch):
    """Worst neighbours: the squares of movement over noise add up to those of the budget."""
    rounds, plain = [], SimulatedNoise.gaussian

    def recorded(self, values, scale, grid):
        rounds.append((values.copy(), scale))
        return plain(self, values, scale, grid)

    monkeypatch.setattr(SimulatedNoise, "gaussian", recorded)
    described = Schema({"a": NumericColumn(0, 1, atoms=(0,))}, person)
    budget, records = Budget(1, 1e-6), []
    for high in (False, True):
        rows = np.full(40, 0.5)
        rows[:person] = float(high)
        rounds.clear()
        release(
            {"a": rows},
            bounds=described,
            **options,
            kernel=Kernel("gaussian", 0.2),
            epsilon=budget.epsilon,
            delta=budget.delta,
            noise=SimulatedNoise(0),
            rng=0,
        )
        records.append([*rounds])
    assert len(records[0]) == len(records[1]) == 2
    loss = sum(
        float(((one - other) ** 2).sum()) / scale**2
        for (one, scale), (other, _) in zip(*records, strict=True)
    )
    most = 1 / gaussian_scale(1, budget)
    assert most * 0.999 < math.sqrt(loss) <= most
