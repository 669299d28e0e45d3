"""The audit: it finds planted mistakes, and nothing in what is shipped.

Searches are seeded; runs with secret noise raise a false alarm with probability 1e-6 a pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from privatest.audit import NAMES, audit
from privatest.audit.auditing import Audited, _audited
from privatest.audit.cases import SCHEMA, cases
from privatest.audit.distinguishing import lower_bound
from privatest.audit.neighbours import random_pair, structured_pairs
from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget, PermutationSensitivity, Sensitivity
from privatest.core.results import Outcome
from privatest.core.witness import Meeting, meets, releases, witnessing
from privatest.mechanisms.additive import laplace
from privatest.mechanisms.permutation import smoothed_pvalue

ONE = Budget(1)
COSTLY = {"release/features", "two-sample/hotelling", "two-sample/tost-proportion"}


@pytest.mark.parametrize("name", [n for n in NAMES if n not in COSTLY])
def test_what_is_shipped_holds(name):
    for found in audit(name, pairs=6, runs=0):
        assert found.holds, found.to_dict()
        assert found.worst.mechanism  # something met noise


@dataclass(frozen=True)
class Planted:
    """A mean of x with Laplace noise, and a mistake."""

    mistake: str
    name: str = "planted"
    budget: Budget = ONE
    private_groups: bool = False
    rows: int = 12
    columns: tuple[str, ...] = ("x",)

    def run(self, table: Any, noise: NoiseSource, rng: int | None = None) -> Outcome:
        x = np.array(table.column("x").to_pylist(), dtype=np.float64)
        n = len(x)
        bound = 1 / n if self.mistake not in ("n for n - 1", "half the noise") else 0.5 / n
        if self.mistake == "no clip":
            x = 10 * x
        if self.mistake == "a scale from the data":
            bound = max(np.ptp(x), 0.1) / n
        if self.mistake == "a step that is left out" and x.max() == x.min():
            return self._result(0.0)
        budget = Budget(2) if self.mistake == "epsilon twice" else self.budget
        told = laplace(x.mean(), sensitivity=Sensitivity(bound), budget=budget, noise=noise)
        if self.mistake == "the raw value":
            told = float(x.mean())
        return self._result(told)

    def _result(self, told: float) -> Outcome:
        facts: dict[str, Any] = {
            "adjacency": "one",
            "unit": "row",
            "method": "",
            "null_hypothesis": "",
            "sizes": {"n": 12},
            "parameters": {},
        }
        spent = self.budget
        return Outcome(
            reject=False,
            alpha=0.05,
            spent=spent,
            simulated=False,
            pvalue=1.0,
            statistic=told,
            **facts,
        )


def attacked(mistake: str, runs: int = 0) -> Audited:
    return _audited(Planted(mistake), 40, runs, 1, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mistake", "attack"),
    [
        ("", ""),
        ("half the noise", "sensitivity"),
        ("no clip", "sensitivity"),
        ("a scale from the data", "record and replay"),
        ("a step that is left out", "record and replay"),
    ],
)
def test_planted_mistakes_are_caught_before_noise(mistake, attack):
    assert attacked(mistake).caught_by == attack


@pytest.mark.parametrize(
    ("mistake", "attack"), [("", ""), ("epsilon twice", "distinguishing"), ("the raw value", "d")]
)
def test_planted_mistakes_are_caught_by_outputs(mistake, attack):
    runs = 20_000 if mistake == "epsilon twice" else 200
    assert attacked(mistake, runs).caught_by[:1] == attack[:1]


def test_a_permuted_statistic_has_a_bound_of_its_own():
    bounds = (1.0, 0.5)
    first = Meeting("m", np.array([0.0, 0.0]), "permutation", bounds, 1.0)
    second = Meeting("m", np.array([0.5, 1.0]), "permutation", bounds, 1.0)
    assert first.ratio(second) == 2.0
    sensitivity = PermutationSensitivity(1.0, 2.0)
    from privatest.noise import SimulatedNoise

    with witnessing() as seen:
        smoothed_pvalue(
            np.array([3.0, 1.0]), sensitivity=sensitivity, budget=Budget(1), noise=SimulatedNoise(1)
        )
    assert [meeting.bounds for meeting in seen.meetings] == [(1.0, 2.0)]


def test_norms():
    def ratio(norm: Any) -> float:
        a, b = np.array([1.0, -2.0, 0.0]), np.zeros(3)
        return Meeting("m", a, norm, (1.0,), 1.0).ratio(Meeting("m", b, norm, (1.0,), 1.0))

    assert ratio("l1") == 3.0
    assert ratio("l2") == pytest.approx(5**0.5)
    assert ratio("linf") == ratio("absolute") == 2.0
    assert ratio("signed sums") == 2.0


def test_without_an_audit_nothing_is_kept():
    meets("laplace", [1.0], "absolute", (1.0,), 1.0)
    assert releases(3.0) == 3.0
    with witnessing([7.0]) as seen:
        assert releases(3.0) == 7.0
        assert releases(3.0) == 3.0
    assert seen.released == [7.0, 3.0]


def test_pairs_are_neighbours():
    rng = np.random.default_rng(1)
    pairs = [*structured_pairs(SCHEMA, 12, 1), *(random_pair(SCHEMA, 12, rng) for _ in range(50))]
    for pair in pairs:
        first, second = (table.to_pylist() for table in pair.tables(SCHEMA))
        differ = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
        assert differ in ([pair.place], [])
        assert pair.other["arm"] == pair.rows[pair.place]["arm"]


def test_lower_bound():
    # of 1000 runs 500 against 100: log 5 is 1.61
    assert 1.0 < lower_bound(500, 100, 1000, 0.0, 1e-6) < 1.61
    assert lower_bound(100, 500, 1000, 0.0, 1e-6) == 0
    assert lower_bound(0, 0, 1000, 0.0, 1e-6) == 0
    assert lower_bound(500, 100, 1000, 0.4, 1e-6) < 0.6


def test_a_bound_is_rarely_wrong():
    """Counts of two laws with ratio e: at an alarm of 5% the bound exceeds 1 in at most 5%."""
    rng, alarm = np.random.default_rng(3), 0.05
    often, seldom = rng.binomial(500, 0.4, size=2000), rng.binomial(500, 0.4 / math.e, size=2000)
    wrong = np.mean(
        [lower_bound(a, b, 500, 0.0, alarm) > 1 for a, b in zip(often, seldom, strict=True)]
    )
    assert wrong <= 0.05


def test_refusals():
    with pytest.raises(ParameterError, match="TEST must be one of"):
        audit("two-sample/nothing")
    with pytest.raises(ParameterError, match="epsilon"):
        audit("paired/sign", epsilon=0)
    assert {case.private_groups for case in cases("two-sample/ks", 1.0)} == {True, False}
