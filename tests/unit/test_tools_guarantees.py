"""docs/guarantees.md: generated, complete, and nothing in it is broken."""

from __future__ import annotations

import inspect
import re

import privatest
from tools.audit import stored
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


def test_draws_of_the_real_noise_come_near():
    """The sign test's lower bound reaches .6 of epsilon: an audit that sees nothing is no audit."""
    assert max(case.get("epsilon_at_least", 0.0) for case in audited(["sign_test"])) >= 0.6
