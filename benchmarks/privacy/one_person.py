"""What can somebody who knows everyone else read off a p-value? Writes privacy-one-person.json.

Two groups of made-up people; the attacker knows all of them but one, and sees the p-value of a
Mann-Whitney test, ordinary (SciPy) or private (epsilon 1). Three measurements:

- the p-value by the unknown value, which is the picture of the README (docs/figures);
- how often the ordinary p-value, as printed with some digits, leaves a single possible value;
- the game of two values: is the person at 2 or at 30? The best threshold on the private p-value is
  chosen on one half of the runs and scored on the other.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

import privatest as pt
from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table

EPSILON = 1.0
PEOPLE = 60  # in each group
LARGEST = 40  # visits of a person
TWO = (2, 30)
SECRET = 23  # the value that is read off in the picture
RED, BLUE = "#b3261e", "#1a5490"
SEED = 3  # of the data set that is drawn
FIGURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "one-person.png"
Rows = NDArray[np.float64]


def groups(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Visits of the people whom the attacker knows, and of the other group."""
    known = rng.poisson(rng.gamma(2, 6, size=PEOPLE - 1))
    others = rng.poisson(rng.gamma(2, 7.5, size=PEOPLE))
    clipped = (np.minimum(rows, LARGEST).astype(np.float64) for rows in (known, others))
    first, second = clipped
    return first, second


def ordinary(known: Rows, others: Rows) -> Rows:
    """Return the ordinary p-value for each value that the unknown person may have."""
    every = [np.append(known, value) for value in range(LARGEST + 1)]
    return np.array([mannwhitneyu(x, others).pvalue for x in every])


def private(known: Rows, others: Rows, value: float, runs: int) -> Rows:
    x = np.append(known, value)
    return np.array([pt.mannwhitneyu(x, others, epsilon=EPSILON).pvalue for _ in range(runs)])


def told_apart(digits: int, trials: int) -> dict[str, float]:
    """Return how many values an ordinary p-value with so many digits leaves possible."""
    rng, left = np.random.default_rng(digits), []
    for _ in range(trials):
        known, others = groups(rng)
        seen = np.round(ordinary(known, others), digits)
        true = min(int(rng.poisson(rng.gamma(2, 6))), LARGEST)
        left.append(int(np.sum(seen == seen[true])))
    return {
        "digits": digits,
        "single": float(np.mean(np.array(left) == 1)),
        "values_left": float(np.mean(left)),
    }


def game(runs: int) -> dict[str, Any]:
    """Return how often the best threshold on a private p-value guesses one of two values."""
    known, others = groups(np.random.default_rng(SEED))
    drawn = [private(known, others, value, runs) for value in TWO]
    half = runs // 2
    edges = np.unique(np.concatenate(drawn))
    sides = [np.searchsorted(np.sort(each[:half]), edges, side="right") for each in drawn]
    gap = (sides[0] - sides[1]) / half
    edge, larger = edges[np.argmax(np.abs(gap))], bool(gap[np.argmax(np.abs(gap))] > 0)
    below = [float(np.mean(each[half:] <= edge)) for each in drawn]
    right = (below[0] + 1 - below[1]) / 2 if larger else (below[1] + 1 - below[0]) / 2
    return {
        "values": TWO,
        "runs_of_each": runs,
        "guessed": right,
        "standard_error": float(np.sqrt(right * (1 - right) / (2 * (runs - half)))),
        "most_that_epsilon_allows": float(np.exp(EPSILON) / (1 + np.exp(EPSILON))),
    }


def curve(runs: int) -> dict[str, Any]:
    """Return the p-value by the unknown value: ordinary, and quantiles of the private one."""
    known, others = groups(np.random.default_rng(SEED))
    values = list(range(0, LARGEST + 1, 5))
    bands = [np.quantile(private(known, others, v, runs), (0.05, 0.5, 0.95)) for v in values]
    return {
        "ordinary": ordinary(known, others).tolist(),
        "values": values,
        "private": [band.tolist() for band in bands],
        "runs_of_each": runs,
    }


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw the two p-values side by side."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    exact = np.array(found["ordinary"])
    left.plot(range(LARGEST + 1), exact, ".-", color=RED, lw=1)
    published = exact[SECRET]
    left.plot([0, SECRET, SECRET], [published, published, exact.min()], "--", color="#555", lw=1)
    left.annotate(f"published: p = {published:.4f}", (0.5, published), va="bottom")
    left.set_title("ordinary: it tells the person's value")
    bands = np.array(found["private"])
    right.fill_between(found["values"], bands[:, 0], bands[:, 2], color=BLUE, alpha=0.2, lw=0)
    right.plot(found["values"], bands[:, 1], ".-", color=BLUE, lw=1)
    right.set_ylim(0, None)
    right.annotate("9 of 10 private p-values lie here", (20, bands[:, 2].max() / 2), ha="center")
    right.set_title(f"private, epsilon {EPSILON:g}: it hardly does")
    for place in (left, right):
        place.set_xlabel("visits of one person (the other 119 are known)")
        place.set_ylabel("p-value")
        place.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, print, store and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=250, help="of the private test, each value")
    parser.add_argument("--trials", type=int, default=250, help="data sets of the ordinary one")
    parser.add_argument("--figure", type=Path, default=FIGURE)
    parser.add_argument("--draw", action="store_true", help="draw what is stored, run nothing")
    options = parser.parse_args()
    if options.draw:
        stored = json.loads((RESULTS / "privacy-one-person.json").read_text())
        draw(stored["curve"], options.figure)
        return
    leaks = [told_apart(digits, options.trials) for digits in (2, 3, 4)]
    guessed, found = game(8 * options.runs), curve(options.runs)
    print_table(
        "ordinary p-values", list(leaks[0]), [[float(v) for v in each.values()] for each in leaks]
    )
    print_table("private p-value, two values", list(guessed), [list(guessed.values())])
    save(
        "privacy-one-person",
        {"trials": options.trials, "ordinary": leaks, "game": guessed, "curve": found},
    )
    draw(found, options.figure)


if __name__ == "__main__":
    main()
