"""docs/guarantees.md: generated, complete, and nothing in it is broken."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import pytest

import privatest
import tools.audit
from privatest import __version__
from privatest.audit import NAMES
from privatest.audit.auditing import attacks_of
from privatest.audit.cases import cases
from tools.audit import as_planned, defaults, missing, planned, settings, stored
from tools.guarantees import PAGE, ROOT, audited, render, rows


def spending() -> set[str]:
    """Public functions that draw noise."""
    public = {n: getattr(privatest, n) for n in privatest.__all__}
    functions = {n: f for n, f in public.items() if inspect.isfunction(f)}
    return {n for n, f in functions.items() if "noise" in inspect.signature(f).parameters}


def test_the_page_is_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert render(page) == page, "run python -m tools.guarantees"


def test_every_public_test_has_a_proof_page():
    for row in rows():
        pages = re.findall(r"\((proofs/[a-z-]+\.md)", row["proof"])
        assert pages, row["call"]
        assert all((ROOT / "docs" / page).is_file() for page in pages), row["call"]
    assert spending() <= {name for row in rows() for name in row["functions"]}


def test_every_public_test_has_an_attack_and_an_audit():
    for function in spending():
        found = audited([function])
        assert found, f"run python -m tools.audit {function}"
        for case in found:
            assert case["worst_ratio"] >= 0
            assert {"date", "version", "settings", "pairs"} <= set(case)


def test_no_audit_found_anything():
    broken = {case: entry["caught_by"] for case, entry in stored().items() if not entry["holds"]}
    assert not broken
    for case, entry in stored().items():
        assert entry["worst_ratio"] <= 1 + 1e-9, case
        assert entry["exact_loss"] <= entry["epsilon"] * (1 + 1e-6), case
        assert entry.get("epsilon_at_least", 0.0) <= entry["epsilon"], case


def test_every_case_is_stored_as_it_is_tried_today():
    """With today's settings, and by all attacks that apply to it."""
    plan, known, wanted = defaults(), stored(), set[str]()
    for name in NAMES:
        for case in cases(name, 1.0):
            wanted.add(case.name)
            entry = known.get(case.name)
            told = f"{case.name}: run python -m tools.audit {name}, then python -m tools.guarantees"
            assert as_planned(case, entry, planned(name, plan)), told
    assert {*known} == wanted


def test_what_was_tried_with_other_settings_or_less_is_not_as_planned():
    plan, case = defaults(), next(cases("paired/ks", 1.0))
    entry = stored()[case.name]
    assert as_planned(case, entry, plan)
    assert not as_planned(case, None, plan)
    assert not as_planned(case, entry, replace(plan, runs=plan.runs + 1))
    assert not as_planned(case, entry | {"attacks": entry["attacks"][:-1]}, plan)


def test_what_was_tried_is_stored_with_what_was_found():
    for name, entry in stored().items():
        assert ("runs" in entry) == ("runs" in entry["attacks"]), name
        assert ("null_allowed" in entry) <= ("level" in entry["attacks"]), name


def test_make_audit_takes_up_what_is_missing(monkeypatch):
    plan, names = defaults(), ["paired/ks", "two-sample/mmd"]
    assert planned("paired/ks", plan) == plan
    assert planned("two-sample/mmd", plan).draws > plan.draws
    entries = {
        case.name: {
            "settings": settings(planned(name, plan)),
            "attacks": list(attacks_of(case, plan)),
            "version": __version__,
        }
        for name in names
        for case in cases(name, 1.0)
    }
    monkeypatch.setattr(tools.audit, "stored", lambda: entries)
    assert list(missing(names, plan, again=False)) == []
    assert len(list(missing(names, plan, again=True))) == 2
    entries["paired/ks, in passes"]["version"] = "0.0.1"
    assert [name for name, _ in missing(names, plan, again=False)] == ["paired/ks"]
    del entries["two-sample/mmd, public groups"]
    assert len(list(missing(names, plan, again=False))) == 2


@pytest.mark.parametrize("function", ["mmd_test", "ks_2samp", "sign_test", "hsic_test"])
def test_draws_of_the_real_noise_come_near(function):
    """Lower bounds reach .6 of epsilon where theorems are tight: one that sees nothing is none."""
    found = [case for case in audited([function]) if case["epsilon"] == 1.0]
    assert max(case.get("epsilon_at_least", 0.0) for case in found) >= 0.6
