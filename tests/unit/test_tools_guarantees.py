"""docs/guarantees.md: generated, complete, and nothing in it is broken."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

import pytest

import privatest
import tools.audit
from privatest import __version__
from privatest.audit import NAMES
from privatest.audit.attacks import ALLOWED
from privatest.audit.auditing import attacks_of
from privatest.audit.cases import cases
from privatest.core.results import declared_level
from tools.audit import as_planned, defaults, missing, planned, settings, stored
from tools.guarantees import PAGE, ROOT, audit, audited, levels, promise, render, rows


def spending() -> set[str]:
    """Public functions that draw noise."""
    public = {n: getattr(privatest, n) for n in privatest.__all__}
    functions = {n: f for n, f in public.items() if inspect.isfunction(f)}
    return {n for n, f in functions.items() if "noise" in inspect.signature(f).parameters}


def hypothesis_tests() -> dict[str, Any]:
    """Public functions that return a result of a test."""
    public = {n: getattr(privatest, n) for n in privatest.__all__}
    functions = {n: f for n, f in public.items() if inspect.isfunction(f) and n != "adjust"}
    return {
        name: function
        for name, function in functions.items()
        if re.search(r"Outcome|Decision", str(inspect.signature(function).return_annotation))
    }


def proof_levels() -> dict[str, dict[str, str]]:
    """The levels that proof pages state, by function and page."""
    found: dict[str, dict[str, str]] = {}
    for page in (ROOT / "docs" / "proofs").glob("*.md"):
        for line in re.findall(r"^\*\*Level\.\*\* (`.*)$", page.read_text(encoding="utf-8"), re.M):
            for names, level in re.findall(r"((?:`\w+`(?:, )?)+): (.*?)\.(?= `|$)", line):
                for name in re.findall(r"`(\w+)`", names):
                    found.setdefault(name, {})[f"proofs/{page.name}"] = level
    return found


def test_the_page_is_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert render(page) == page, "run python -m tools.guarantees"


def test_every_public_test_has_a_proof_page():
    for row in rows():
        pages = re.findall(r"\((proofs/[a-z-]+\.md)", row["proof"])
        assert pages, row["call"]
        assert all((ROOT / "docs" / page).is_file() for page in pages), row["call"]
    assert spending() <= {name for row in rows() for name in row["functions"]}


def test_every_public_test_declares_its_level():
    declared = {name: declared_level(function) for name, function in hypothesis_tests().items()}
    assert len(declared) > 30
    assert not [name for name, level in declared.items() if level is None]
    others = spending() - {*declared}
    assert not [name for name in others if declared_level(getattr(privatest, name)) is not None]
    listed = {name for row in rows() for name in row["functions"]}
    assert {*declared} <= listed


def test_proof_pages_state_the_level_that_is_declared():
    stated = proof_levels()
    assert {*stated} == {*hypothesis_tests()}
    for name, function in hypothesis_tests().items():
        pages = {
            page
            for row in rows()
            if name in row["functions"]
            for page in re.findall(r"\((proofs/[a-z-]+\.md)", row["proof"])
        }
        assert pages & {*stated[name]}, f"no proof page of {name} states its level"
        for page, level in stated[name].items():
            assert level == str(declared_level(function)), (name, page)


def test_a_row_about_an_option_names_a_level_that_is_declared():
    for row in rows():
        words = {word for level in levels(row).values() for word in level.words}
        assert row.get("level") is None or row["level"] in words, row["call"]


def test_rates_are_allowed_for_measured_levels_only():
    for name, rate in ALLOWED.items():
        level = declared_level(getattr(privatest, name))
        assert level is not None
        assert {*level.words} != {"valid"}, name
        assert 0.05 < rate <= 0.08


@pytest.mark.parametrize("function", ["proportions_test", "tost_proportions", "spearmanr"])
def test_what_its_own_proof_page_calls_measured_is_not_called_valid(function):
    (row,) = [row for row in rows() if function in row["functions"]]
    assert "measured" in str(levels(row)[function])
    line = next(line for line in render("").splitlines() if line.startswith(f"| {row['call']} |"))
    assert "measured" in line


def test_every_public_test_has_an_attack_and_an_audit():
    functions = {case["function"] for case in stored().values()}
    for function in spending():
        assert function in functions, f"run python -m tools.audit {function}"
    for case in stored().values():
        assert {"date", "version", "settings", "pairs"} <= set(case)


def test_an_audit_that_moved_nothing_is_none():
    """A search that changes no number has attacked nothing, whatever it reports."""
    still = [name for name, case in stored().items() if case["worst_ratio"] <= 0]
    assert not still


def test_every_case_is_in_the_row_that_it_is_about():
    shown = [(row, audited(row)) for row in rows()]
    for name, case in stored().items():
        if name.startswith("mechanism/"):
            continue
        own = [row for row, found in shown if name in found]
        assert [row["call"] for row in own if case["function"] in row["functions"]], name
        assert len(own) == 1, name


def test_the_audit_table_has_the_figures_of_every_case():
    lines = [line.strip("| ").split(" | ") for line in audit().splitlines() if line[:1] == "|"]
    shown = {line[0]: line[1:5] for line in lines}
    assert {*shown} >= {*stored()}
    private = stored()["two-sample/mann-whitney, private groups"]
    figures = [f"{private[key]:.3f}" for key in ("worst_ratio", "exact_loss")]
    assert shown["two-sample/mann-whitney, private groups"] == ["`mannwhitneyu`", *figures, "—"]


def test_rows_without_an_audit_are_named():
    without = [row["call"] for row in rows() if not audited(row)]
    assert '`mmd_test(release="decision")`' in without
    last = audit().rstrip().splitlines()[-1]
    assert all(call in last for call in without)


def test_the_promise_states_costs_that_are_not_as_given():
    lines = {line.split(" | ")[0].strip("| "): line for line in promise().splitlines()}
    for row in rows():
        said = f"Cost: {row['cost']} |" in lines[row["call"]]
        assert said == (row["cost"] != "(ε, δ) as given")


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
    found = [c for c in stored().values() if c["function"] == function and c["epsilon"] == 1.0]
    assert max(case.get("epsilon_at_least", 0.0) for case in found) >= 0.6


def test_a_level_is_a_bound():
    # default decisions of hsic_test reject at 3/4 of their level where noise is large
    equals = re.compile(
        r"(reject\w*|hypothesis)\s+(a true\s+hypothesis\s+)?with\s+probability\s+(α|alpha)\b", re.I
    )
    code = [path for folder in ("src", "papers") for path in (ROOT / folder).rglob("*.py")]
    pages = [*(ROOT / "docs").rglob("*.md"), *code, ROOT / "README.md"]
    assert not [page.name for page in pages if equals.search(page.read_text(encoding="utf-8"))]
