"""Every planted mistake is caught, and the report names the attack.

Searches are seeded. Those with secret noise fail to see what they should with probability below
1e-6, and raise a false alarm with probability 1e-6 at most.
"""

from __future__ import annotations

import pytest

from privatest.audit import ATTACKS, AuditPlan
from privatest.audit.auditing import audit_case
from privatest.audit.cases import cases
from privatest.mechanisms import permutation
from tests.privacy import planted

FREE = ("sensitivity", "replay", "exact")
IN_GROUPS = ("x", "arm")

PLANTED = [
    (planted.half_the_noise, ("x",), "exact"),
    (planted.n_for_the_smaller_size, IN_GROUPS, "sensitivity"),
    (planted.a_seeded_generator, ("x",), "runs"),
    (planted.a_raw_pvalue, ("x",), "replay"),
    (planted.a_forgotten_clip, ("x",), "sensitivity"),
    (planted.a_bandwidth_from_data, ("x",), "replay"),
    (planted.a_nan_path, ("x",), "floats"),
    (planted.double_spending, ("x",), "exact"),
    (planted.an_inferred_domain, ("colour",), "replay"),
    (planted.the_published_tcs, ("x", "y"), "sensitivity"),
    (planted.a_fitted_family, ("x",), "sensitivity"),
    (planted.midranks, IN_GROUPS, "sensitivity"),
    (planted.reused_noise, ("x", "y"), "replay"),
    (planted.float_inversion, ("x",), "floats"),
    (planted.one_sensitivity_for_both, ("x",), "sensitivity"),
    (planted.a_warning, ("x",), "replay"),
    (planted.a_time, ("x",), "time"),
    (planted.row_order, ("x", "y"), "sensitivity"),
    (planted.rounding_down, ("x",), "sensitivity"),
    (planted.a_rounded_down_pvalue, ("x",), "level"),
]


def attack(test, columns, *attacks):
    """Run some attacks on a planted test."""
    plan = AuditPlan(pairs=24, draws=0, runs=200, nulls=12, attacks=attacks)
    return audit_case(planted.case(test, columns), plan)


@pytest.mark.parametrize(
    ("test", "columns", "by"), PLANTED, ids=lambda v: getattr(v, "__name__", "")
)
def test_a_planted_mistake_is_caught(test, columns, by):
    found = attack(test, columns, by)
    assert found.caught_by == (by,), found.to_dict()


def test_the_correct_one_is_not():
    found = attack(planted.correct, ("x",), *ATTACKS)
    assert found.holds, found.to_dict()
    assert found.number("ratio") > 0.99
    assert found.number("loss") == pytest.approx(1.0, abs=1e-6)


def test_time_that_follows_from_what_is_released_is_not():
    found = attack(planted.a_time_of_what_is_released, ("x",), "time")
    assert found.holds, found.to_dict()
    assert max(found.number("steps").values()) < 1.5 * min(found.number("steps").values())


@pytest.mark.parametrize(
    ("test", "by"),
    [(planted.correct, "two rows of a person"), (planted.of_two_groups, "a row of each group")],
)
def test_noise_for_one_row_is_not_enough_for_two(test, by):
    plan = AuditPlan(24, attacks=FREE)
    assert audit_case(planted.case(test, IN_GROUPS), plan).holds
    found = audit_case(planted.case(test, IN_GROUPS, replaces=by), plan)
    assert found.caught_by == ("sensitivity", "exact")
    assert found.number("ratio") > 1.9


def test_secret_noise_of_half_the_size_is_seen():
    """The true loss is 2; with 6,000 draws the bound is 1.5, some 20 deviations above 1."""
    plan = AuditPlan(pairs=20, draws=6000, runs=0, attacks=("draws",))
    assert audit_case(planted.case(planted.half_the_noise, ("x",)), plan).caught_by == ("draws",)


def test_half_the_noise_of_a_shipped_test_is_caught(monkeypatch):
    whole = permutation.noise_scale
    monkeypatch.setattr(permutation, "noise_scale", lambda *given: whole(*given) / 2)
    case = next(each for each in cases("two-sample/mean", 1.0) if each.public_groups)
    found = audit_case(case, AuditPlan(pairs=40, attacks=FREE))
    assert found.caught_by == ("exact",)
