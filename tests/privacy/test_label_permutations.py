"""Why permuting all labels needs its three units of noise: for any draws there are such data.

In the limit of many permutations no data were found that lose more than a third of epsilon. For a
finite number of draws the bound is nearly attained, whatever was drawn, if N is large enough: for a
known order of rows, as the bound is proved. The test's own order is secret.
"""

from __future__ import annotations

import numpy as np
import pytest

from privatest.mechanisms.permutation import noise_scale
from privatest.numerics.permutation import private_groups_sensitivity
from tests.privacy import exact
from tests.privacy.exact import PermutedStatistics


def statistic(values, labels):
    """|(1/N) sum (g - mean g) f| for f = 0 or 1."""
    return abs(float((labels - labels.mean()) @ values)) / len(values)


def worst_data(permutations):
    """Rows of which few have value 1 and few label 1, chosen when all permutations are known.

    Each permutation gives row 0, which has both, one of the rare labels, brings its label to a
    rare value, and makes a third row with both. As it stands row 0 is the only one.
    """
    total = permutations.shape[1]
    values, labels = np.zeros(total), np.zeros(total)
    values[0] = labels[0] = 1.0
    labels[permutations[:, 0]] = 1.0  # labels that come to row 0
    values[np.argmax(permutations == 0, axis=1)] = 1.0  # where the label of row 0 goes
    for order in permutations:
        free = np.flatnonzero((labels == 0) & (values == 0) & (labels[order] == 0))
        place = next(p for p in free if values[order[p]] == 0)
        values[place], labels[order[place]] = 1.0, 1.0
    rare = round(np.sqrt(total))
    assert max(values.sum(), labels.sum()) <= rare
    for marks, other in ((values, labels), (labels, values)):
        free = np.flatnonzero((values == 0) & (other == 0))
        marks[free[: int(rare - marks.sum())]] = 1.0
    return values, labels


@pytest.mark.parametrize(("draws", "share"), [(10, 0.85), (60, 0.97)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_bound_is_nearly_attained_for_any_draws(seed, draws, share):
    total = (3 * draws + 10) ** 2
    rng = np.random.default_rng(seed)
    permutations = np.array([rng.permutation(total) for _ in range(draws)])
    values, labels = worst_data(permutations)
    new_values, new_labels = values.copy(), labels.copy()
    new_values[0] = new_labels[0] = 0.0
    sensitivity = private_groups_sensitivity(1.0, total)
    laws = [
        PermutedStatistics(
            statistic(f, g), np.array([statistic(f, g[p]) for p in permutations]), ones
        )
        for f, g, ones in (
            (values, labels, np.ones(draws)),
            (new_values, new_labels, np.ones(draws)),
        )
    ]
    moved = laws[1].values - laws[0].values
    assert -sensitivity.permuted <= moved.min() <= moved.max() < -0.9 * sensitivity.permuted
    scale = noise_scale(sensitivity, 1.0, "decision")
    lost = max(
        exact.decision_loss(laws[0], laws[1], scale, alpha) for alpha in (0.02, 0.05, 0.5, 0.9)
    )
    assert share < lost <= 1
