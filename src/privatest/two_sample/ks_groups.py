"""Kolmogorov-Smirnov and Kuiper tests of private groups: labels are permuted or swapped."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import PermutationSensitivity
from privatest.core.results import Outcome
from privatest.data.samples import TwoSamples
from privatest.laws.law import Alternative
from privatest.mechanisms.permutation import permutation_result
from privatest.statistics.binned_cells import permuted_swaps_pass
from privatest.statistics.cells import LineKind, PlacedLine, cut_cells, rank_cells
from privatest.statistics.ecdf import TwoSampleStatistic
from privatest.statistics.ipm import LineMetric
from privatest.statistics.line_cells import EXACT_ROWS, RANK_CELLS, rank_cells_sensitivity
from privatest.statistics.pair_swaps import (
    pair_swaps_sensitivity,
    permuted_swaps_line,
)
from privatest.statistics.private_groups import (
    permuted_groups_cells,
    permuted_groups_line,
    private_groups_sensitivity,
)
from privatest.two_sample.common import labelled_rows, swaps_labels

__all__ = ["private_groups_ks"]

_KINDS: dict[Alternative, LineKind] = {
    "two-sided": "kolmogorov",
    "greater": "above",
    "less": "below",
}
Floats = NDArray[np.float64]


def private_groups_ks(
    samples: TwoSamples,
    statistic: TwoSampleStatistic,
    alternative: Alternative,
    n_permutations: int,
    rng: np.random.Generator,
    common: dict[str, Any],
    cuts: Floats | None,
    *,
    exact: bool,
) -> Outcome:
    """Permute the groups: their sizes are private, and so is any law that depends on them.

    ``cuts`` are public cut points. Without them values are compared at all of them, or at ranks
    where that would take long, unless it is to be ``exact``.
    """
    total, persons = len(samples.x) + len(samples.y), samples.rows_per_person
    swap = swaps_labels("auto", total, persons, common["budget"].pure_epsilon, "pvalue")
    parameters = common["facts"]["parameters"]
    parameters |= {"n_permutations": n_permutations, "relabel": "swap" if swap else "permute"}
    kind: LineKind = "kuiper" if statistic == "kuiper" else _KINDS[alternative]
    ranked = cuts is None and not exact and not swap and total > EXACT_ROWS
    if ranked:
        parameters["rank_cells"] = RANK_CELLS
    if swap and cuts is not None:  # one pass
        sensitivity, place = pair_swaps_sensitivity(1.0, total), partial(_cut, cuts, kind)
        values, errors = permuted_swaps_pass(samples, place, n_permutations, rng, common["noise"])
    else:
        rows, labels = labelled_rows(samples.x.rows, samples.y.rows, common["noise"])
        sensitivity, values, errors = _statistics(
            rows[:, 0], labels, kind, cuts, n_permutations, rng, swap=swap, ranked=ranked
        )
    bound = (sensitivity * persons).widened(float(errors[0]))
    result = permutation_result(values[0], sensitivity=bound, release="pvalue", **common)
    assert isinstance(result, Outcome)  # what release="pvalue" gives
    return result


def _cut(cuts: Floats, kind: LineKind, rows: Floats) -> PlacedLine:
    return cut_cells(rows[:, 0], cuts, kind)


def _statistics(
    line: Floats,
    labels: Floats,
    kind: LineKind,
    cuts: Floats | None,
    n_permutations: int,
    rng: np.random.Generator,
    *,
    swap: bool,
    ranked: bool,
) -> tuple[PermutationSensitivity, Floats, Floats]:
    """Return how far the statistics move, the statistics, and a bound on their error."""
    bound = pair_swaps_sensitivity if swap else private_groups_sensitivity
    sensitivity, more = bound(1.0, len(line)), (n_permutations, rng)
    if ranked:
        cells = rank_cells(line, RANK_CELLS, kind)
        found = permuted_groups_cells([cells], labels, *more)
        return rank_cells_sensitivity(kind, len(line)), *found
    if cuts is not None:
        cells = cut_cells(line, cuts, kind)
        return sensitivity, *permuted_groups_cells([cells], labels, *more)
    # ranks have the same order and the same ties as the values, and cannot overflow
    _, ranks = np.unique(line, return_inverse=True)
    metric = LineMetric(np.ones((1, 1)), kind, 1.0)
    permuted = permuted_swaps_line if swap else permuted_groups_line
    return sensitivity, *permuted(ranks.reshape(-1, 1).astype(np.float64), labels, metric, *more)
