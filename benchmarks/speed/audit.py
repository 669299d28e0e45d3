"""How long a whole ``make audit`` takes, from the processor time of a random sample of its cases.

Times of cases that docs/audit.json has are taken from there, the others are measured. A few cases
take most of the time, so that the range is wide: two standard errors on either side.

Run: python -m benchmarks.speed.audit [--cases 12] [--seed 20]. Writes results/speed-audit.json
after each case, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import random
import statistics
import time
from typing import Any

from benchmarks.measure import RESULTS, save
from privatest.audit import NAMES
from privatest.audit.auditing import audit_case
from privatest.audit.cases import Case, cases
from tools.audit import as_planned, defaults, planned, stored

NAME = "speed-audit"


def seconds(name: str, case: Case) -> float:
    """Return the processor time of one case."""
    plan, entry = planned(name, defaults()), stored().get(case.name)
    if entry is not None and as_planned(case, entry, plan) and "processor_seconds" in entry:
        return float(entry["processor_seconds"])
    begin = time.process_time()
    audit_case(case, plan)
    return round(time.process_time() - begin, 1)


def estimate(times: list[float], total: int) -> dict[str, float]:
    """Return minutes of one processor for all cases, and two standard errors on either side."""
    mean = total * statistics.mean(times)
    # drawn without replacement
    error = total * statistics.stdev(times) * (((1 - len(times) / total) / len(times)) ** 0.5)
    least = max(mean - 2 * error, sum(times))
    return {"minutes": mean / 60, "at least": least / 60, "at most": (mean + 2 * error) / 60}


def main() -> None:
    """Measure, and say what follows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--seed", type=int, default=20)
    given = parser.parse_args()
    everything = [(name, case) for name in NAMES for case in cases(name, 1.0)]
    drawn = random.Random(given.seed).sample(everything, given.cases)
    facts: dict[str, Any] = {"seed": given.seed, "cases": len(everything), "sample": given.cases}
    path, measured = RESULTS / f"{NAME}.json", dict[str, float]()
    if path.exists():
        before = json.loads(path.read_text())
        measured = before["seconds"] if facts.items() <= before.items() else {}
    for name, case in drawn:
        if case.name not in measured:
            measured[case.name] = seconds(name, case)
            print(f"{case.name}: {measured[case.name]} s", flush=True)
            save(NAME, {**facts, "seconds": measured})
    found = estimate(list(measured.values()), len(everything))
    save(NAME, {**facts, "seconds": measured, "one processor": found})
    print(found)


if __name__ == "__main__":
    main()
