"""Attack every test, and write what was found to docs/audit.json.

Run ``python -m tools.audit``. Cases that are stored with the same version and settings are kept, so
that a run that was stopped goes on; ``--again`` runs them anew. ``python -m tools.guarantees``
makes the table of docs/guarantees.md from it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from privatest import __version__
from privatest.audit import ATTACKS, NAMES, AuditPlan, AuditReport
from privatest.audit.auditing import attacks_of, audit_case
from privatest.audit.cases import Case, cases, matching_names, request_name

STORE = Path(__file__).resolve().parent.parent / "docs" / "audit.json"
# Where theorems are tight the lower bound has to come near epsilon: more pairs, and so many draws.
# Permutation tests lose most in rarer events.
TIGHT_PAIRS = 60
TIGHT_DRAWS = {
    "two-sample/mmd": 100_000,
    "independence/hsic": 100_000,
    "two-sample/ks": 10_000,
    "paired/sign": 10_000,
}
_ABOUT = "written by python -m tools.audit"


def summary(found: AuditReport, plan: AuditPlan, seconds: float) -> dict[str, Any]:
    """Return what is kept of a case: numbers, not the pairs."""
    kept = {
        "function": found.function,
        "epsilon": found.epsilon,
        "delta": found.delta,
        "holds": found.holds,
        "caught_by": list(found.caught_by),
        "worst_ratio": found.number("ratio"),
        "mechanism": found.number("mechanism"),
        "pairs": found.number("pairs"),
        "exact_loss": found.number("loss"),
        "draws": found.number("runs", "draws"),
        "runs": found.number("runs", "runs"),
        "epsilon_at_least": found.epsilon_at_least or None,
        "strange_values": found.number("values"),
        "time_promised": found.number("promised"),
        "steps_ratio": _ratio(found.number("steps")),
        "peak_ratio": _ratio(found.number("peak_bytes")),
        "null_rejected": found.number("rejected"),
        "null_runs": found.number("runs", "level"),
        "null_allowed": found.number("allowed"),
        "attacks": [finding.attack for finding in found.findings],
        "settings": settings(plan),
        "processor_seconds": round(seconds, 1),
        "version": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }
    return {name: value for name, value in kept.items() if value is not None}


def _ratio(measured: dict[str, float] | None) -> float | None:
    return None if measured is None else max(measured.values()) / min(measured.values())


def settings(plan: AuditPlan) -> dict[str, Any]:
    """Return how hard it was tried, for docs/audit.json."""
    return {**asdict(plan), "attacks": list(plan.attacks)}


def run(name: str, plan: AuditPlan, epsilon: float) -> dict[str, dict[str, Any]]:
    """Audit one name."""
    found: dict[str, dict[str, Any]] = {}
    for case in cases(name, epsilon):
        if attacks_of(case, plan):
            begin = time.process_time()
            found[case.name] = summary(audit_case(case, plan), plan, time.process_time() - begin)
    return found


def stored() -> dict[str, dict[str, Any]]:
    """Return what is in docs/audit.json, by case."""
    if not STORE.exists():
        return {}
    cases: dict[str, dict[str, Any]] = json.loads(STORE.read_text(encoding="utf-8"))["cases"]
    return cases


def store(cases: dict[str, dict[str, Any]]) -> None:
    """Write it, in the order of the names."""
    place = {name: number for number, name in enumerate(NAMES)}
    ordered = sorted(cases, key=lambda case: (_place(case, place), case))
    document = {"about": _ABOUT, "cases": {case: cases[case] for case in ordered}}
    STORE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _place(case: str, place: dict[str, int]) -> int:
    return place.get(request_name(case), len(place))


def defaults() -> AuditPlan:
    """Return how hard ``make audit`` tries."""
    return AuditPlan(pairs=6, draws=1_500, runs=120, nulls=4)


def planned(name: str, plan: AuditPlan) -> AuditPlan:
    """Return how a name is attacked."""
    draws = TIGHT_DRAWS.get(name)
    if draws is None:
        return plan
    return replace(plan, pairs=max(plan.pairs, TIGHT_PAIRS), draws=max(plan.draws, draws))


def as_planned(case: Case, entry: dict[str, Any] | None, plan: AuditPlan) -> bool:
    """Return whether what is stored of a case was made with this plan, by all that applies."""
    if entry is None or entry["settings"] != settings(plan):
        return False
    return list(entry["attacks"]) == list(attacks_of(case, plan))


def missing(names: list[str], plan: AuditPlan, again: bool) -> Iterator[tuple[str, AuditPlan]]:
    """Yield what is to be attacked: all cases of a name, if one is not stored as planned."""
    current = {case: entry for case, entry in stored().items() if entry["version"] == __version__}
    for name in names:
        own = planned(name, plan)
        if again or not all(as_planned(c, current.get(c.name), own) for c in cases(name, 1.0)):
            yield name, own


def main() -> None:
    """Audit what is not stored yet, in as many processes as there are cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--epsilon", type=float, default=1.0)
    usual = defaults()
    for option in ("pairs", "draws", "runs", "nulls"):
        parser.add_argument(f"--{option}", type=int, default=getattr(usual, option))
    parser.add_argument("--attacks", default=",".join(ATTACKS), help="with commas")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start none after")
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    attacks = tuple(given.attacks.split(","))
    plan = AuditPlan(given.pairs, given.draws, given.runs, given.nulls, attacks=attacks)
    left = list(
        missing(matching_names(given.names) if given.names else list(NAMES), plan, given.again)
    )
    begin, number = time.monotonic(), 0
    for batch in (left[i : i + given.processes] for i in range(0, len(left), given.processes)):
        if time.monotonic() - begin > given.seconds:
            break
        with ProcessPoolExecutor(given.processes) as pool:
            waiting = {pool.submit(run, name, own, given.epsilon): name for name, own in batch}
            for done in as_completed(waiting):
                number += 1
                cases = done.result()
                store(stored() | cases)
                words = ", ".join("holds" if c["holds"] else "BROKEN" for c in cases.values())
                print(f"{number}/{len(left)} {waiting[done]}: {words}", flush=True)


if __name__ == "__main__":
    main()
