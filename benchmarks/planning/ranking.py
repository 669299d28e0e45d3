"""Does planning name the most powerful test? Scenarios that its tables were not made from.

Run: python -m benchmarks.planning.ranking [--runs 400]. Writes results/planning-ranking.json. Each
scenario has a law, sizes, an epsilon or a number of columns that the tables do not have. Tests of
the tables are simulated on the same studies, all of them by few runs and those near the best by
more; the recommended one should have the largest power, or one within .05 of it.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from dataclasses import dataclass
from typing import Any

from benchmarks.measure import save, stored
from benchmarks.report import print_table
from privatest.planning import Recommendation, recommend
from privatest.simulation import (
    Sampler,
    atoms,
    dependence,
    heavy_tails,
    mixture,
    power,
    proportions,
    scale,
    shape,
    shift,
    tables,
)

CLOSE = 0.05
FEW, FAR = 40, 0.2  # runs of all others; how far from the best a test is not looked at again


@dataclass(frozen=True)
class Scenario:
    """Data, and what the user says of it."""

    sampler: Sampler
    n: int | tuple[int, int]
    epsilon: float
    kind: str
    columns: int | str = 1
    membership: str = "public"


SCENARIOS = {
    "shift, logistic": Scenario(shift(0.4, base="logistic"), 130, 0.6, "shift"),
    "shift, uniform, small epsilon": Scenario(shift(0.6, base="uniform"), 250, 0.07, "shift"),
    "shift, skewed": Scenario(shift(0.3, base="skewed"), 150, 1.3, "shift"),
    "shift, unequal sizes": Scenario(shift(0.4), (90, 260), 0.5, "shift"),
    "shift, private, logistic": Scenario(
        shift(0.5, base="logistic"), 150, 0.9, "shift", membership="private"
    ),
    "shift, private, small epsilon": Scenario(shift(1.0), 220, 0.15, "shift", membership="private"),
    "scale": Scenario(scale(1.4), 210, 0.6, "scale"),
    "scale, logistic": Scenario(scale(1.3, base="logistic"), 280, 1.2, "scale"),
    "scale, private": Scenario(scale(1.5), 230, 1.5, "scale", membership="private"),
    "shape": Scenario(shape(0.7), 190, 0.9, "shape"),
    "shape, private": Scenario(shape(0.9), 260, 2.5, "shape", membership="private"),
    "heavy tails": Scenario(heavy_tails(0.45), 170, 0.5, "heavy_tails"),
    "heavy tails, private": Scenario(
        heavy_tails(0.7), 140, 1.2, "heavy_tails", membership="private"
    ),
    "responders": Scenario(mixture(0.35, by=2.0), 150, 0.35, "mixture"),
    "atoms": Scenario(atoms(0.18, share=0.6), 160, 0.6, "atoms"),
    "dependence": Scenario(dependence(0.25), 260, 1.7, "dependence"),
    "dependence on a curve": Scenario(dependence(0.5, form="curve"), 230, 2.2, "curve"),
    "many columns": Scenario(shift(0.2, columns=6), 220, 1.2, "shift", 6),
    "many columns, private": Scenario(
        shift(0.4, columns=7), 240, 1.2, "shift", 7, membership="private"
    ),
    "pairs": Scenario(shift(0.3, base="logistic", question="paired"), 190, 0.4, "shift"),
    "shares, rare": Scenario(proportions(0.08, share=0.1), 330, 0.9, "proportions", "binary"),
    "categories": Scenario(tables(0.17, categories=6), 240, 0.8, "tables", "categorical"),
}


def measured(
    own: Scenario, ranking: Recommendation, runs: int, workers: int, known: dict[str, float]
) -> dict[str, float]:
    """Return the power of each test: all by few runs, those near the best by all of them.

    What is known from before is kept: what is near the best there had all runs.
    """

    def rate(method: str, runs: int) -> float:
        return power(
            method,
            own.sampler,
            n=own.n,
            epsilon=own.epsilon,
            membership=own.membership,
            runs=runs,
            seed=31,
            workers=workers,
        ).rate

    def near(powers: dict[str, float]) -> set[str]:
        best = max(powers.values(), default=0.0)
        return {method for method, power in powers.items() if power > best - FAR}

    tested = [choice.method for choice in ranking.choices if choice.power is not None]
    powers = known | {method: rate(method, FEW) for method in tested if method not in known}
    more = (near(powers) | {tested[0]}) - near(known)
    return powers | {method: rate(method, runs) for method in tested if method in more}


def main() -> None:
    """Measure all tests in every scenario."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    rows = stored("planning-ranking", options.runs)
    for name, own in SCENARIOS.items():
        question = own.sampler.question
        ranking = recommend(
            question,
            own.n,
            own.columns,
            epsilon=own.epsilon,
            membership=own.membership,
            looking_for=own.kind,
        )
        known = {row["scenario"]: row["powers"] for row in rows}.get(name, {})
        powers = measured(own, ranking, options.runs, options.workers, known)
        best = max(powers, key=lambda method: powers[method])
        loss = round(powers[best] - powers[ranking.best.method], 4)
        row: dict[str, Any] = {"scenario": name, "recommended": ranking.best.method, "best": best}
        row |= {"loss": loss, "powers": powers, "close": loss <= CLOSE}
        rows = [each for each in rows if each["scenario"] != name] + [row]
        print(row, flush=True)
        save("planning-ranking", {"runs": options.runs, "rows": rows})
    columns = ["scenario", "recommended", "best", "loss", "close"]
    print_table("recommended against best", columns, [[row[c] for c in columns] for row in rows])
    print(sum(row["close"] for row in rows), "of", len(rows), "within", CLOSE)


if __name__ == "__main__":
    main()
