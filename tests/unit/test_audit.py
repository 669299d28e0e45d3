"""The audit: nothing is found in what is shipped, and its parts do what they say.

Searches are seeded; runs with secret noise raise a false alarm with probability 1e-6 a case.
Planted mistakes are in tests/privacy/test_planted.py.
"""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import privatest
from privatest.audit import ATTACKS, NAMES, AttackResult, AuditPlan, AuditReport, audit
from privatest.audit.auditing import audit_case
from privatest.audit.cases import SCHEMAS, cases, matching_names, request_name
from privatest.audit.coupling import patched
from privatest.audit.losses import bound_by_sampling, exact_loss, lower_bound
from privatest.audit.neighbours import random_pair, sorted_pair, structured_pairs, with_second_row
from privatest.audit.replay import captured_output, replay, run_case, search
from privatest.cli import app
from privatest.core.errors import ParameterError
from privatest.core.noise import (
    AuditHook,
    MechanismCall,
    SecureNoise,
    SimulatedNoise,
    record,
    released,
)
from privatest.core.privacy import Budget, PermutationSensitivity
from privatest.mechanisms.lattice import noise_law, noisy_integer
from privatest.mechanisms.permutation import smoothed_pvalue
from privatest.numerics import order as value_order

SCHEMA = SCHEMAS["unit"]
COSTLY = {  # they are in docs/audit.json
    "independence/chi2",
    "independence/pearson",
    "python/hotelling_1samp",
    "two-sample/tost",
    "release/subspace",
    "independence/hsic",
    "release/features",
    "two-sample/hodges-lehmann",
    "two-sample/hotelling",
    "two-sample/proportion",
    "two-sample/tost-proportion",
}
FREE = ("sensitivity", "replay", "exact")
# no noise: they work on what was released already, on public numbers, or elsewhere
WITHOUT_NOISE = {
    "adjust",
    "budget",
    "compare",
    "compare_all",
    "compare_releases",
    "connect",
    "distinguishing_features",
    "optimise_frequencies",
    "optimise_locations",
    "plan_share",
    "report",
    "scan",
    "scan_sql",
    "speaking_features",
}


def shipped(name: str, *, plain: bool) -> None:
    """Attack the cases of a name before noise."""
    found = [case for case in cases(name, 1.0) if case.plain == plain]
    assert found
    for case in found:
        told = audit_case(case, AuditPlan(pairs=3, attacks=FREE))
        assert told.holds, told.to_dict()
        assert told.number("mechanism")  # something met noise


@pytest.mark.parametrize("name", [n for n in NAMES if n not in COSTLY])
def test_what_is_shipped_holds(name):
    shipped(name, plain=True)


@pytest.mark.parametrize("name", ["two-sample/mean", "paired/wilcoxon"])
def test_what_is_shipped_holds_for_more_rows(name):
    """Two rows of a person, a row of each group, rows in passes; all of them: docs/audit.json."""
    shipped(name, plain=False)


def test_cases_of_a_name():
    names = [case.name for case in cases("two-sample/ks", 1.0)]
    assert names == [
        "two-sample/ks, private groups",
        "two-sample/ks, public groups",
        "two-sample/ks, private groups, two rows of a person",
        "two-sample/ks, public groups, two rows of a person",
        "two-sample/ks, public groups, a row of each group",
        "two-sample/ks, public groups, in passes",
    ]
    assert {request_name(name) for name in names} == {"two-sample/ks"}
    assert request_name("python/permutation_test, naive") == "python/permutation_test, naive"
    assert request_name("planted/anything") == ""
    # whatever neighbours differ by, the noise is the same: it is attacked once
    assert {f.case for f in audit("paired/sign", plan=AuditPlan(3, attacks=("outputs",)))} == {
        "paired/sign"
    }


@pytest.mark.parametrize("by", ["two rows of a person", "a row of each group"])
def test_neighbours_by_two_rows(by):
    case = next(c for c in cases("two-sample/ks", 1.0) if c.public_groups and c.replaces == by)
    pairs = [with_second_row(pair, case) for pair in structured_pairs(SCHEMA, 12, 3)]
    for pair in pairs:
        first, second = pair.rows, pair.second
        assert [row["arm"] for row in first] == [row["arm"] for row in second]
        differ = {i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b}
        assert differ <= {pair.place, pair.more[0][0]}
        arms = {first[place]["arm"] for place in (pair.place, pair.more[0][0])}
        assert len(arms) == (1 if by.startswith("two") else 2)
    assert any(len(pair.to_dict(["x"])["more"]) == 1 for pair in pairs)


def test_rows_in_passes_are():
    """The way of many rows is taken, in stretches, and its coupling moves one row only."""
    case = next(c for c in cases("two-sample/mann-whitney", 1.0) if "passes" in c.name)
    pair = next(p for p in structured_pairs(SCHEMA, 12, 1) if p.style == "all equal")
    asked: list[Any] = []
    usual = value_order.tied_groups

    def counted(counts: Any, noise: Any) -> Any:
        for groups in usual(counts, noise):
            asked.append(len(groups))
            yield groups

    with patched([(value_order, "tied_groups", counted)]):
        found = replay(case, pair)
    assert asked == [5, 5, 2, 5, 5, 1]  # twelve equal ones, and eleven
    assert found.path == ""
    assert 0 < found.ratio <= 1


def test_every_public_function_has_a_case():
    functions = {case.function for name in NAMES for case in cases(name, 1.0)}
    public = {n for n in privatest.__all__ if inspect.isfunction(getattr(privatest, n))}
    spends = {n for n in public if "noise" in inspect.signature(getattr(privatest, n)).parameters}
    assert spends <= functions
    assert public - spends == WITHOUT_NOISE


def test_all_attacks_on_one():
    plan = AuditPlan(pairs=6, draws=800, runs=10, nulls=3)
    for found in audit("paired/sign", plan=plan):
        assert found.holds, found.to_dict()
        tried = ATTACKS if found.case == "paired/sign" else FREE
        assert {finding.attack for finding in found.findings} == {*tried}
        json.dumps(found.to_dict())


def test_a_permuted_statistic_has_a_bound_of_its_own():
    bounds = (1.0, 0.5)
    first = MechanismCall("m", np.array([0.0, 0.0]), "permutation", bounds, 1.0)
    second = MechanismCall("m", np.array([0.5, 1.0]), "permutation", bounds, 1.0)
    assert first.ratio(second) == 2.0
    sensitivity = PermutationSensitivity(1.0, 2.0)
    hook = AuditHook()
    noise = SimulatedNoise(1, audit=hook)
    smoothed_pvalue(np.array([3.0, 1.0]), sensitivity=sensitivity, budget=Budget(1), noise=noise)
    assert [call.bounds for call in hook.calls] == [(1.0, 2.0)]


@pytest.mark.parametrize("name", ["two-sample/tot", "independence/sarrm"])
def test_votes_of_subsets_are_moved(name):
    """A vote changes only where a p-value is near alpha: the search goes on until one does."""
    for case in cases(name, 1.0):
        worst = search(case, pairs=6, seed=1)
        assert worst.holds
        assert worst.moved.ratio > 0, case.name


def test_an_audit_that_moves_nothing_fails():
    (case,) = (c for c in cases("paired/sign", 1.0) if c.replaces == "a row" and c.plain)
    rows = next(structured_pairs(SCHEMA, case.rows, 1)).tables(SCHEMA)[0]
    still = replace(case, name="still", call=lambda _, noise, rng: case.call(rows, noise, rng))
    found = audit_case(still, AuditPlan(pairs=3, draws=0, runs=0, attacks=["sensitivity"]))
    assert found.caught_by == ("sensitivity",)
    assert "nothing was attacked" in found.findings[0].told


def test_norms():
    def ratio(norm: Any) -> float:
        a, b = np.array([1.0, -2.0, 0.0]), np.zeros(3)
        return MechanismCall("m", a, norm, (1.0,), 1.0).ratio(
            MechanismCall("m", b, norm, (1.0,), 1.0)
        )

    assert ratio("l1") == 3.0
    assert ratio("l2") == pytest.approx(5**0.5)
    assert ratio("linf") == ratio("absolute") == 2.0
    assert ratio("signed sums") == 2.0


def test_a_hook_records_and_replaces_what_is_released():
    noise = SimulatedNoise(1)
    record(noise, "laplace", [1.0], "absolute", (1.0,), 1.0)
    assert released(noise, 3.0) == 3.0
    hook = AuditHook([7.0])
    noise = SimulatedNoise(1, audit=hook)
    record(noise, "laplace", [1.0], "absolute", (1.0,), 1.0)
    assert released(noise, 3.0) == 7.0
    assert released(noise, 3.0) == 3.0
    assert hook.released == [7.0, 3.0]
    assert [call.mechanism for call in hook.calls] == ["laplace"]


def test_secure_noise_has_no_hook():
    noise = SecureNoise()
    assert noise.audit is None
    with pytest.raises(AttributeError):
        noise.audit = AuditHook()  # type: ignore[assignment, misc]
    with pytest.raises(TypeError):
        SecureNoise(audit=AuditHook())  # type: ignore[call-arg]


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


def test_a_sorted_pair_differs_by_one_record():
    case = next(cases("paired/sign", 1.0))
    pair = sorted_pair(case, 12, 1)
    first, second = (sorted(map(repr, rows)) for rows in (pair.rows, pair.second))
    assert len([row for row in first if row not in second]) == 1
    assert [row["x"] for row in pair.second] == sorted(row["x"] for row in pair.second)


def test_large_violations_are_found_early():
    found = bound_by_sampling(lambda which: [float(which)], runs=6400, delta=0.0, most=1.0)
    assert found.epsilon > 1
    assert found.runs < 6400


@pytest.mark.parametrize("name", ["two-sample/mmd", "independence/hsic"])
def test_neighbours_of_permutation_tests_are_told_apart(name):
    """What 50,000 draws would prove, computed: the search is seeded."""
    for case in [each for each in cases(name, 1.0) if each.plain]:
        told = search(case, pairs=30, seed=1).visible
        assert 0.6 < told.visible_loss < told.loss <= 1 + 1e-6


def test_exact_losses():
    def met(mechanism: str, values: Any, norm: Any, bound: float, scale: float) -> MechanismCall:
        return MechanismCall(mechanism, np.array(values, dtype=float), norm, (bound,), scale)

    def loss(mechanism: str, norm: Any, a: Any, b: Any, scale: float, delta: float = 0.0) -> float:
        first, second = ([met(mechanism, v, norm, 1.0, scale)] for v in (a, b))
        return exact_loss(first, second, delta)

    assert loss("laplace", "absolute", [0.0], [1.0], 2.0) == 0.5
    assert loss("Tulap", "absolute", [0.0], [1.0], 2.0) == 0.5
    assert loss("discrete Laplace", "l1", [0.0, 1.0], [1.0, 0.0], 4.0) == 0.5
    assert loss("gaussian", "l2", [0.0], [1.0], 1.0) == math.inf
    scale = 4.2247  # of gaussian_scale(1.0, Budget(1, 1e-6))
    assert loss("gaussian", "l2", [0.0], [1.0], scale, 1e-6) == pytest.approx(1.0, abs=1e-4)
    # a loss of log 3 is at delta = 1/4 one of log(3 - 4/4)
    assert loss("laplace", "absolute", [0.0], [math.log(3)], 1.0, 0.25) == pytest.approx(
        math.log(2)
    )


@pytest.mark.parametrize(
    ("width", "kind", "met"),
    [(3, "tulap", "Tulap"), (3, "laplace", "discrete Laplace"), (1, "laplace", "Tulap")],
)
def test_an_integer_is_declared_to_move_as_far_as_its_noise_is_for(width, kind, met):
    """Laplace noise has a unit of 1, whatever the integer may move by."""
    law, calls = noise_law(width, Budget(1), kind), []
    for value in (0, width):
        hook = AuditHook()
        noisy_integer(value, law=law, noise=SimulatedNoise(1, audit=hook))
        calls.append(hook.calls)
    first, second = calls
    assert first[0].mechanism == met
    assert first[0].ratio(second[0]) == 1.0
    assert exact_loss(first, second, 0.0) == pytest.approx(1.0)


def test_two_rows_of_a_person_in_public_groups_of_successes():
    """They once seemed to move twice as far as declared: the unit of the noise was declared."""
    names = {case.name: case for case in cases("two-sample/proportion", 1.0)}
    case = names["two-sample/proportion, public groups, two rows of a person"]
    pair = next(p for p in structured_pairs(case.schema, 13, 1) if p.style.startswith("blocks"))
    found = replay(case, pair)
    assert (found.mechanism, found.ratio) == ("discrete Laplace", 1.0)
    assert found.loss == pytest.approx(1.0)


def test_a_mechanism_can_be_called_again():
    statistics, bound = np.array([3.0, 1.0]), PermutationSensitivity(1.0, 2.0)
    hook = AuditHook()
    noise = SimulatedNoise(1, audit=hook)
    told = smoothed_pvalue(statistics, sensitivity=bound, budget=Budget(1), noise=noise)
    repeat = hook.calls[0].repeat
    assert repeat is not None
    assert repeat.func is smoothed_pvalue
    assert repeat(noise=SimulatedNoise(1)) == told


def test_all_that_is_said_is_heard(tmp_path):
    import logging
    import warnings

    said: list[str] = []
    with captured_output(said):
        print("printed")
        logging.getLogger("x").debug("logged")
        warnings.warn("warned", stacklevel=1)
        (tmp_path / "file").write_text("written")
    assert [text.partition(":")[0] for text in said] == ["stdout", "log", "warning", "file"]


def test_reports_name_the_attack():
    found = AuditReport(
        "a", "b", 1.0, 0.0, (AttackResult("exact"), AttackResult("time", False, "slow"))
    )
    assert not found.holds
    assert found.caught_by == ("time",)
    assert found.to_dict()["attacks"]["time"]["told"] == "slow"


def test_names():
    assert matching_names(["hsic_test"]) == ["independence/hsic"]
    assert matching_names(["paired/sign", "paired"])[0] == "paired/sign"
    assert len(matching_names(["paired"])) == 6
    assert matching_names(["permutation_test"]) == [
        "python/permutation_test",
        "python/permutation_test, naive",
    ]


def test_refusals():
    with pytest.raises(ParameterError, match="TEST must be one of"):
        audit("two-sample/nothing")
    with pytest.raises(ParameterError, match="TEST must be a public function"):
        matching_names(["nothing"])
    with pytest.raises(ParameterError, match="epsilon"):
        audit("paired/sign", epsilon=0)
    with pytest.raises(ParameterError, match="attacks must be among"):
        audit("paired/sign", plan=AuditPlan(attacks=("magic",)))
    assert {case.private_groups for case in cases("two-sample/ks", 1.0)} == {True, False}


def test_the_command():
    asked = ["audit", "sign_test", "--attacks", "sensitivity,replay", "--pairs", "6"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "paired/sign" in shown.output
    assert "holds" in shown.output
    assert "replay       the same path" in shown.output
    told = json.loads(CliRunner().invoke(app, [*asked, "--json"]).output)
    assert told["audited"][0]["attacks"]["sensitivity"]["pair"]["rows"]


def test_the_page_shows_the_line_that_draws_the_noise():
    root = Path(__file__).parents[2]
    page = (root / "docs/how-to/audit.md").read_text(encoding="utf-8")
    source = (root / "src/privatest/mechanisms/permutation.py").read_text(encoding="utf-8")
    _, _, rest = page.partition("## The line that draws the noise")
    shown = rest.split("```text\n")[1].split("```")[0]
    assert "noise.discrete_laplace(scale)" in shown
    assert " ".join(shown.split()) in " ".join(source.split())


def test_a_refused_run_is_told():
    case = next(cases("paired/sign", 1.0))
    table = random_pair(SCHEMA, 12, np.random.default_rng(1)).tables(SCHEMA)[0].slice(0, 0)
    assert run_case(case, table, SimulatedNoise(1), 1).error
