"""docs/guarantees.md: generated, complete, and nothing in it is broken."""

from __future__ import annotations

import inspect
import re

import pytest

import privatest
import tools.audit
from privatest import __version__
from privatest.audit import NAMES, Plan
from privatest.audit.auditing import attacks_of
from privatest.audit.cases import cases
from tools.audit import defaults, missing, planned, settings, stored
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


def test_what_was_tried_is_stored_with_what_was_found():
    """Cases are those of the audit; one that all attacks were made on says so."""
    asked = {case.name: case for name in NAMES for case in cases(name, 1.0)}
    known = stored()
    assert {*known} <= {*asked}
    for name, entry in known.items():
        if "attacks" in entry:  # older entries had only settings
            wanted = Plan(attacks=entry["settings"]["attacks"])
            assert entry["attacks"] == list(attacks_of(asked[name], wanted)), name
            assert ("runs" in entry) == ("runs" in entry["attacks"]), name


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
